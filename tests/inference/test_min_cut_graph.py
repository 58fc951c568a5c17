"""Minimum cuts of graphs against looking at every labeling and against SciPy's maximum flow; tables of pairs."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from maxmargin.inference.min_cut import graph_cut, submodular_terms

from .cut_energies import brute_force, energy


def random_edges(rng, n, m):
    """m pairs of different nodes; pairs may repeat, and nodes may stay alone."""
    first = rng.integers(0, n, m)
    return np.stack([first, (first + rng.integers(1, n, m)) % n], axis=1)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("real", [False, True])
def test_every_labeling_of_tiny_graphs(directed, real):
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(2, 10))
        edges = random_edges(rng, n, int(rng.integers(0, 3 * n)))
        unary = rng.integers(-5, 6, (n, 2)) + (rng.random((n, 2)) if real else 0.0)
        forward, backward = rng.integers(0, 5, (2, len(edges))) * (rng.random((2, len(edges))) if real else 1.0)
        if not directed:
            backward = None
        labels, value = graph_cut(unary, edges, forward, backward)
        least, ones = brute_force(unary, edges, forward, backward)
        assert value == pytest.approx(least, rel=1e-12, abs=1e-12)
        np.testing.assert_array_equal(labels, ones)


def scipy_value(unary, edges, forward, backward):
    """Energy by SciPy's flow from a source, behind the nodes that want 0, to a sink; integers only."""
    n = len(unary)
    low = unary.min(axis=1)
    nodes = np.arange(n)
    tails = np.concatenate([edges[:, 0], edges[:, 1], np.full(n, n), nodes])
    heads = np.concatenate([edges[:, 1], edges[:, 0], nodes, np.full(n, n + 1)])
    rooms = np.concatenate([forward, backward, unary[:, 1] - low, unary[:, 0] - low]).astype(np.int32)
    graph = coo_array((rooms, (tails, heads)), shape=(n + 2, n + 2)).tocsr()
    graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)  # all it takes, at 1.13
    return maximum_flow(graph, n, n + 1).flow_value + low.sum()


@pytest.mark.parametrize("n", [50, 400])
@pytest.mark.parametrize("density", [1, 3, 10])
def test_integer_graphs_against_scipy(n, density):
    rng = np.random.default_rng(n + density)
    for _ in range(10):
        edges = random_edges(rng, n, n * density)
        unary = rng.integers(-50, 50, (n, 2))
        forward, backward = rng.integers(0, 20, (2, len(edges)))
        labels, value = graph_cut(unary, edges, forward, backward)
        assert value == scipy_value(unary, edges, forward, backward)
        assert value == energy(unary, edges, forward, labels, backward)


def test_a_hub_with_many_neighbours():
    n = 20_000
    edges = np.stack([np.zeros(n - 1, int), np.arange(1, n)], axis=1)
    unary = np.zeros((n, 2))
    unary[1:, 0] = np.where(np.arange(1, n) % 3 == 0, 1.0, 0.0)
    unary[1:, 1] = np.where(np.arange(1, n) % 3 == 0, 0.0, 1.0)
    labels, value = graph_cut(unary, edges, 0.25)
    # The hub takes the side of the majority, 0; each of the others is cut off for 0.25.
    assert value == 0.25 * unary[1:, 0].sum()
    np.testing.assert_array_equal(labels[1:], unary[1:, 0] == 1.0)
    assert labels[0] == 0


def test_no_edges():
    labels, value = graph_cut([[0.0, 1.0], [2.0, 1.0], [1.0, 1.0]], [], [])
    assert (labels.tolist(), value) == ([0, 1, 0], 2.0)


def test_capacities_that_defeat_careless_augmenting():
    # Paths chosen badly never end on this graph of Ford and Fulkerson: capacities in golden proportion.
    r = (np.sqrt(5.0) - 1.0) / 2.0
    edges = np.array([[2, 1], [2, 3], [4, 3], [0, 1], [0, 2], [0, 4], [1, 5], [3, 5], [4, 5]])
    capacities = np.array([1.0, 1.0, r, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0])
    unary = np.zeros((6, 2))
    unary[0, 1] = unary[5, 0] = np.inf
    labels, value = graph_cut(unary, edges, capacities, np.zeros(9))
    finite = np.where(np.isinf(unary), 1e3, unary)
    least, ones = brute_force(finite, edges, capacities, np.zeros(9))
    assert value == pytest.approx(least, rel=1e-12)
    np.testing.assert_array_equal(labels, ones)


@pytest.mark.parametrize("n_edges", [300, 700])
def test_trees_loops_and_repeated_edges(n_edges):
    rng = np.random.default_rng(3)
    n = 300
    edges = np.stack([np.arange(1, n), rng.integers(0, np.arange(1, n))], axis=1)  # a tree, many ends
    edges = np.concatenate([edges, random_edges(rng, n, n_edges - len(edges)), edges[:1].repeat(3, axis=0)])
    forward, backward = rng.integers(0, 9, (2, len(edges)))
    for _ in range(60):
        unary = rng.integers(-9, 10, (n, 2))
        labels, value = graph_cut(unary, edges, forward, backward)
        assert value == scipy_value(unary, edges, forward, backward)
        assert value == energy(unary, edges, forward, labels, backward)


def test_tables_of_pairs_become_terms():
    rng = np.random.default_rng(2)
    for _ in range(100):
        n, m = 5, 8
        edges = random_edges(rng, n, m)
        tables = rng.normal(size=(m, 2, 2))
        short = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
        tables[:, 0, 1] += np.maximum(short, 0.0) * rng.choice([1.0, 2.0], m)  # some are on the edge
        unary, capacities = submodular_terms(n, edges, tables)
        labels = np.arange(2**n)[:, None] >> np.arange(n) & 1
        expected = tables[np.arange(m), labels[:, edges[:, 0]], labels[:, edges[:, 1]]].sum(axis=1)
        np.testing.assert_allclose(energy(unary, edges, capacities, labels), expected, rtol=0, atol=1e-12)
        assert graph_cut(unary, edges, capacities)[1] == pytest.approx(expected.min(), abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: graph_cut(np.zeros((3, 2)), [[0, 1], [1, 3]], 1.0),
            r"edges\[1\] is \[1, 3\]; nodes are numbered from 0 to 2",
        ),
        (lambda: graph_cut(np.zeros((3, 2)), [[0, 1], [-1, 2]], 1.0), r"edges\[1\] is \[-1, 2\]"),
        (lambda: graph_cut(np.zeros((3, 2)), [[0, 1], [2, 2]], 1.0), r"edges\[1\] joins node 2 with itself"),
        (lambda: graph_cut(np.zeros((3, 2)), [[0.5, 1.0]], 1.0), r"edges are float64"),
        (lambda: graph_cut(np.zeros((3, 2)), [0, 1, 2], 1.0), r"integers \(m, 2\)"),
        (lambda: graph_cut(np.zeros((3, 3, 2)), [[0, 1]], 1.0), r"unary has shape \(3, 3, 2\).*\(n, 2\)"),
        (lambda: graph_cut(np.zeros((2, 2)), [[0, 1]], [1.0, 2.0]), r"shape \(2,\).*the 1 edges"),
        (lambda: graph_cut(np.zeros((2, 2)), [[0, 1]], [-2.0]), r"capacities\[0\] is -2.0"),
        (lambda: graph_cut(np.zeros((2, 2)), [[0, 1]], 1.0, [np.nan]), r"backward\[0\] is nan"),
        (lambda: graph_cut([[0.0, np.nan]], [], []), r"unary\[0, 1\] is nan"),
        (
            lambda: submodular_terms(2, [[0, 1]], [[[0.0, 1.0], [1.0, 3.0]]]),
            r"tables\[0\], of edge \(0, 1\), is not sub",
        ),
        (lambda: submodular_terms(2, [[0, 1]], np.zeros((2, 2))), r"tables have shape \(2, 2\)"),
        (lambda: submodular_terms(2, [[0, 1]], [[[0.0, np.inf], [0.0, 0.0]]]), r"tables\[0, 0, 1\] is inf"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
