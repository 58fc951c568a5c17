"""Slack searches that tabulate all costs, on forests, sequences and label sets, against all outputs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.costs import MatrixCost
from maxmargin.costs.units import unit_of
from maxmargin.models.chain import Chain
from maxmargin.models.graph import Graph
from maxmargin.models.hmm import HMM
from maxmargin.models.label_set import LabelSet

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SEEDS = st.integers(0, 2**32 - 1)
SEARCHES = {"slack": 1.0, "sqrt_slack": 0.5}
WHOLE = [[0, 1, 2], [3, 0, 1], [0, 2, 0]]  # a mistake may cost nothing
ODD = [[0, 1, np.sqrt(2)], [np.pi, 0, 1], [0.3, 1, 0]]  # no multiples of one number


def table_cost(table):
    """A cost of labels "a", "b", "c" from a table."""
    return lambda true, label: float(table["abc".index(true)]["abc".index(label)])


def best_value(points, power):
    """The largest ``cost^p h`` over pairs (h, cost), and 0."""
    return max((cost**power * h for h, cost in points if cost > 0.0), default=0.0)


def check(bound, w, example, points, exact=True):
    """Answers against all outputs, given as pairs (h, cost) with h = 1 - w . psi."""
    for search, power in SEARCHES.items():
        answer, best = bound.answer(w, example, 1.0, search), max(best_value(points, power), 0.0)
        h = 1.0 - float(w[answer.indices] @ answer.psi)
        assert answer.value == pytest.approx(max(answer.cost**power * h, 0.0) if answer.cost else 0.0, abs=1e-9)
        assert answer.bound >= best - 1e-9 and answer.value <= best + 1e-9
        if exact:
            assert answer.value == pytest.approx(best, abs=1e-9)
            assert answer.bound == pytest.approx(best, abs=1e-9)


def forest(rng, n):
    """Edges of a random forest, nodes in any order and edges either way round."""
    name = rng.permutation(n)
    edges = [(name[q], name[rng.integers(q)]) for q in range(1, n) if rng.random() < 0.85]
    return np.array([edge if rng.random() < 0.5 else edge[::-1] for edge in edges], int).reshape(-1, 2)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(1, 5), st.sampled_from(["full", "symmetric", "potts"]), st.booleans())
def test_forests_of_labels(seed, n, pairwise, odd):
    rng = np.random.default_rng(seed)
    edges = forest(rng, n)
    X = [{"node": rng.normal(size=(n, 2)), "edges": edges, "edge": rng.normal(size=(len(edges), 2))}]
    y = [["abc"[k] for k in rng.integers(3, size=n)]]
    table = ODD if odd else WHOLE
    model = Graph(pairwise, cost=table_cost(table), classes=["a", "b", "c"])
    bound = model.bind(X, y, node_cost=[rng.integers(0, 3, n)])
    w = rng.normal(size=bound.n_weights)
    true, problem, costs = bound.codes[0], bound.problem(w, 0), np.array(table)
    points = [
        (1.0 + problem.score(codes) - problem.score(true), float(bound.costs[0] @ costs[true, codes]))
        for codes in np.array(list(product(range(3), repeat=n)), np.int32)
    ]
    check(bound, w, 0, points, exact=not odd)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 6), st.booleans(), st.booleans())
def test_hidden_markov_models(seed, T, odd, normalize):
    rng = np.random.default_rng(seed)
    X, y = [rng.integers(0, 4, T).tolist()], ["".join("abc"[k] for k in rng.integers(3, size=T))]
    table = ODD if odd else WHOLE
    bound = HMM(cost=MatrixCost(table, normalize=normalize), classes=list("abc"), symbols=range(4)).bind(
        X, [list(y[0])]
    )
    w = 2.0 * rng.normal(size=bound.n_weights)
    unary, (pair,) = bound.tables(w, 0)
    score = lambda codes: unary[np.arange(T), codes].sum() + pair[codes[:-1], codes[1:]].sum()  # noqa: E731
    true = bound.truth(0)
    points = [
        (1.0 + score(np.array(codes)) - score(true), bound.layout.cost(list(y[0]), ["abc"[k] for k in codes]))
        for codes in product(range(3), repeat=T)
    ]
    check(bound, w, 0, points, exact=not odd)


@settings(max_examples=12, deadline=None)
@given(SEEDS, st.booleans(), st.sampled_from(["tree", "star", "none"]))
def test_forests_of_label_sets_with_weighted_costs(seed, odd, shape):
    """More labels than are enumerated: those beyond the first few change nothing, being sure and free."""
    rng, few, M = np.random.default_rng(seed), 7, 20
    pairs = {"tree": [(k, int(rng.integers(k))) for k in range(1, few)], "star": [(0, k) for k in range(1, few)]}
    pairs = pairs.get(shape, [])
    weights = rng.choice([0.5, 1.0, 3.0], few)
    weights[0] = np.sqrt(2) if odd else weights[0]
    cost = {k: float(weights[k]) if k < few else 0.0 for k in range(M)}
    X, Y = np.array([[1.0]]), rng.integers(0, 2, (1, M))
    bound = LabelSet(graph=pairs, cost=cost, fit_intercept=False, classes=range(M)).bind(X, Y)
    w = np.zeros(bound.n_weights)
    groups = bound.layout.groups(w)  # views
    groups["coef"][0, :few] = rng.normal(size=few)
    groups["coef"][0, few:] = 100.0 * (2 * Y[0, few:] - 1)
    groups["edge"][:] = rng.normal(size=len(pairs))
    j, k = bound.layout.edges.T if pairs else np.empty((2, 0), int)
    score = lambda z: groups["coef"][0, :few] @ z + groups["edge"] @ (z[j] * z[k])  # noqa: E731
    true, points = Y[0, :few], []
    for z in np.array(list(product((0, 1), repeat=few))):
        points.append((1.0 + score(z) - score(true), float(weights @ (z != true))))
    check(bound, w, 0, points, exact=not odd)
    assert bound.layout.slack_inference == ("branching" if odd else "all costs")


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 6), st.booleans())
def test_chains_with_any_costs_have_a_bound(seed, T, odd):
    rng = np.random.default_rng(seed)
    X, y = [rng.normal(size=(T, 2))], [["abc"[k] for k in rng.integers(3, size=T)]]
    table = ODD if odd else WHOLE
    bound = Chain(cost=table_cost(table), classes=list("abc")).bind(X, y)
    w = rng.normal(size=bound.n_weights)
    unary, pairs = bound.tables(w, 0)
    pair = pairs[0]
    score = lambda codes: unary[np.arange(T), codes].sum() + pair[codes[:-1], codes[1:]].sum()  # noqa: E731
    true = bound.truth(0)
    points = [
        (1.0 + score(np.array(codes)) - score(true), float(sum(table[t][k] for t, k in zip(true, codes, strict=True))))
        for codes in product(range(3), repeat=T)
    ]
    check(bound, w, 0, points, exact=not odd)


def test_chains_whose_costs_have_no_unit_are_fitted_with_a_true_certificate():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(4, 2)) for _ in range(8)], [["ab"[k] for k in rng.integers(2, size=4)] for _ in range(8)]
    options = {"rescaling": "slack", "class_weight": {"a": 1.0, "b": 2**0.5}, "max_passes": 50}
    tagger = mm.SequenceTagger(**options).fit(X, y)
    certificate = tagger.certificate_
    assert certificate.dual <= certificate.primal
    fine = {("a", "b"): 0.001, ("b", "a"): 500.0}  # a unit, but too many costs
    many = mm.SequenceTagger(rescaling="slack", cost=lambda a, b: fine.get((a, b), 0.0), max_passes=20).fit(X, y)
    assert many.certificate_.dual <= many.certificate_.primal


def test_units():
    assert unit_of(np.array([0.0, 0.5, 1.5])) == 0.5
    assert unit_of(np.array([2.0, 3.0])) == 1.0
    assert unit_of(np.array([1 / 3, 0.5])) == pytest.approx(1 / 6)
    assert unit_of(np.zeros(3)) == 0.0
    assert unit_of(np.array([1.0, 2**0.5])) is None
    assert unit_of(np.array([1e-320, 1e100])) is None
