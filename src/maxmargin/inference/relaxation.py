"""The linear relaxation of a pairwise graph over its local polytope, by HiGHS."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxmargin.inference.graph import GraphAnswer, GraphProblem, improved

__all__ = ["local_polytope", "relaxation"]


def relaxation(problem: GraphProblem, *, integer: bool = False) -> GraphAnswer:
    """Labels rounded from the relaxation, and its bound; with ``integer``, search until both meet.

    Formula: ``max sum_p <mu_p, unary_p> + sum_e <mu_e, pairwise_e>`` over ``mu >= 0`` with ``sum_k mu_p(k) = 1`` and
    ``sum_j mu_e(i, j) = mu_p(i)``, ``sum_i mu_e(i, j) = mu_q(j)``. The bound comes from the multipliers, so it holds
    whatever the solver's tolerance; the bound of the integer search holds up to that tolerance, 1e-6.

    Complexity: a linear (integer) program with n K + m K^2 variables and n + 2 m K rows. Schlesinger (1976);
    Wainwright, Jaakkola, Willsky (2005), MAP estimation via agreement on trees.
    """
    n, K = problem.unary.shape
    m = len(problem.pairwise)
    scores = np.concatenate([problem.unary.ravel(), problem.pairwise.ravel()])
    rows, right = local_polytope(problem.structure.edges, n, m, K)
    if integer:
        from scipy.optimize import Bounds, LinearConstraint, milp

        whole = np.concatenate([np.ones(n * K), np.zeros(m * K * K)])
        limits = LinearConstraint(rows, right, right)
        options = {"mip_rel_gap": 0.0}
        found = milp(-scores, integrality=whole, bounds=Bounds(0, 1), constraints=limits, options=options)
        if found.x is None:
            raise ValueError(f'{_what(scores, "integer")}: {found.message} Use method="auto".')
        labels = found.x[: n * K].reshape(n, K).argmax(axis=1).astype(np.int32)
        return problem.answer(labels, -float(found.mip_dual_bound), "integer")
    from scipy.optimize import linprog

    found = linprog(-scores, A_eq=rows, b_eq=right, method="highs")
    if found.x is None:
        raise ValueError(f'{_what(scores, "linear")}: {found.message} Use method="trws".')
    message = found.eqlin.marginals[n:].reshape(2, m, K)
    unary, pairwise = problem.unary.copy(), problem.pairwise.copy()
    for side in (0, 1):
        np.add.at(unary, problem.structure.edges[:, side], message[side])
    pairwise -= message[0][:, :, None] + message[1][:, None, :]
    bound = unary.max(axis=1).sum() + pairwise.max(axis=(1, 2)).sum()
    labels = improved(problem, found.x[: n * K].reshape(n, K).argmax(axis=1))
    return problem.answer(labels, bound, "relaxation")


def _what(scores: np.ndarray, kind: str) -> str:
    largest = np.abs(scores).max(initial=0.0)
    return f"the {kind} program of a graph with scores up to {largest:.3g} was not solved"


def local_polytope(edges: np.ndarray, n: int, m: int, K: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows: one label per node (n), then ``mu_p(k) - sum mu_e = 0`` for first and second nodes of edges (2 m K)."""
    one = sp.kron(sp.eye_array(n), np.ones((1, K)))
    each = np.arange(m * K)
    blocks = [sp.hstack([one, sp.csr_array((n, m * K * K))])]
    for side, sums in enumerate((sp.kron(sp.eye_array(K), np.ones((1, K))), sp.kron(np.ones((1, K)), sp.eye_array(K)))):
        node = (edges[:, side, None] * K + np.arange(K)).ravel()
        own = sp.csr_array((np.ones(m * K), (each, node)), shape=(m * K, n * K))
        blocks.append(sp.hstack([own, -sp.kron(sp.eye_array(m), sums)]))
    return sp.csr_array(sp.vstack(blocks)), np.concatenate([np.ones(n), np.zeros(2 * m * K)])
