"""The graph model against trying every labeling, its training against a conic solver, and the checks of its data."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin import MarginRescaling
from maxmargin.inference.min_cut import directions
from maxmargin.models.graph import Graph
from maxmargin.models.grid import Grid
from maxmargin.solvers.driver import run
from maxmargin.testing import check_model
from reference.qp import solve_primal

from .batches import plane, planes

SHAPES = {  # nodes and edges
    "one node": (1, []),
    "no edges": (3, []),
    "tree": (4, [(1, 0), (2, 1), (1, 3)]),
    "triangle": (3, [(0, 1), (2, 1), (0, 2)]),
    "square": (4, [(0, 1), (1, 3), (3, 2), (2, 0)]),
    "twice": (2, [(0, 1), (1, 0)]),
}


def tables_of(weights, pairwise, K):
    """(K, K) scores of one edge feature from its weights, written out entry by entry."""
    table = np.zeros((K, K))
    pairs = [(i, j) for i in range(K) for j in range(i, K)]
    for i in range(K):
        for j in range(K):
            if pairwise == "full":
                table[i, j] = weights[i * K + j]
            elif pairwise == "symmetric":
                table[i, j] = weights[pairs.index((min(i, j), max(i, j)))]
            else:
                table[i, j] = -weights[0] * (i != j)
    return table


def score(x, y, w, pairwise, K, used):
    """w . phi(x, y), node by node; nodes that are not used are not there."""
    F, G = x["node"].shape[1], x["edge"].shape[1]
    P = {"full": K * K, "symmetric": K * (K + 1) // 2, "potts": 1}[pairwise]
    total = sum(w[j * K + y[p]] * x["node"][p, j] for p in range(len(y)) for j in range(F) if used[p])
    for e, (p, q) in enumerate(x["edges"]):
        if used[p] and used[q]:
            for g in range(G):
                begin = F * K + g * P
                total += tables_of(w[begin : begin + P], pairwise, K)[y[p], y[q]] * x["edge"][e, g]
    at = F * K + G * P
    for scope, features in x.get("factors", ()):
        for g, value in enumerate(features):
            cell = np.ravel_multi_index([y[p] for p in scope], (K,) * len(scope))
            total += value * w[at + g * K ** len(scope) + cell] * all(used[p] for p in scope)
    return total


def examples(seed, K, *, shapes=tuple(SHAPES), ignored=0.15, F=2, G=2, factors=False):
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for name in shapes:
        n, edges = SHAPES[name]
        x = {"node": rng.normal(size=(n, F)), "edges": np.array(edges, int).reshape(-1, 2)}
        x["edge"] = rng.random((len(edges), G))
        if factors and n >= 3:
            x["factors"] = [(tuple(map(int, rng.permutation(n)[:3])), rng.normal(size=2)) for _ in range(2)]
        X.append(x)
        Y.append(np.where(rng.random(n) < ignored, -1, rng.integers(0, K, n)).tolist())
    return X, Y, rng


def answers(x, y, w, pairwise, K, lam, table, weights=None):
    """(value against the truth, cost) of every labeling."""
    used = np.array(y) >= 0
    weights = np.ones(len(y)) if weights is None else weights
    truth = score(x, np.where(used, y, 0), w, pairwise, K, used)
    for found in product(range(K), repeat=len(y)):
        cost = sum(weights[p] * table[y[p], found[p]] for p in range(len(y)) if used[p])
        yield found, score(x, found, w, pairwise, K, used) - truth + lam * cost, cost


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["full", "symmetric", "potts"]),
    st.sampled_from(["auto", "trws", "branch_and_bound", "junction_tree"]),
    st.sampled_from([1.0, 0.0, 0.5, -1.0]),
)
def test_argmax_plane_and_bound_against_brute_force(seed, K, pairwise, method, lam):
    X, Y, rng = examples(seed, K)
    table = rng.random((K, K)) * (1 - np.eye(K))
    weights = [rng.random(len(y)) for y in Y]
    model = Graph(pairwise, cost=table, method=method, classes=range(K), ignore=-1)
    bound = model.bind(X, Y, node_cost=weights)
    w = rng.normal(size=bound.n_weights)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        values = {f: (v, c) for f, v, c in answers(x, y, w, pairwise, K, lam, table, weights[i])}
        best = max(v for v, _ in values.values())
        (row,), _ = planes(bound, w, [i], lam)
        made, output, result = plane(bound, w, i, lam, 1)
        found = tuple(output[:-1].tolist())
        assert made == 1 and result[0] == pytest.approx(values[found][0], abs=1e-9)
        assert result[2] == pytest.approx(values[found][1], abs=1e-9)
        assert result[1] >= best - 1e-9
        assert row.b - w @ row.a == pytest.approx(values[found][0], abs=1e-9)
        answer = bound.solution(w, i, lam)
        if answer.method not in ("trws", "branch_and_bound"):
            assert result[0] == pytest.approx(best, abs=1e-9) and result[1] == pytest.approx(best, abs=1e-9)
        problem = bound.problem(w, i, lam)
        assert problem.score(answer.labels) == pytest.approx(answer.value, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]))
def test_factors_against_brute_force(seed, K):
    X, Y, rng = examples(seed, K, factors=True)
    bound = Graph(classes=range(K), ignore=-1).bind(X, Y)
    w = rng.normal(size=bound.n_weights)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        values = {f: v for f, v, _ in answers(x, y, w, "full", K, 1.0, 1 - np.eye(K))}
        _, output, result = plane(bound, w, i, 1.0, 1)
        assert result[0] == pytest.approx(max(values.values()), abs=1e-9)
        assert values[tuple(output[:-1].tolist())] == pytest.approx(result[0], abs=1e-9)
        (row,), _ = planes(bound, w, [i], 1.0)
        assert row.b - w @ row.a == pytest.approx(result[0], abs=1e-9)


@pytest.mark.parametrize("pairwise", ["full", "symmetric", "potts"])
@pytest.mark.parametrize("method", ["auto", "trws", "branch_and_bound"])
def test_contract(pairwise, method):
    X, Y, _ = examples(1, 3, factors=method == "auto")
    check_model(Graph(pairwise, method=method, cost=mm.HammingCost(normalize=True), ignore=-1), X, Y, n_trials=4)


@pytest.mark.parametrize("method", ["roof_duality", "expansion", "relaxation", "integer"])
def test_plain_methods_give_planes_with_bounds(method):
    K = 2
    X, Y, rng = examples(3, K)
    model = Graph("potts", method=method, classes=range(K), ignore=-1)
    bound = model.bind(X, Y)
    w = rng.normal(size=bound.n_weights)
    w[bound.layout.positive()] = np.abs(w[bound.layout.positive()])
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        values = [v for _, v, _ in answers(x, y, w, "potts", K, 1.0, 1 - np.eye(K))]
        index, value, cost, gain, limit, _ = bound.answer(w, i, 1.0)
        assert cost - w[index] @ value == pytest.approx(gain, abs=1e-9)
        assert limit >= max(values) - 1e-6 and gain <= max(values) + 1e-9
        again = model.bind([x], layout=bound.layout)
        best = max(product(range(K), repeat=len(y)), key=lambda f: score(x, f, w, "potts", K, np.ones(len(y), bool)))
        assert again.solution(w, 0).labels.tolist() == list(best)  # two labels that like to agree: all four are exact
    assert len(bound.fingerprint) == 64


def test_two_labels_on_a_grid_are_the_grid_model():
    """With Potts edges and the difference of two node weights the graph model is the grid model of cuts."""
    rng = np.random.default_rng(0)
    shape = (4, 5)
    node, edge = rng.normal(size=(*shape, 2)), rng.random((2, *shape, 2))
    mask = rng.integers(0, 2, shape)
    mask[0, 0] = 1
    place = np.arange(20).reshape(shape)
    edges, features = [], []
    for j, step in enumerate(directions(4)):
        for p in np.ndindex(shape):
            q = tuple(np.add(p, step))
            if q in {tuple(r) for r in np.ndindex(shape)}:
                edges.append((place[p], place[q]))
                features.append(edge[(j, *p)])
    x = {"node": node.reshape(-1, 2), "edges": np.array(edges), "edge": np.array(features)}
    graph = Graph("potts", method="cut").bind([x], [mask.ravel()])
    grid = Grid(4).bind([{"node": node, "edge": edge}], [mask])
    for scale in (0.1, 1.0, 3.0):
        w = np.concatenate([rng.normal(size=2), scale * rng.random(2)])
        wide = np.concatenate([np.stack([np.zeros(2), w[:2]], 1).ravel(), w[2:]])
        _, output, result = plane(graph, wide, 0, 1.0, 1)
        _, other, expected = plane(grid, w, 0, 1.0, 1)
        assert graph.solution(wide, 0, 1.0).method == "cut"
        np.testing.assert_array_equal(output[:-1], other)
        np.testing.assert_allclose(result[:3], expected[:3], atol=1e-9)


PRESETS = {
    "auto": mm.Auto(),
    "one": mm.SimplicialDecomposition("one"),
    "product": mm.SimplicialDecomposition("product"),
    "product, limit 6": mm.SimplicialDecomposition("product", limit=6),
    "cutting plane": mm.CuttingPlane("n"),
    "sequential": mm.SequentialDual(tau=1e-11),
}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("pairwise", ["potts", "full"])
@pytest.mark.parametrize("name", PRESETS)
def test_signed_training_agrees_with_a_conic_solver(name, pairwise, loss):
    K, C = 2, 1.5
    X, Y, rng = examples(7, K, ignored=0.0)
    bound = Graph(pairwise, classes=range(K)).bind(X, Y)
    positive = bound.layout.positive() if pairwise == "potts" else rng.random(bound.n_weights) < 0.5
    every = []
    for x, y in zip(X, Y, strict=True):
        found = list(product(range(K), repeat=len(y)))
        basis = np.eye(bound.n_weights)
        used = np.ones(len(y), bool)
        truth = np.array([score(x, y, b, pairwise, K, used) for b in basis])
        rows = np.array([[score(x, f, b, pairwise, K, used) for b in basis] for f in found])
        every.append((truth - rows, np.array([sum(a != b for a, b in zip(f, y, strict=True)) for f in found], float)))
    squared = loss == "squared_hinge"
    reference = solve_primal(every, (2 if squared else 1) * C, squared=squared, positive=positive)
    problem = MarginRescaling(loss=loss).problem(bound, C=C, positive=positive)
    preset = PRESETS[name]
    result = run(preset.engine(problem, 0), problem, tol=1e-8, max_passes=20_000)
    assert result.certificate.certified
    assert result.certificate.primal == pytest.approx(reference.objective, rel=1e-6)
    np.testing.assert_allclose(result.weights, reference.weights, atol=1e-3)
    assert (result.weights[positive] >= 0).all()


def test_certificates_hold_when_the_argmax_is_not_exact():
    """Messages on triangles that want to differ: the primal stays above the optimum, the dual below."""
    rng = np.random.default_rng(1)
    edges = [(0, 1), (1, 2), (0, 2)]
    X = [{"node": rng.normal(size=(3, 1)), "edges": edges} for _ in range(6)]
    Y = [rng.permutation([0, 1, 1]).tolist() for _ in range(6)]
    bounds = {method: Graph(method=method).bind(X, Y) for method in ("trws", "junction_tree")}
    best, loose = (
        run(mm.Auto().engine(problem, 0), problem, tol=1e-7, max_passes=50)
        for problem in (MarginRescaling().problem(bounds[m], C=1.0) for m in ("junction_tree", "trws"))
    )
    assert best.status.converged and loose.certificate.certified
    assert loose.certificate.dual <= best.certificate.primal + 1e-9
    assert loose.certificate.primal >= best.certificate.dual - 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": []}, "there are no graphs"),
        ({"X": [3]}, "graph 0 must be a mapping"),
        ({"x": {"node": np.zeros(3)}}, "node features of graph 1"),
        ({"x": {"node": np.full((3, 2), np.nan)}}, "graph 1 has NaN"),
        ({"x": {"node": np.zeros((3, 3))}}, "graph 1 has 3 node and 1 edge features"),
        ({"x": {"edges": [(0, 3)]}}, r"graph 1: edges\[0\]"),
        ({"x": {"edges": [(1, 1)]}}, "graph 1: .*joins node 1 with itself"),
        ({"x": {"edge": np.zeros((1, 1))}}, "graph 1 has 2 edges and 1 rows"),
        ({"x": {"factors": [((0, 1), [1.0])]}}, "factor 0 of graph 1 has the scope"),
        ({"x": {"factors": [7]}}, "factor 0 of graph 1 must be a pair"),
        ({"x": {"colour": 1}}, "graph 1 must be a mapping with the keys"),
        ({"Y": [[0, 1, 0]]}, "2 graphs and 1 sequences"),
        ({"Y": [[0, 1, 0], [0, 1]]}, "graph 1 has 3 nodes and 2 labels"),
        ({"Y": [[0, 1, 0], [0, 5, 0]], "classes": [0, 1]}, "example 1 has the label 5"),
        ({"Y": [[9] * 3] * 2, "ignore": 9}, "no node has a label"),
        ({"pairwise": "loose"}, "pairwise must be one of"),
        ({"method": "magic"}, "method must be one of"),
        ({"method": "cut"}, 'pairwise="potts"'),
        ({"x": {"edges": [(0, 1), (1, 0)]}, "method": "tree"}, "graph 1 close a cycle"),
        ({"x": {"edges": [(0, 1), (1, 0)]}, "method": "junction_tree", "max_cells": 1}, "graph 0 is too wide"),
        ({"x": {"factors": [((0, 1, 2), [1.0])]}, "method": "trws"}, "graph 1 has factors"),
        ({"node_cost": [np.ones(3)]}, "1 arrays of node costs"),
        ({"node_cost": [np.ones(3), -np.ones(3)]}, "node costs of graph 1"),
        ({"x": {"edge": -np.ones((2, 1))}, "method": "cut", "pairwise": "potts"}, "graph 1 has negative edge features"),
    ],
)
def test_bad_input(change, message):
    plain = {"node": np.zeros((3, 2)), "edges": [(0, 1), (1, 2)]}
    X = change.pop("X", [plain, plain | change.pop("x", {})])
    Y, node_cost = change.pop("Y", [[0, 1, 0]] * 2), change.pop("node_cost", None)
    with pytest.raises(ValueError, match=message):
        Graph(**change).bind(X, Y, node_cost=node_cost)


def test_graphs_without_edges_fit_to_any_others():
    alone, pair = {"node": np.eye(2)}, {"node": np.eye(2), "edges": [(0, 1)], "edge": np.ones((1, 3))}
    bound = Graph().bind([alone, pair, alone], [[0, 1]] * 3)
    assert bound.n_weights == 2 * 2 + 3 * 4
    assert Graph().bind([alone], layout=bound.layout).solution(np.zeros(16), 0).method == "tree"
    assert Graph().bind([alone], [[0, 1]]).n_weights == 4


def test_further_graphs_need_the_same_features():
    X, Y, _ = examples(0, 2, factors=True)
    layout = Graph(classes=[0, 1], ignore=-1).bind(X, Y).layout
    with pytest.raises(ValueError, match=r"factor 0 of graph 0 is over 4 nodes"):
        x = X[2] | {"factors": [((0, 1, 2, 3), [1.0])]}
        Graph().bind([x], layout=layout)
    with pytest.raises(ValueError, match="labels are needed"):
        Graph().bind(X)
