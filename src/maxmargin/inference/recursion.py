"""Recursions over chains and directed acyclic graphs: best path, k best paths, best path for each cost, marginals.

The formulas are in :mod:`maxmargin.inference.recursion_kernel`, once for chains and graphs; here arrays are checked.

A chain is a table of label scores (T, K) and one of pair scores, (K, K), (1, K, K) or (T - 1, K, K). A graph is
``node`` (N,), scores of nodes in topological order; ``begin`` (N + 1,) and ``tail`` (E,), the arcs into each node,
row-compressed by head; and ``arc`` (E,), their scores. Several arcs may join the same two nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import indices, numbers, pointers
from maxmargin.inference.tables import cost_table, refuse_large, refuse_scores, score_tables

__all__ = [
    "Graph", "Paths", "chain_argmax", "chain_by_cost", "chain_k_best", "chain_marginals", "graph_best", "graph_by_cost",
    "graph_k_best", "graph_marginals",
]  # fmt: skip


class Graph(NamedTuple):
    """Scores of a directed acyclic graph: node (N,), begin (N + 1,), tail (E,), arc (E,)."""

    node: ArrayLike
    begin: ArrayLike
    tail: ArrayLike
    arc: ArrayLike


Flat = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]  # a graph or a chain as the kernels read it


class Paths(NamedTuple):
    """Paths of a graph with their scores; L is the number of nodes of the longest path of the graph."""

    nodes: np.ndarray  # int32 (m, L); -1 behind the end of a path
    arcs: np.ndarray  # int32 (m, L): the arc into each node, -1 for the first
    scores: np.ndarray  # float64 (m,)


def chain_argmax(unary: ArrayLike, transition: ArrayLike) -> tuple[np.ndarray, float]:
    """The best labelling of a chain and its score: Viterbi's algorithm.

    Formula: ``max_y sum_t unary[t, y_t] + sum_{t > 0} transition[y_{t-1}, y_t]``. O(T K^2).

    Parameters
    ----------
    unary : array (T, K)
        Scores of labels; -inf forbids one.
    transition : array (K, K), (1, K, K) or (T - 1, K, K)
        Scores of pairs: a label (column) after a label (row).

    Returns
    -------
    labels : int64 (T,)
        -1 throughout when every labelling is forbidden.
    score : float
        -inf then.

    Examples
    --------
    >>> from maxmargin.inference import chain_argmax
    >>> labels, score = chain_argmax([[2.0, 0.0], [0.0, 0.5], [0.0, 1.0]], [[0.0, 1.0], [-1.0, 0.0]])
    >>> labels.tolist(), score
    ([0, 1, 1], 4.5)
    """
    from maxmargin.inference.recursion_chain_kernel import viterbi

    unary, transition = score_tables(unary, transition)
    labels = np.empty(len(unary), np.int64)
    return labels, viterbi(unary, transition, labels)


def chain_k_best(unary: ArrayLike, transition: ArrayLike, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best distinct labellings of a chain and their scores, best first.

    O(T K (K + k log K)) time, O(T K k) memory.

    Parameters
    ----------
    unary, transition : array
        As in :func:`chain_argmax`.
    k : int

    Returns
    -------
    labels : int array (m, T)
        m < k when there are no more.
    scores : float64 (m,)

    Examples
    --------
    >>> from maxmargin.inference import chain_k_best
    >>> labels, scores = chain_k_best([[2.0, 0.0], [0.0, 0.5]], [[0.0, 1.0], [-1.0, 0.0]], 2)
    >>> labels.tolist(), scores.tolist()
    ([[0, 1], [0, 0]], [3.5, 2.0])
    """
    from maxmargin.inference.recursion_kernel import k_best_paths

    unary, transition = score_tables(unary, transition)
    length, n_labels = unary.shape
    k = _checked_k(k)
    k = min(k, n_labels ** min(length, k.bit_length()))  # never more rows than labellings; a cut keeps the power small
    _refuse_many(k, length * n_labels, n_labels, f"{length} positions and {n_labels} labels")
    nodes, arcs, scores = np.empty((k, length), np.int32), np.empty((k, 0), np.int32), np.empty(k)
    found = k_best_paths(*_as_graph(unary, transition), nodes, arcs, scores)
    return nodes[:found] - n_labels * np.arange(length), scores[:found]


def chain_by_cost(
    unary: ArrayLike, transition: ArrayLike, cost: ArrayLike, max_cost: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The best score and labelling of a chain among the labellings of each cost 0, 1, ..., max_cost.

    O(T K^2 max_cost).

    Parameters
    ----------
    unary, transition : array
        As in :func:`chain_argmax`.
    cost : int array (T, K)
        The cost of a labelling is the sum along it of these whole numbers >= 0.
    max_cost : int, optional
        The largest that any labelling has, by default.

    Returns
    -------
    scores : float64 (max_cost + 1,)
        -inf where no allowed labelling has that cost.
    labels : int array (max_cost + 1, T)
        -1 there.

    Examples
    --------
    >>> from maxmargin.inference import chain_by_cost
    >>> scores, labels = chain_by_cost([[2.0, 0.0], [0.0, 0.5]], [[0.0, 1.0], [-1.0, 0.0]], [[0, 1], [0, 1]])
    >>> scores.tolist(), labels.tolist()
    ([2.0, 3.5, 0.5], [[0, 0], [0, 1], [1, 1]])
    """
    unary, transition = score_tables(unary, transition)
    cost = cost_table(cost, unary.shape)
    length, n_labels = unary.shape
    most = int(cost.max(axis=1).sum()) if cost.size else 0
    width = _width(max_cost, most, length * n_labels, f"{length} positions and {n_labels} labels")
    graph = _as_graph(unary, transition)
    scores, nodes, _ = _by_cost(graph, cost.reshape(-1), np.empty(0, np.int64), width, length, arcs=False)
    return scores, np.where(nodes >= 0, nodes - n_labels * np.arange(length), -1)


def chain_marginals(
    unary: ArrayLike, transition: ArrayLike, *, pairwise: bool = True
) -> tuple[float, np.ndarray, np.ndarray | None]:
    """Log-partition and marginals of the distribution proportional to ``exp(score)`` over the labellings of a chain.

    O(T K^2), in logs throughout.

    Parameters
    ----------
    unary, transition : array
        As in :func:`chain_argmax`.
    pairwise : bool
        Whether to return the marginals of pairs too, which take (T - 1) K^2 numbers.

    Returns
    -------
    log_partition : float
        -inf when every labelling is forbidden; the marginals are then zero.
    marginals : float64 (T, K)
    pairs : float64 (T - 1, K, K), or None
        Of a label (last axis) after a label.

    Examples
    --------
    >>> from maxmargin.inference import chain_marginals
    >>> log_partition, marginals, pairs = chain_marginals([[2.0, 0.0], [0.0, 0.5]], [[0.0, 1.0], [-1.0, 0.0]])
    >>> marginals.round(3).tolist()
    [[0.953, 0.047], [0.182, 0.818]]
    """
    from maxmargin.inference.recursion_kernel import path_marginals

    unary, transition = score_tables(unary, transition)
    length, n_labels = unary.shape
    steps = max(length - 1, 0) if pairwise else 0
    what = f"marginals of {length} positions and {n_labels} labels"
    refuse_large(8 * steps * n_labels**2, what, "set pairwise=False")
    single, pairs = np.empty_like(unary), np.empty((steps, n_labels, n_labels))
    log_partition = path_marginals(*_as_graph(unary, transition), single.reshape(-1), pairs.reshape(-1))
    return log_partition, single, pairs.transpose(0, 2, 1) if pairwise else None


def _as_graph(unary: np.ndarray, transition: np.ndarray) -> Flat:
    """A chain as the kernels of graphs read it: no lists of arcs, and scores of pairs by right and left label."""
    none = np.empty(0, np.int32)
    by_head = np.ascontiguousarray(transition.transpose(0, 2, 1)).reshape(-1)
    return unary.reshape(-1), none, none, by_head, unary.shape[1]


def graph_best(graph: Graph) -> Paths:
    """The best path of a graph, m = 1; m = 0 when none is allowed. O(N + E)."""
    return graph_k_best(graph, 1)


def graph_k_best(graph: Graph, k: int) -> Paths:
    """The k best paths of a graph, best first; paths differ in an arc. m < k when there are no more.

    O(E + N k log(arcs into a node)) time, O(N k) memory.
    """
    from maxmargin.inference.recursion_kernel import k_best_paths

    node, begin, tail, arc, length = _checked(graph)
    k = _checked_k(k)
    _refuse_many(k, len(node), max(int(np.diff(begin).max(initial=0)), len(node)), f"{len(node)} nodes")
    nodes, arcs, scores = np.empty((k, length), np.int32), np.empty((k, length), np.int32), np.empty(k)
    found = k_best_paths(node, begin, tail, arc, 0, nodes, arcs, scores)
    return Paths(nodes[:found], arcs[:found], scores[:found])


def graph_by_cost(
    graph: Graph, node_cost: ArrayLike | None = None, arc_cost: ArrayLike | None = None, max_cost: int | None = None
) -> Paths:
    """The best path of each cost 0, 1, ..., max_cost; rows of -1 and -inf where no path has that cost.

    The cost of a path is the sum of ``node_cost`` (N,) and ``arc_cost`` (E,), whole numbers >= 0, along it; by default
    all costs are considered that a path can have, up to a bound.
    """
    node, begin, tail, arc, length = _checked(graph)
    node_cost = cost_table(np.zeros(len(node)) if node_cost is None else node_cost, node.shape)
    arc_cost = np.empty(0, np.int64) if arc_cost is None else cost_table(arc_cost, arc.shape)
    most = length * int(node_cost.max(initial=0)) + max(length - 1, 0) * int(arc_cost.max(initial=0))
    width = _width(max_cost, most, len(node), f"{len(node)} nodes")
    scores, nodes, arcs = _by_cost((node, begin, tail, arc, 0), node_cost, arc_cost, width, length)
    return Paths(nodes, arcs, scores)


def _by_cost(
    graph: Flat, node_cost: np.ndarray, arc_cost: np.ndarray, width: int, length: int, arcs: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores (width,), nodes and arcs (width, length) of the best path of each cost."""
    from maxmargin.inference.recursion_kernel import fill_by_cost, path_of_cost

    table, scores = np.empty((len(graph[0]), width)), np.empty(width)
    nodes, along = np.empty((width, length), np.int32), np.empty((width, length if arcs else 0), np.int32)
    flat = *graph, node_cost, arc_cost, table
    fill_by_cost(*flat, scores)
    for c in range(width):
        path_of_cost(*flat, c, nodes[c], along[c])
    return scores, nodes, along


def graph_marginals(graph: Graph) -> tuple[float, np.ndarray, np.ndarray]:
    """Log-partition, and the probabilities that a path visits each node (N,) and each arc (E,). O(N + E)."""
    from maxmargin.inference.recursion_kernel import path_marginals

    node, begin, tail, arc, _ = _checked(graph)
    visits, uses = np.empty(len(node)), np.empty(len(arc))
    return path_marginals(node, begin, tail, arc, 0, visits, uses), visits, uses


def _checked(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """The arrays as the kernels want them, and the number of nodes of the longest path."""
    from maxmargin.inference.recursion_kernel import longest_path

    node, arc = numbers(graph.node, "node"), numbers(graph.arc, "arc")
    begin = pointers(indices(graph.begin, 2**31, "begin"), "begin")
    tail = np.require(indices(graph.tail, 2**31, "tail", least=-(2**31)), np.int32, ["C", "W"])
    n, m = node.size, arc.size
    if not (node.shape == (n,) and arc.shape == (m,) and tail.shape == (m,) and begin.shape == (n + 1,)):
        shapes = ", ".join(f"{name} {np.shape(array)}" for name, array in graph._asdict().items())
        raise ValueError(f"the arrays have the shapes {shapes}; give node (N,), begin (N + 1,), tail (E,), arc (E,).")
    if begin[-1] != m or m >= 2**31:
        raise ValueError(f"begin must rise from 0 to the number of arcs, {m}; it holds where the arcs of a node begin.")
    begin = np.require(begin, np.int32, ["C", "W"])
    late = np.flatnonzero((tail < 0) | (tail >= np.repeat(np.arange(n), np.diff(begin))))
    if len(late):
        head = int(np.searchsorted(begin, late[0], side="right")) - 1
        raise ValueError(f"arc {late[0]} goes from {tail[late[0]]} to {head}; sort the nodes so that arcs go upwards.")
    refuse_scores(node=node, arc=arc)
    return node, begin, tail, arc, int(longest_path(begin, tail))


def _checked_k(k: int) -> int:
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"k is {k!r:.80}; ask for at least one")
    return int(k)


def _refuse_many(k: int, n_nodes: int, width: int, what: str) -> None:
    if width * k >= 2**31:
        raise ValueError(f"{width} arcs times k = {k} is above 2**31; ask for a smaller k")
    refuse_large(12 * n_nodes * k, f"k best with k = {k} on {what}", "ask for a smaller k")


def _width(max_cost: int | None, most: int, n_nodes: int, what: str) -> int:
    """Number of costs from 0 to the largest; refuses negative ones and tables that do not fit."""
    largest = most if max_cost is None else int(max_cost)
    if largest < 0:
        raise ValueError(f"max_cost is {largest}; give 0 or more")
    advice = "set a smaller max_cost or use coarser costs"
    refuse_large(8 * n_nodes * (largest + 1), f"the best by cost up to {largest} on {what}", advice)
    return largest + 1
