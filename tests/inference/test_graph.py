"""Labels and bounds of pairwise graphs against trying every labeling."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.inference.expansion import is_metric
from maxmargin.inference.graph import GraphProblem, Structure, graph_argmax
from maxmargin.inference.junction_tree import TooWide
from maxmargin.inference.roof_duality import roof_labels

SEEDS = st.integers(0, 2**32 - 1)


def all_scores(unary, edges, pairwise, factors=()):
    """Score of every labeling, by plain loops."""
    n, K = unary.shape
    scores = {}
    for y in product(range(K), repeat=n):
        total = sum(unary[p, y[p]] for p in range(n))
        total += sum(table[y[p], y[q]] for (p, q), table in zip(edges, pairwise, strict=True))
        scores[y] = total + sum(table[tuple(y[p] for p in scope)] for scope, table in factors)
    return scores


def random_graph(rng, n, K, *, whole=False, most=8):
    pairs = [(p, q) for p in range(n) for q in range(n) if p != q]
    m = int(rng.integers(0, most + 1)) if pairs else 0
    edges = (
        np.array([pairs[i] for i in rng.integers(0, len(pairs), m)], int).reshape(-1, 2)
        if pairs
        else np.empty((0, 2), int)
    )
    draw = (lambda *s: rng.integers(-3, 4, s).astype(float)) if whole else (lambda *s: rng.normal(size=s))
    return draw(n, K), edges, draw(m, K, K)


def random_forest(rng, n, K, **options):
    unary, _, _ = random_graph(rng, n, K, **options)
    names = rng.permutation(n)
    edges = [(names[q], names[rng.integers(0, q)])[:: rng.choice([-1, 1])] for q in range(1, n) if rng.random() < 0.8]
    return unary, np.array(edges, int).reshape(-1, 2), rng.normal(size=(len(edges), K, K))


def check(answer, scores, *, exact, slack=1e-9):
    best = max(scores.values())
    assert answer.value == pytest.approx(scores[tuple(answer.labels.tolist())], abs=1e-9)
    assert answer.bound >= best - slack
    if exact:
        assert answer.value == pytest.approx(best, abs=slack)
        assert answer.exact or slack > 1e-9
    if answer.exact:
        assert answer.value == pytest.approx(best, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_every_answer_is_between_the_optimum_and_its_bound(seed, n, K, whole):
    unary, edges, pairwise = graph = random_graph(np.random.default_rng(seed), n, K, whole=whole)
    scores = all_scores(*graph)
    for method in ("trws", "relaxation", "branch_and_bound", "auto"):
        check(graph_argmax(unary, edges, pairwise, method=method, max_cells=4), scores, exact=False)
    check(graph_argmax(unary, edges, pairwise, method="integer"), scores, exact=True, slack=1e-5)
    check(graph_argmax(unary, edges, pairwise, method="junction_tree"), scores, exact=True)
    check(graph_argmax(unary, edges, pairwise), scores, exact=True)


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(1, 7), st.integers(1, 3), st.booleans())
def test_forests_are_exact(seed, n, K, whole):
    unary, edges, pairwise = graph = random_forest(np.random.default_rng(seed), n, K, whole=whole)
    scores = all_scores(*graph)
    answer = graph_argmax(unary, edges, pairwise)
    check(answer, scores, exact=True)
    assert answer.method == "tree"
    check(graph_argmax(unary, edges, pairwise, method="trws"), scores, exact=True)  # the relaxation of a tree is tight


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(1, 7), st.booleans())
def test_two_labels(seed, n, whole):
    rng = np.random.default_rng(seed)
    unary, edges, pairwise = random_graph(rng, n, 2, whole=whole, most=12)
    scores = all_scores(unary, edges, pairwise)
    best = max(scores.values())
    problem = GraphProblem.of(unary, edges, pairwise)
    proven, bound = roof_labels(problem)
    winners = [y for y, score in scores.items() if score >= best - 1e-9]
    assert any(all(a in (-1, b) for a, b in zip(proven, y, strict=True)) for y in winners)  # persistency
    assert bound >= best - 1e-9
    check(graph_argmax(unary, edges, pairwise, method="roof_duality"), scores, exact=False)
    relaxed = graph_argmax(unary, edges, pairwise, method="relaxation")
    assert bound == pytest.approx(relaxed.bound, abs=1e-6)  # the roof dual is the relaxation (Boros & Hammer)
    # equal labels favoured: a cut
    pairwise[:, 0, 0] += np.maximum(pairwise[:, 0, 1] + pairwise[:, 1, 0] - pairwise[:, 0, 0] - pairwise[:, 1, 1], 0.0)
    scores = all_scores(unary, edges, pairwise)
    check(graph_argmax(unary, edges, pairwise, method="cut"), scores, exact=True)
    check(graph_argmax(unary, edges, pairwise, method="roof_duality"), scores, exact=not whole)
    assert graph_argmax(unary, edges, pairwise, max_cells=0).method in ("cut", "tree")


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 5), st.integers(2, 4))
def test_expansion(seed, n, K):
    rng = np.random.default_rng(seed)
    unary, edges, _ = random_graph(rng, n, K, most=10)
    places = rng.normal(size=(K, 2))
    metric = -np.linalg.norm(places[:, None] - places[None], axis=-1)
    weights = rng.random(len(edges))
    scores = all_scores(unary, edges, weights[:, None, None] * metric)
    answer = graph_argmax(unary, edges, metric, weights=weights, method="expansion")
    check(answer, scores, exact=False)
    assert answer.method == "expansion+trws"
    y = answer.labels
    for a in range(K):  # no expansion move is better
        moves = [tuple(np.where(bits, a, y)) for bits in product([False, True], repeat=n)]
        assert max(scores[move] for move in moves) <= answer.value + 1e-9
    check(graph_argmax(unary, edges, metric, weights=weights, max_cells=0), scores, exact=False)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(3, 5), st.integers(2, 3))
def test_factors_over_more_than_two_nodes(seed, n, K):
    rng = np.random.default_rng(seed)
    unary, edges, pairwise = random_graph(rng, n, K)
    scopes = [tuple(map(int, rng.permutation(n)[: rng.integers(1, 4)])) for _ in range(3)]
    factors = [(scope, rng.normal(size=(K,) * len(scope))) for scope in scopes]
    answer = graph_argmax(unary, edges, pairwise, factors=factors)
    check(answer, all_scores(unary, edges, pairwise, factors), exact=True)
    assert answer.method == "junction_tree"


def test_bounds_of_a_frustrated_triangle():
    """Three nodes that all want to differ, two labels: the best has one equal pair, the relaxation none."""
    edges, unequal = [(0, 1), (1, 2), (0, 2)], np.array([[0.0, 1.0], [1.0, 0.0]])
    unary = np.zeros((3, 2))
    for method in ("trws", "relaxation", "roof_duality"):
        answer = graph_argmax(unary, edges, unequal, method=method)
        assert answer.value == 2.0 and answer.bound == pytest.approx(3.0, abs=1e-6) and not answer.exact
    for method in ("integer", "junction_tree", "branch_and_bound", "auto"):
        assert graph_argmax(unary, edges, unequal, method=method).bound == pytest.approx(2.0, abs=1e-5)
    assert (roof_labels(GraphProblem.of(unary, edges, unequal))[0] == -1).all()


def test_messages_close_the_gap_of_an_attractive_grid():
    """Potts scores on a grid of many labels: labels and bound of the messages against the integer program."""
    rng = np.random.default_rng(0)
    side, K = 6, 4
    place = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [
            np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], 1),
            np.stack([place[:-1].ravel(), place[1:].ravel()], 1),
        ]
    )
    unary = rng.normal(size=(side * side, K))
    exact = graph_argmax(unary, edges, 0.4 * np.eye(K), method="integer")
    answer = graph_argmax(unary, edges, 0.4 * np.eye(K), max_cells=0)
    assert answer.bound >= exact.value - 1e-6 and answer.value <= exact.value + 1e-6
    assert answer.bound - answer.value <= 0.02 * abs(exact.value)


def test_branch_and_bound_proves_what_messages_alone_can_not():
    """Random tables on small dense graphs, where the relaxation is seldom tight: the search is, nearly always."""
    loose = closed = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, K = 6, 3
        edges = np.array([(p, q) for p in range(n) for q in range(p) if rng.random() < 0.7])
        unary, pairwise = 0.1 * rng.normal(size=(n, K)), rng.normal(size=(len(edges), K, K))
        best = graph_argmax(unary, edges, pairwise, method="junction_tree")
        few = graph_argmax(unary, edges, pairwise, method="trws")
        many = graph_argmax(unary, edges, pairwise, method="branch_and_bound", max_branches=500)
        assert few.bound >= many.bound - 1e-9 and many.bound >= best.value - 1e-9
        assert best.value >= many.value - 1e-9 >= few.value - 2e-9
        loose += not few.exact
        closed += many.exact and not few.exact
        assert graph_argmax(unary, edges, pairwise, method="branch_and_bound", max_branches=1).bound == few.bound
    assert loose > 10 and closed == loose


def test_forest_structure():
    assert Structure.of(4, [(0, 1), (3, 2)]).forest
    assert not Structure.of(3, [(0, 1), (1, 2), (2, 0)]).forest
    assert not Structure.of(2, [(0, 1), (1, 0)]).forest
    assert Structure.of(3, np.empty((0, 2), int)).forest
    empty = graph_argmax(np.empty((0, 3)), np.empty((0, 2), int), np.zeros((3, 3)))
    assert len(empty.labels) == 0 and empty.exact


def test_is_metric():
    unary, edges = np.zeros((2, 3)), [(0, 1)]
    assert is_metric(GraphProblem.of(unary, edges, np.eye(3)))
    assert not is_metric(GraphProblem.of(unary, edges, -np.eye(3)))
    far = -np.array([[0, 1, 5], [1, 0, 1], [5, 1, 0.0]])  # the triangle inequality fails
    assert not is_metric(GraphProblem.of(unary, edges, far))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unary": np.zeros(3)}, "a row of scores for each node"),
        ({"unary": np.full((3, 2), np.nan)}, r"unary\[0, 0\] is nan"),
        ({"pairwise": np.zeros((2, 3, 3))}, r"give one table \(2, 2\)"),
        ({"pairwise": np.full((2, 2), -np.inf)}, "a large negative number .* forbids"),
        ({"edges": [(0, 3), (0, 1)]}, r"edges\[0\]"),
        ({"edges": [(0, 1), (1, 1)]}, "joins node 1 with itself"),
        ({"weights": [1.0]}, "one for each of the 2 edges"),
        ({"method": "magic"}, "method must be one of"),
        ({"edges": [(0, 1), (1, 0)], "method": "tree"}, "close a cycle"),
        ({"pairwise": -np.eye(2), "method": "cut"}, "not submodular"),
        ({"pairwise": -np.eye(2), "method": "expansion"}, "not metric"),
        ({"message_passes": 0}, "message_passes must be a whole number from 1 to .*, got 0"),
        ({"max_branches": 2.5}, "max_branches must be a whole number from 0 to .*, got 2.5"),
        ({"max_cells": None}, "max_cells must be a whole number from 0 to"),
        ({"factors": [((0, 0), np.zeros((2, 2)))]}, "factor 0 has the scope"),
        ({"factors": [((0, 1), np.zeros(2))]}, "its scope"),
        ({"factors": [((0,), np.zeros(2))], "method": "trws"}, "junction_tree"),
    ],
)
def test_bad_input(change, message):
    arguments = {"unary": np.zeros((3, 2)), "edges": [(0, 1), (1, 2)], "pairwise": np.eye(2)} | change
    with pytest.raises(ValueError, match=message):
        graph_argmax(**arguments)


def test_three_labels_can_not_be_cut():
    for method in ("cut", "roof_duality"):
        with pytest.raises(ValueError, match="two, use"):
            graph_argmax(np.zeros((2, 3)), [(0, 1)], np.eye(3), method=method)


def test_too_wide():
    with pytest.raises(TooWide):
        graph_argmax(np.zeros((3, 2)), [(0, 1), (1, 2), (2, 0)], np.eye(2), method="junction_tree", max_cells=2)
