"""Expansion moves: each label in turn expands as far as that pays, by one minimum cut."""

from __future__ import annotations

import numpy as np

from maxmargin.inference.graph import PASSES, GraphAnswer, GraphProblem, trws
from maxmargin.inference.min_cut import graph_cut, submodular_terms

__all__ = ["expansion", "is_metric"]


def is_metric(problem: GraphProblem) -> bool:
    """Whether every edge allows expansion moves: ``cost(i, j) + cost(a, a) <= cost(i, a) + cost(a, j)`` for all labels.

    The cost is the negative score. O(m K^3).
    """
    cost = -problem.pairwise
    slack = 1e-12 * np.abs(cost).max(initial=0.0)
    same = cost.diagonal(axis1=1, axis2=2)
    return all(
        (cost + same[:, a, None, None] <= cost[:, :, None, a] + cost[:, None, a, :] + slack).all()
        for a in range(cost.shape[1])
    )


def expansion(
    problem: GraphProblem, labels: np.ndarray | None = None, *, bound: float | None = None, passes: int = PASSES
) -> GraphAnswer:
    """Labels that no expansion move can improve, for metric tables, see :func:`is_metric`.

    Formula: a move to label a keeps the label of a node or changes it to a; the best of all 2^n is one cut. It starts
    from ``labels`` (n,), by default the best label of each node by itself. A known ``bound`` replaces the one of
    tree-reweighted messages.

    Complexity: K cuts per round, until a round changes nothing. Boykov, Veksler, Zabih (2001), Fast approximate energy
    minimization via graph cuts.
    """
    if not is_metric(problem):
        raise ValueError('the pairwise tables are not metric, as method="expansion" needs; use "trws" or "auto".')
    n, K = problem.unary.shape
    method = "expansion"
    if bound is None:
        bound, method = trws(problem, passes).bound, "expansion+trws"
    y = np.array(problem.unary.argmax(axis=1) if labels is None else labels, np.int32)
    value = problem.score(y)
    edges = problem.structure.edges
    (p, q), each = edges.T, np.arange(len(edges))
    unchanged = 0
    while unchanged < K:
        for a in range(K):
            now, left, right = problem.pairwise[each, y[p], y[q]], problem.pairwise[each, a, y[q]], y[p]
            tables = np.stack([now, problem.pairwise[each, right, a], left, problem.pairwise[:, a, a]], 1)
            unary, capacities = submodular_terms(n, edges, -tables.reshape(-1, 2, 2))
            unary -= np.stack([problem.unary[np.arange(n), y], problem.unary[:, a]], 1)
            moved = np.where(graph_cut(unary, edges, capacities)[0] == 1, a, y).astype(np.int32)
            score = problem.score(moved)
            unchanged += 1
            if score > value + 1e-12 * abs(value):
                y, value, unchanged = moved, score, 0
            if unchanged >= K:
                break
    return problem.answer(y, bound, method)
