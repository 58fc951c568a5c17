"""Labels of a graph within an angle, by HiGHS: the local polytope with two rows more, and whole labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maxmargin.contracts import Answer
from maxmargin.inference.constrained_oracle import ConstrainedOracle, kept_program
from maxmargin.inference.relaxation import local_polytope

if TYPE_CHECKING:
    from maxmargin.models.graph import GraphBound

__all__ = ["best_between"]

NODES = 1000  # of the program of one angle; where they end, its bound is open


def best_between(
    bound: GraphBound, w: np.ndarray, example: int, lam: float, mu: float, low: float, high: float
) -> Answer | None:
    """See :class:`maxmargin.contracts.ConstrainedModel`. An integer program with n K + m K^2 columns."""
    assert bound.codes is not None
    true, problem, table = bound.codes[example], bound.problem(w, example), bound.layout.cost_table
    (n, K), m = problem.unary.shape, len(problem.pairwise)
    cost = bound.costs[example][:, None] * table[true]
    edges = problem.structure.edges
    program = kept_program(lambda: _program(edges, n, K), "graph", edges.tobytes(), n, K)
    h, g = np.concatenate([problem.unary.ravel(), problem.pairwise.ravel()]), np.append(cost, np.zeros(m * K * K))
    program.aim(h, g, lam - problem.score(true), least=float(bound.least_cost[example]))
    found = program(mu, low, high)
    if found is None:
        return None
    if found.output is None:  # the nodes ended before there were labels
        return Answer(np.empty(0, np.int32), np.empty(0), 0.0, -lam, found.bound - lam)
    labels = found.output[: n * K].reshape(n, K).argmax(axis=1)
    psi = bound.joint_features(example, true) - bound.joint_features(example, labels)
    index, paid = np.flatnonzero(psi).astype(np.int32), float(cost[np.arange(n), labels].sum())
    value = mu * paid - float(w[: bound.n_weights] @ psi)
    return Answer(index, psi[index], paid, value, max(value, found.bound - lam))


def _program(edges: np.ndarray, n: int, n_labels: int) -> ConstrainedOracle:
    """The program of all labellings."""
    rows, right = local_polytope(edges, n, len(edges), n_labels)
    whole = np.arange(rows.shape[1]) < n * n_labels
    return ConstrainedOracle(rows, right, right, integer=whole, nodes=NODES)
