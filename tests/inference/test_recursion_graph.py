"""Recursions on directed acyclic graphs against walking along every path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.inference.recursion import (
    Graph,
    graph_best,
    graph_by_cost,
    graph_k_best,
    graph_marginals,
)
from maxmargin.inference.recursion import (
    chain_argmax as best,
)
from maxmargin.inference.recursion import (
    chain_by_cost as by_cost,
)
from maxmargin.inference.recursion import (
    chain_k_best as k_best,
)
from maxmargin.inference.recursion import (
    chain_marginals as marginals,
)

from .chain_tables import chains

MOST = 2000


@st.composite
def graphs(draw):
    """A graph with several first and last nodes, double arcs and forbidden parts, and costs of nodes and arcs."""
    n = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density, forbidden = draw(st.sampled_from([0.0, 0.3, 0.6, 0.9])), draw(st.sampled_from([0.0, 0.0, 0.2, 0.5]))
    whole = draw(st.booleans())
    tails = [[u for u in range(v) for _ in range(1 + (rng.random() < 0.1)) if rng.random() < density] for v in range(n)]
    tails = [rng.permutation(row).tolist() for row in tails]
    begin = np.concatenate([[0], np.cumsum([len(row) for row in tails])])

    def scores(size):
        values = rng.integers(-2, 3, size).astype(float) if whole else rng.normal(0.0, 3.0, size)
        values[rng.random(size) < forbidden] = -np.inf
        return values

    graph = Graph(scores(n), begin, np.array([u for row in tails for u in row], int), scores(begin[-1]))
    costs = rng.integers(0, 3, n), rng.integers(0, 3, begin[-1])
    return graph, costs


def every_path(graph, costs):
    """(score, nodes, arcs, cost) of all allowed paths, in the order in which ties are broken, best first."""
    n, leads = len(graph.node), set(np.asarray(graph.tail).tolist())

    def ending_in(v):
        begin, end = graph.begin[v], graph.begin[v + 1]
        if begin == end:
            yield graph.node[v], (v,), (-1,), costs[0][v]
        for e in range(begin, end):
            for score, nodes, arcs, cost in ending_in(graph.tail[e]):
                more = costs[0][v] + costs[1][e]
                yield score + graph.arc[e] + graph.node[v], (*nodes, v), (*arcs, e), cost + more

    found = [path for v in range(n) if v not in leads for path in ending_in(v) if path[0] > -np.inf]
    return sorted(found, key=lambda path: (-path[0], path[1][::-1][0], path[2][::-1]))


def rows(paths):
    """(score, nodes, arcs) of each path, without the filling."""
    cut = [int((row >= 0).sum()) for row in paths.nodes]
    return [
        (score, tuple(nodes[:m].tolist()), tuple(arcs[:m].tolist()))
        for score, nodes, arcs, m in zip(paths.scores, paths.nodes, paths.arcs, cut, strict=True)
    ]


@settings(max_examples=300, deadline=None)
@given(graphs(), st.integers(1, 30))
def test_best_and_k_best_in_order_with_ties(case, k):
    graph, costs = case
    expected = [path[:3] for path in every_path(graph, costs)]
    assert rows(graph_k_best(graph, k)) == expected[:k]  # all add from the first node on, so not a bit differs
    assert rows(graph_best(graph)) == expected[:1]
    assert len(graph_k_best(graph, MOST).scores) == min(len(expected), MOST)


@settings(max_examples=300, deadline=None)
@given(graphs(), st.none() | st.integers(0, 12), st.booleans(), st.booleans())
def test_best_of_each_cost(case, max_cost, on_nodes, on_arcs):
    graph, costs = case
    costs = costs[0] * on_nodes, costs[1] * on_arcs
    found = graph_by_cost(graph, costs[0] if on_nodes else None, costs[1] if on_arcs else None, max_cost)
    everything = every_path(graph, costs)
    assert max_cost is not None or len(found.scores) > max([path[3] for path in everything], default=-1)
    for c, got in enumerate(rows(found)):
        assert got == next((path[:3] for path in everything if path[3] == c), (-np.inf, (), ()))


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_marginals(case):
    graph, costs = case
    everything = every_path(graph, costs)
    log_partition, visits, uses = graph_marginals(graph)
    if not everything:
        assert log_partition == -np.inf and not visits.any() and not uses.any()
        return
    assert log_partition == pytest.approx(np.logaddexp.reduce([path[0] for path in everything]), abs=1e-11)
    nodes, arcs = np.zeros(len(visits)), np.zeros(len(uses))
    for score, own_nodes, own_arcs, _ in everything:
        p = np.exp(score - log_partition)
        nodes[list(own_nodes)] += p
        arcs[list(own_arcs[1:])] += p
    np.testing.assert_allclose(visits, nodes, atol=1e-11)
    np.testing.assert_allclose(uses, arcs, atol=1e-11)


def written_out(unary, transition):
    """A chain with its arcs listed."""
    length, K = unary.shape
    steps = [transition[min(t, len(transition) - 1)] for t in range(length - 1)]
    tail = [t * K + j for t in range(length - 1) for _ in range(K) for j in range(K)]
    begin = np.concatenate([np.zeros(K), np.arange((length - 1) * K + 1) * K])
    return Graph(unary.ravel(), begin, tail, np.array([step.T for step in steps]).ravel())


@settings(max_examples=200, deadline=None)
@given(chains(costs=True), st.integers(1, 20))
def test_a_chain_is_a_graph(chain, k):
    unary, transition, cost = chain
    graph, K = written_out(unary, transition), unary.shape[1]
    labels, scores = k_best(unary, transition, k)
    paths = graph_k_best(graph, k)
    np.testing.assert_array_equal(paths.scores, scores)
    np.testing.assert_array_equal(paths.nodes % K, labels)
    top, score = best(unary, transition)
    single = graph_best(graph)
    assert single.scores.tolist() == ([] if score == -np.inf else [score])
    assert (single.nodes % K).tolist() == ([] if score == -np.inf else [top.tolist()])
    scores, labels = by_cost(unary, transition, cost)
    paths = graph_by_cost(graph, cost.ravel(), max_cost=len(scores) - 1)
    np.testing.assert_array_equal(paths.scores, scores)
    np.testing.assert_array_equal(np.where(paths.nodes < 0, -1, paths.nodes % K), labels)
    log_partition, single, pairs = marginals(unary, transition)
    found, visits, uses = graph_marginals(graph)
    assert found == pytest.approx(log_partition, abs=1e-10)
    np.testing.assert_allclose(visits.reshape(single.shape), single, atol=1e-11)
    np.testing.assert_allclose(uses.reshape(pairs.shape).transpose(0, 2, 1), pairs, atol=1e-11)


def test_two_arcs_between_the_same_nodes_are_two_paths():
    paths = graph_k_best(Graph([0.0, 0.0], [0, 0, 2], [0, 0], [1.0, 3.0]), 5)
    assert paths.arcs.tolist() == [[-1, 1], [-1, 0]] and paths.scores.tolist() == [3.0, 1.0]


def test_no_nodes_give_one_empty_path():
    nothing = Graph([], [0], [], [])
    for paths in (graph_best(nothing), graph_k_best(nothing, 3), graph_by_cost(nothing)):
        assert paths.scores.tolist() == [0.0] and paths.nodes.shape == (1, 0)
    assert graph_marginals(nothing)[0] == 0.0


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (Graph([0.0, 0.0], [0, 1], [0], [1.0]), r"begin \(N \+ 1,\)"),
        (Graph([0.0, 0.0], [0, 0, 2], [0], [1.0]), "number of arcs, 1"),
        (Graph([0.0, 0.0], [0, 1, 1], [1], [1.0]), "arc 0 goes from 1 to 0"),
        (Graph([0.0, 0.0], [0, 0, 1], [-1], [1.0]), "arc 0 goes from -1"),
        (Graph([0.0, np.nan], [0, 0, 1], [0], [1.0]), r"node\[1\] is nan"),
        (Graph([0.0, 0.0], [0, 0, 1], [0], [np.inf]), r"arc\[0\] is inf"),
    ],
)
def test_wrong_graphs_are_named(graph, message):
    with pytest.raises(ValueError, match=message):
        graph_marginals(graph)
