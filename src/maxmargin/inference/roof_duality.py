"""Roof duality: a cut that proves labels of part of a binary graph, whatever its edges favour."""

from __future__ import annotations

import numpy as np

from maxmargin.inference.graph import GraphAnswer, GraphProblem, improved
from maxmargin.inference.min_cut import graph_cut, submodular_terms

__all__ = ["roof_duality", "roof_labels"]


def roof_labels(problem: GraphProblem) -> tuple[np.ndarray, float]:
    """Labels that some best labelling has, -1 where nothing is proven, and an upper bound on all scores.

    Formula: every node p gets a twin with the opposite label, and the score becomes the mean of itself and of itself at
    the twins, where edges that favour different labels run between a node and the other's twin:
    ``1/2 (t(y_p, y_q) + t(1 - y'_p, 1 - y'_q))`` or ``1/2 (t(y_p, 1 - y'_q) + t(1 - y'_p, y_q))``. A cut
    maximises this. Where node and twin get opposite labels, the label is optimal.

    Complexity: one cut of 2 n nodes and 2 m edges. Boros, Hammer (2002), Pseudo-Boolean optimization. Kolmogorov,
    Rother (2007), Minimizing non-submodular functions with graph cuts.
    """
    n, K = problem.unary.shape
    if K != 2:
        raise ValueError(f'there are {K} labels; roof duality needs two, use method="auto".')
    t = -0.5 * problem.pairwise
    p, q = problem.structure.edges.T
    attractive = t[:, 0, 1] + t[:, 1, 0] >= t[:, 0, 0] + t[:, 1, 1]
    mirrored = np.where(attractive, 0, n)  # which copy the second node comes from
    forward = np.where(attractive[:, None, None], t, t[:, :, ::-1])
    opposite = np.where(attractive[:, None, None], t[:, ::-1, ::-1], t[:, ::-1, :])
    edges = np.concatenate([np.stack([p, q + mirrored], 1), np.stack([p + n, q + n - mirrored], 1)])
    unary, capacities = submodular_terms(2 * n, edges, np.concatenate([forward, opposite]))
    unary -= 0.5 * np.concatenate([problem.unary, problem.unary[:, ::-1]])
    labels, energy = graph_cut(unary, edges, capacities)
    certain = labels[:n] != labels[n:]
    return np.where(certain, labels[:n], -1).astype(np.int32), -energy


def roof_duality(problem: GraphProblem) -> GraphAnswer:
    """Labels that keep the proven ones, with the bound of the roof dual; exact when all are proven."""
    proven, bound = roof_labels(problem)
    guess = improved(problem, np.where(proven < 0, problem.unary.argmax(axis=1), proven))
    # by persistency the proven labels never lower the score
    return problem.answer(np.where(proven < 0, guess, proven).astype(np.int32), bound, "roof_duality")
