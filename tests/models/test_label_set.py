"""Label sets against trying them all: every kernel, graph, cost and rescaling; and the checks of their data."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.models import label_set
from maxmargin.models.label_graph import forest_of
from maxmargin.models.label_set import LabelSet
from maxmargin.oracles.oracle import ModelOracle
from reference.label_sets import all_sets, cost, value

from .label_checks import check_argmaxes

RESCALINGS = ("margin", "slack", "sqrt_slack", "unit")


@st.composite
def problems(draw, most=10, forests=False, cycles=False):
    """(bound, features with the constant one last, sets, costs (n, 2^M), all sets, w, their scores, exact numbers)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, M = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 3, 5, most]))
    F, D = draw(st.sampled_from([(0, 2), (3, 0), (2, 1)]))
    integral, intercept = draw(st.booleans()), draw(st.booleans())
    graphs = ["forest"] if forests else ["full", "some"] if cycles else [None, "tree", "full", "some"]
    graph = draw(st.sampled_from(graphs))
    if graph == "some":
        graph = [(j, k) for j in range(M) for k in range(j) if rng.random() < 0.4]
    elif graph == "forest":
        graph = [(k, int(rng.integers(k))) for k in range(1, M) if rng.random() < 0.8]
    kinds = ["hamming", "weighted", "missed", "normalized"]
    kind = draw(
        st.sampled_from(["hamming", "free", "normalized"] if forests else kinds + ["f1", "jaccard"] * (not cycles))
    )
    weights = np.ones((M, 2))
    label_weights = dict(enumerate(rng.integers(0, 4, M) / 2))
    given_cost = kind
    if kind == "weighted":
        given_cost, weights = label_weights, np.array([[w, w] for w in label_weights.values()])
    elif kind == "free":  # mistakes on some labels cost nothing
        free = dict.fromkeys(range(0, M, 2), 0.0) if M > 1 else {}
        given_cost, weights = free, np.array([[free.get(k, 1.0)] * 2 for k in range(M)])
    elif kind == "missed":
        given_cost = mm.WeightedHammingCost(label_weights, by="true")
        weights[:, 1] = list(label_weights.values())
    elif kind == "normalized":
        given_cost, weights = mm.HammingCost(normalize=True), weights / M

    def numbers(*shape):
        return rng.integers(-2, 3, shape).astype(float) if integral else rng.normal(size=shape)

    sparse, dense = numbers(n, F) * (rng.random((n, F)) < 0.6), numbers(n, D)
    X = {"sparse": sp.csr_array(sparse), "dense": dense} if F and D else sp.csr_array(sparse) if F else dense
    Y = (rng.random((n, M)) < rng.choice([0.0, 0.3, 0.6, 1.0])).astype(int)
    bound = LabelSet(graph=graph, cost=given_cost, fit_intercept=intercept, intercept_scaling=2.0).bind(X, Y)
    w = numbers(bound.n_weights) * draw(st.sampled_from([0.0, 0.5, 1.0]))
    Z = np.hstack([sparse, dense, np.full((n, int(intercept)), 2.0)])
    sets = all_sets(M)
    costs = np.array([cost(t, sets, kind, weights) for t in Y])
    edges = bound.layout.edges
    rows = w[: len(w) - len(edges)].reshape(-1, bound.layout.stride)[:, :M]
    both = sets[:, edges[:, 0]] * sets[:, edges[:, 1]]
    scores = Z @ rows @ sets.T + both @ w[len(w) - len(edges) :]
    return bound, Z, Y, costs, sets, w, scores, integral


@settings(max_examples=80, deadline=None)
@given(problems(), st.sampled_from([0.0, 1.0, 0.5, -1.0]))
def test_argmax_cost_bound_and_plane(case, lam):
    check_argmaxes(*case[:-1], lam)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(RESCALINGS[1:]), st.sampled_from([1.0, 0.4, 3.0]))
def test_tables_of_mistakes_of_forests_are_exact(data, rescaling, lam):
    """What forests of more than 18 labels use, on sets that are few enough to try them all."""
    with mock.patch.object(label_set, "MOST_ENUMERATED", 0):
        bound, _, Y, costs, sets, w, scores, _ = data.draw(problems(forests=True))
    assert set(bound.searches) == {"slack", "sqrt_slack", "best_wrong"}
    answers = ModelOracle(bound, rescaling, lam).planes(w, np.arange(len(Y)))
    for i in range(len(Y)):
        h = scores[i] - scores[i, (sets == Y[i]).all(axis=1).argmax()]
        best = max(0.0, value(h, costs[i], lam, rescaling).max())
        assert answers.bound[i] == pytest.approx(best, abs=1e-9)
        if best > 0.0:  # else any plane will do
            assert answers.violations(w)[i] == pytest.approx(best, abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(problems(), st.sampled_from(RESCALINGS[1:]), st.sampled_from([1.0, 0.4, 3.0]))
def test_other_rescalings_are_exact(case, rescaling, lam):
    bound, _, Y, costs, sets, w, scores, _ = case
    answers = ModelOracle(bound, rescaling, lam).planes(w, np.arange(len(Y)))
    for i in range(len(Y)):
        h = scores[i] - scores[i, (sets == Y[i]).all(axis=1).argmax()]
        best = max(0.0, value(h, costs[i], lam, rescaling).max())
        assert answers.bound[i] == pytest.approx(best, abs=1e-9)
        assert answers.violations(w)[i] == pytest.approx(best, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_max_marginals(case):
    bound, _, _, _, sets, w, scores, _ = case
    found = bound.max_marginals(w)
    for i, k in np.ndindex(found.shape):
        on = sets[:, k] == 1
        assert found[i, k] == pytest.approx(scores[i, on].max() - scores[i, ~on].max(), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(problems(most=4), st.sampled_from(RESCALINGS), st.sampled_from([1.0, 0.4]))
def test_searches_by_queries_bound_the_best_set(case, rescaling, lam):
    """What forests of many labels use, on sets that are few enough to try them all."""
    bound, _, Y, costs, sets, w, scores, _ = case
    layout = bound.layout
    if layout.cost_kind or forest_of(len(layout.labels), layout.edges) is None:
        return
    plain = label_set.LabelSetBound(
        **{**vars(bound), "searches": {}, "least_cost": label_set.least_costs(layout, Y.astype(bool))}
    )
    answers = ModelOracle(plain, rescaling, lam).planes(w, np.arange(len(Y)))
    for i in range(len(Y)):
        h = scores[i] - scores[i, (sets == Y[i]).all(axis=1).argmax()]
        best = max(0.0, value(h, costs[i], lam, rescaling).max())
        assert answers.violations(w)[i] <= best + 1e-9 <= answers.bound[i] + 2e-9


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("cost_name", ["hamming", "jaccard"])
def test_many_labels_without_edges(cost_name, rescaling):
    """40 labels: for each number of labels added and missed, the largest gains."""
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(4, 3)), (rng.random((4, 40)) < 0.2).astype(int)
    bound = LabelSet(cost=cost_name, fit_intercept=False).bind(X, Y)
    w = 0.3 * rng.normal(size=bound.n_weights)
    found = ModelOracle(bound, rescaling).planes(w, np.arange(4))
    for i in range(4):
        score, on = X[i] @ w.reshape(3, -1)[:, :40], Y[i] == 1
        add, miss = np.sort(score[~on])[::-1], np.sort(-score[on])[::-1]
        best = 0.0
        for a in range(len(add) + 1):
            for m in range(len(miss) + 1):
                union = on.sum() + a
                c = a + m if cost_name == "hamming" else 1 - (on.sum() - m) / union if union else 0.0
                best = max(best, float(value(np.array(add[:a].sum() + miss[:m].sum()), c, 1.0, rescaling)))
        assert found.bound[i] == pytest.approx(best, abs=1e-9)
        assert found.violations(w)[i] == pytest.approx(best, abs=1e-9)


def test_a_tree_of_many_labels_is_two_trees_of_half_as_many():
    rng = np.random.default_rng(5)
    half = 10
    edges = [(k, int(rng.integers(k))) for k in range(1, half)]
    X, Y = rng.normal(size=(3, 2)), (rng.random((3, 2 * half)) < 0.4).astype(int)
    parts = [LabelSet(graph=edges).bind(X, Y[:, at : at + half]) for at in (0, half)]
    shifted = [(j + half, k + half) for j, k in edges]
    bound = LabelSet(graph=edges + shifted).bind(X, Y)
    assert not bound.layout.enumerable
    w = rng.normal(size=bound.n_weights)
    rows, weights = w[: -len(bound.layout.edges)].reshape(3, -1), w[-len(bound.layout.edges) :]
    for i in range(3):
        total = 0.0
        for p, part in enumerate(parts):
            own = np.zeros(part.n_weights)
            stride, E = part.layout.stride, len(edges)
            own[: 3 * stride].reshape(3, -1)[:, :half] = rows[:, p * half : (p + 1) * half]
            own[3 * stride :] = weights[p * E : (p + 1) * E]
            total += part.answer(own, i, 1.0).value
        assert bound.answer(w, i, 1.0).value == pytest.approx(total)


def test_tree_and_given_edges():
    rng = np.random.default_rng(0)
    on = rng.random((200, 4)) < 0.5
    on[:, 2] = on[:, 0] ^ (rng.random(200) < 0.05)  # 2 follows 0
    on[:, 3] = on[:, 1] ^ (rng.random(200) < 0.1)  # 3 follows 1
    edges = LabelSet(graph="tree").bind(np.ones((200, 1)), on).layout.edges.tolist()
    assert [0, 2] in edges and [1, 3] in edges and len(edges) == 3
    constant = np.column_stack([on[:, 0], np.zeros(200), np.ones(200)])  # labels that are never or always on
    assert len(LabelSet(graph="tree").bind(np.ones((200, 1)), constant).layout.edges) == 0
    names = LabelSet(graph=[("b", "a"), ("a", "b")]).bind(np.ones((2, 1)), [{"a"}, {"b", "c"}]).layout
    assert names.edges.tolist() == [[0, 1]] and names.output(np.array([1, 0, 1])) == {"a", "c"}


def test_costs_of_two_sets():
    X, Y = np.ones((2, 1)), [{"a", "b"}, {"c"}]
    layout = LabelSet(cost={"a": 3.0}).bind(X, Y).layout
    assert layout.cost({"a", "b"}, {"b", "c"}) == 4.0
    assert layout.cost({"z"}, set()) == 3.0  # a label that training has not seen costs the most
    assert LabelSet(cost="f1").bind(X, Y).layout.cost({"a", "b"}, {"b"}) == pytest.approx(1 / 3)
    assert LabelSet(cost="jaccard").bind(X, Y).layout.cost(set(), set()) == 0.0
    model = mm.StructuredSVM(LabelSet(graph="full"), C=10.0, tol=1e-6).fit(np.eye(2), Y)
    assert model.predict(np.eye(2)) == Y and model.score(np.eye(2), Y) == 0.0


MANY = (np.random.default_rng(0).random((4, 19)) < 0.5).astype(int)


@pytest.mark.parametrize(
    ("options", "Y", "message"),
    [
        ({"graph": [(0, 1)], "cost": "f1"}, MANY, 'cost="f1" of 19 labels with edges.*use graph=None'),
        ({"graph": "ring"}, MANY, 'graph must be None, "tree", "full"'),
        ({"graph": [(0, 99)]}, MANY, "edge to 99, which is not a label"),
        ({"graph": [(0, 0)]}, MANY, "from 0 to itself"),
        ({"graph": [0, 1]}, MANY, "in place of an edge"),
        ({"cost": "zero-one"}, MANY, "cost must be hamming, f1, jaccard"),
        ({"cost": {99: 1.0}}, MANY, "weighs 99, which is not a label"),
        ({"cost": {0: -1.0}}, MANY, "cost of label 0 is -1.0"),
        ({}, MANY[:3], "X has 4 examples and Y has 3"),
        ({}, None, "pass Y"),
        ({}, MANY[:, 0], "MulticlassClassifier is for one class per example"),
        ({}, MANY[:, :0], "no columns"),
        ({}, 2 * MANY, r"y has 2 in row \d, column \d"),
        ({}, MANY.astype(str), "dtype <U"),
        ({}, [{"a"}, "b", {"c"}, {"d"}], "example 1 has 'b' in place of a set"),
        ({}, [set(), set(), set(), set()], "no example has a label"),
        ({"classes": ["a"]}, [{"a"}, {"b"}, set(), set()], "example 1 has the label 'b'"),
        ({"classes": ["a"]}, MANY, "19 columns for 1 labels"),
    ],
)
def test_what_cannot_be_done_is_said(options, Y, message):
    with pytest.raises(ValueError, match=message):
        LabelSet(**options).bind(np.ones((4, 2)), Y)


def test_further_data_must_have_the_same_labels():
    layout = LabelSet().bind(np.ones((2, 1)), [{"a"}, {"b"}]).layout
    assert LabelSet().bind(np.ones((1, 1)), [{"b"}], layout=layout).n_examples == 1
    with pytest.raises(ValueError, match="3 columns for 2 labels"):
        LabelSet().bind(np.ones((1, 1)), [[0, 1, 0]], layout=layout)
    with pytest.raises(ValueError, match=r"0 sparse and 2 dense.*fitted with 0 sparse and 1 dense"):
        LabelSet().bind(np.ones((1, 2)), layout=layout)
