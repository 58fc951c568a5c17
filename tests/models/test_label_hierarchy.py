"""Hierarchies against trying all sets: every kernel, shape, cost and rescaling; and the checks of their data."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.models import hierarchy as hierarchies
from maxmargin.models.hierarchy import Hierarchy, with_ancestors
from maxmargin.models.hierarchy_pack import cost_units
from maxmargin.models.label_set import LabelSet
from maxmargin.models.labels import Labels
from maxmargin.oracles.oracle import ModelOracle
from reference.hierarchies import outputs
from reference.label_sets import cost, value

from .label_checks import check_argmaxes

RESCALINGS = ("margin", "slack", "sqrt_slack", "unit")


@st.composite
def problems(draw, few=None, kinds=("hamming", "depth", "free", "odd", "f1", "jaccard"), shapes=("tree", "graph")):
    """(bound, features with the constant one last, sets, costs, all outputs, w, their scores)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, M = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 3, 6, 9]))
    shape, kind = draw(st.sampled_from(shapes)), draw(st.sampled_from(kinds))
    single, leaves_only = draw(st.booleans()) and few is None, draw(st.booleans())
    number = rng.permutation(M)  # parents need not come first
    parents = [[] for _ in range(M)]
    for k in range(1, M):
        above = rng.permutation(k)[: 1 if shape == "tree" else rng.integers(1, 3)]
        if rng.random() < 0.8:
            parents[number[k]] = [int(number[p]) for p in above]
    sets = outputs(parents, single, leaves_only)
    weights = np.ones((M, 2))
    if kind == "depth":
        weights[:] = rng.integers(1, 4, (M, 1)) / 2
    elif kind == "free":  # mistakes on some labels cost nothing
        weights[:] = rng.integers(0, 3, (M, 1))
    elif kind == "odd":
        weights[:] = rng.random((M, 1))
    given_cost = kind if kind in ("hamming", "f1", "jaccard") else dict(enumerate(weights[:, 0].tolist()))
    integral = draw(st.booleans())

    def numbers(*shape):
        return rng.integers(-2, 3, shape).astype(float) if integral else rng.normal(size=shape)

    dense = numbers(n, 2)
    X = sp.csr_array(dense) if draw(st.booleans()) else dense
    Y = sets[rng.integers(len(sets), size=n)]
    model = LabelSet(
        hierarchy={k: ps for k, ps in enumerate(parents)},
        paths="single" if single else "multiple",
        leaves_only=leaves_only,
        cost=given_cost,
        intercept_scaling=2.0,
    )
    with mock.patch.object(hierarchies, "MOST_LISTED", 4096 if few is None else few):
        bound = model.bind(X, Y)
        _ = bound.layout.outputs.listed  # is kept
    w = numbers(bound.n_weights) * draw(st.sampled_from([0.0, 0.5, 1.0]))
    Z = np.hstack([dense, np.full((n, 1), 2.0)])
    costs = np.array([cost(t, sets, kind, weights) for t in Y])
    scores = Z @ w.reshape(-1, bound.layout.stride)[:, :M] @ sets.T
    return bound, Z, Y, costs, sets, w, scores


def check_argmax(case, lam):
    check_argmaxes(*case, lam, exact=case[0].layout.outputs.exact)


def best_value(case, i, lam, rescaling):
    _, _, Y, costs, sets, _, scores = case
    h = scores[i] - scores[i, (sets == Y[i]).all(axis=1).argmax()]
    return max(0.0, value(h, costs[i], lam, rescaling).max())


@settings(max_examples=80, deadline=None)
@given(problems(), st.sampled_from([0.0, 1.0, 0.5, -1.0]))
def test_argmax_cost_bound_and_plane(case, lam):
    check_argmax(case, lam)


@settings(max_examples=60, deadline=None)
@given(problems(few=0, kinds=("hamming", "depth", "free", "odd")), st.sampled_from([0.0, 1.0, -1.0]))
def test_argmax_where_outputs_are_many(case, lam):
    """What large hierarchies use: dynamic programs on trees, and minimum cuts."""
    check_argmax(case, lam)


@settings(max_examples=80, deadline=None)
@given(problems(), st.sampled_from(RESCALINGS[1:]), st.sampled_from([1.0, 0.4, 3.0]))
def test_other_rescalings_are_exact(case, rescaling, lam):
    bound, _, Y, _, _, w, _ = case
    answers = ModelOracle(bound, rescaling, lam).planes(w, np.arange(len(Y)))
    for i in range(len(Y)):
        best = best_value(case, i, lam, rescaling)
        assert answers.bound[i] == pytest.approx(best, abs=1e-9)
        if best > 0.0:  # else any plane will do
            assert answers.violations(w)[i] == pytest.approx(best, abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(problems(few=0, kinds=("hamming", "depth", "free", "odd")), st.sampled_from(RESCALINGS[1:]), st.booleans())
def test_other_rescalings_where_outputs_are_many(case, rescaling, large):
    """Tables over costs are exact; queries bound the best set."""
    bound, _, Y, _, _, w, _ = case
    lam = 3.0 if large else 1.0
    tables = "slack" in bound.searches
    assert tables == (bound.layout.outputs.hierarchy.forest is not None and cost_units(bound.layout.costs) is not None)
    answers = ModelOracle(bound, rescaling, lam).planes(w, np.arange(len(Y)))
    for i in range(len(Y)):
        best = best_value(case, i, lam, rescaling)
        if tables:
            assert answers.bound[i] == pytest.approx(best, abs=1e-9)
            assert best == 0.0 or answers.violations(w)[i] == pytest.approx(best, abs=1e-9)
        else:
            assert answers.violations(w)[i] <= best + 1e-9 <= answers.bound[i] + 2e-9


@settings(max_examples=60, deadline=None)
@given(st.one_of(problems(), problems(few=0, kinds=("hamming",))))
def test_max_marginals_are_exact_and_fall_along_the_hierarchy(case):
    bound, _, _, _, sets, w, scores = case
    found = bound.max_marginals(w)
    if bound.layout.outputs.exact:
        for i, k in np.ndindex(found.shape):
            on = sets[:, k] == 1
            assert found[i, k] == pytest.approx(scores[i, on].max() - scores[i, ~on].max(), abs=1e-9)
    for parent, child in bound.layout.outputs.hierarchy.edges:
        assert (found[:, child] <= found[:, parent]).all()


@settings(max_examples=60, deadline=None)
@given(st.one_of(problems(), problems(few=0, kinds=("hamming",), shapes=("tree",))), st.integers(1, 9))
def test_k_best(case, k):
    bound, _, _, _, sets, w, scores = case
    assert "k_best" in bound.capabilities
    for i, row in enumerate(scores):
        found, values = bound.k_best(w, i, k)
        np.testing.assert_allclose(values, np.sort(row)[::-1][:k], atol=1e-9)
        known = {tuple(y): score for y, score in zip(sets.tolist(), row, strict=True)}
        answers = [tuple(y) for y in found.astype(int).tolist()]
        assert len(set(answers)) == len(answers)
        np.testing.assert_allclose(values, [known[y] for y in answers], atol=1e-9)


def test_k_best_of_many_sets_with_several_parents_is_refused():
    with mock.patch.object(hierarchies, "MOST_LISTED", 0):
        bound = LabelSet(hierarchy=[(0, 2), (1, 2)]).bind(np.ones((1, 1)), np.ones((1, 3), int))
        assert "k_best" not in bound.capabilities and bound.layout.inference == "minimum cut"


def test_a_large_tree_is_the_sum_of_its_parts():
    """Two copies of a tree of 10 labels have the best sets of both; tables and queries agree on the whole."""
    rng = np.random.default_rng(5)
    parent = np.array([-1] + [int(rng.integers(k)) for k in range(1, 10)])
    both = np.concatenate([parent, np.where(parent < 0, -1, parent + 10)])
    X = rng.normal(size=(3, 2))
    Y = Hierarchy.of(both, Labels(range(20))).closed(rng.random((3, 20)) < 0.2)
    whole = LabelSet(hierarchy=both).bind(X, Y)
    w = rng.normal(size=whole.n_weights)
    total = np.zeros(3)
    for at in (0, 10):
        part = LabelSet(hierarchy=parent).bind(X, Y[:, at : at + 10])
        rows = np.zeros((3, part.layout.stride))
        rows[:, :10] = w.reshape(3, -1)[:, at : at + 10]
        total += [part.answer(rows.ravel(), i, 1.0).value for i in range(3)]
    np.testing.assert_allclose([whole.answer(w, i, 1.0).value for i in range(3)], total)


FORMS = {
    "pairs": [("a", "b"), ("a", "c"), ("c", "d")],
    "mapping": {"b": "a", "c": "a", "d": "c", "a": None},
    "vector": [-1, 0, 0, 2],
    "vector of floats": np.array([-1.0, 0.0, 0.0, 2.0]),
    "array": np.array([-1, 0, 0, 2], np.int32),
    "redundant": [("a", "b"), ("a", "c"), ("c", "d"), ("a", "d"), ("c", "d")],
    "parents": {"b": ["a"], "c": {"a"}, "d": ("c"), "a": []},
}


@pytest.mark.parametrize("form", [*FORMS, "networkx"])
def test_forms(form):
    given = FORMS.get(form)
    if given is None:
        given = pytest.importorskip("networkx").DiGraph(FORMS["pairs"])
    found = Hierarchy.of(given, Labels("abcd"))
    assert found.edges.tolist() == [[0, 1], [0, 2], [2, 3]]
    assert found.depth.tolist() == [0, 1, 1, 2] and found.leaves == [1, 3]
    assert with_ancestors([{"d"}, {"b"}, set()], given, "abcd") == [set("acd"), set("ab"), set()]
    np.testing.assert_array_equal(with_ancestors(np.eye(4, dtype=int), given, "abcd")[3], [1, 0, 1, 1])


def test_labels_of_the_hierarchy_that_no_example_has():
    bound = LabelSet(hierarchy=FORMS["pairs"]).bind(np.ones((2, 1)), [{"a", "b"}, {"a"}])
    assert bound.layout.labels.classes == ["a", "b", "c", "d"]
    layout = LabelSet(hierarchy=FORMS["mapping"]).bind(np.ones((1, 1)), [{"a"}]).layout
    assert layout.outputs.hierarchy.edges.tolist() == [[0, 1], [0, 2], [2, 3]]


CLOSED = [[1, 1, 0, 0], [1, 0, 1, 1]]
REFUSED = {
    "cycle": ({"hierarchy": [(0, 1), (1, 2), (2, 0), (0, 3)]}, CLOSED, "has a cycle: 0 -> 1 -> 2 -> 0; remove one"),
    "itself": ({"hierarchy": [(1, 1)]}, CLOSED, "has a cycle: 1 -> 1"),
    "unknown": ({"hierarchy": [(0, 9)]}, CLOSED, "has 9, which is not a label; labels are"),
    "short": ({"hierarchy": [-1, 0]}, CLOSED, "vector of 2 parents for 4 labels"),
    "half": ({"hierarchy": [-1.0, 0.0, 0.5, -1.0]}, CLOSED, "has -1.0 in place of a pair"),
    "outside": ({"hierarchy": [-1, 0, 4, -1]}, CLOSED, "has 4 as the parent of label 2; give the number of a column"),
    "triple": ({"hierarchy": [(0, 1, 2)]}, CLOSED, r"\(0, 1, 2\) in place of a pair \(parent, child\)"),
    "iterator": ({"hierarchy": iter([(0, 1)])}, CLOSED, "hierarchy is <list_iterator"),
    "text": ({"hierarchy": "tree"}, CLOSED, "hierarchy is 'tree'; give a directed graph"),
    "open": ({}, [[1, 1, 0, 0], [1, 0, 0, 1]], "example 1 has the label 3 without its parent 2; add all ancestors"),
    "inner": ({"leaves_only": True}, [[1, 0, 1, 0], CLOSED[0]], "example 0 has the label 2 and none of its children"),
    "two paths": ({"paths": "single"}, [CLOSED[0], [1, 1, 1, 0]], "example 1 has the label 2 beside the path to 1"),
    "paths": ({"paths": "both"}, CLOSED, 'paths must be "multiple" or "single"'),
    "graph": ({"graph": "full"}, CLOSED, "graph and hierarchy cannot be combined"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    options, Y, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        LabelSet(**{"hierarchy": FORMS["vector"], **options}).bind(np.ones((2, 1)), np.array(Y))


def test_undirected_graphs_and_costs_of_too_many_outputs_are_refused():
    networkx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="undirected graph; give a DiGraph"):
        LabelSet(hierarchy=networkx.Graph([(0, 1)])).bind(np.ones((1, 1)), [[1, 1]])
    many = np.ones((1, 20), int)
    with pytest.raises(ValueError, match='cost="f1" needs a hierarchy with at most 4096 outputs'):
        LabelSet(hierarchy=[-1] * 20, cost="f1").bind(np.ones((1, 1)), many)
