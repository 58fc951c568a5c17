"""The master problems of the proximal point method, for :func:`~maxmargin.solvers.masters.newton.projected_newton`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.formulations.proximal import Proximal, Solved
from maxmargin.solvers.masters.newton import projected_newton

__all__ = ["ProximalMaster", "Solution", "best_bound", "solve_planes"]

SMOOTHING = (1e-3, 1e-5)  # of the reference: the second alone is too steep to start with
MOST_STEPS = 50


class ProximalMaster:
    """f(q) = b . q - R_n*(rest + A'q) - q'Gq / 2, concave; G only for squared losses.

    Parameters
    ----------
    A : array (m, d)
        One row per plane; rows of zeros are origins.
    b : array (m,)
    proximal : Proximal
    rest : array (d,)
        What planes that stay as they are add to u.
    gram : array (m, m), optional
    """

    def __init__(
        self, A: np.ndarray, b: np.ndarray, proximal: Proximal, rest: np.ndarray, gram: np.ndarray | None = None
    ) -> None:
        self.A, self.b, self.proximal, self.rest, self.gram = A, b, proximal, rest, gram
        self._last: tuple[np.ndarray, np.ndarray, Solved] | None = None

    def at(self, q: np.ndarray) -> tuple[np.ndarray, Solved]:
        """u and what belongs to it; the last answer is kept, because value, gradient and Hessian ask for the same q."""
        if self._last is None or self._last[0] is not q:
            u = self.rest + q @ self.A
            self._last = q, u, self.proximal.solve(u)
        return self._last[1], self._last[2]

    def value(self, q: np.ndarray) -> float:
        u, solved = self.at(q)
        value = float(self.b @ q) - self.proximal.conjugate(u, solved)
        return value if self.gram is None else value - 0.5 * float(q @ self.gram @ q)

    def gradient(self, q: np.ndarray) -> np.ndarray:
        slope = self.b - self.A @ self.at(q)[1].theta
        return slope if self.gram is None else slope - self.gram @ q

    def hessian(self, q: np.ndarray) -> np.ndarray:
        H = self.proximal.curvature(self.A, *self.at(q))
        return H if self.gram is None else H + self.gram


class Solution(NamedTuple):
    """Multipliers (m,), theta (d,), u (d,) and f at the end of a master problem."""

    weights: np.ndarray
    theta: np.ndarray
    u: np.ndarray
    value: float


def solve_planes(
    A: np.ndarray,
    b: np.ndarray,
    block: np.ndarray,
    gram: np.ndarray | None,
    weights: np.ndarray,
    proximal: Proximal,
    rest: np.ndarray,
    tol: float,
) -> Solution:
    """Maximise f over the multipliers of planes: at most 1 in each block, or >= 0 with ``gram`` (squared losses).

    Parameters
    ----------
    A, b : arrays (m, d), (m,)
    block : int array (m,)
    gram : array (m, m) or None
    weights : array (m,)
        Where to start.
    proximal : Proximal
    rest : array (d,)
    tol : float
        In units of f.
    """
    present, owner = np.unique(block, return_inverse=True)
    m, n = len(b), len(present)
    total = np.full(n, np.inf)
    q = weights
    if gram is None:  # the origin of each simplex is a variable with the zero plane
        A, b = np.vstack([A, np.zeros((n, A.shape[1]))]), np.concatenate([b, np.zeros(n)])
        q = np.concatenate([weights, np.maximum(1.0 - np.bincount(owner, weights, n), 0.0)])
        owner, total = np.concatenate([owner, np.arange(n)]), np.ones(n)
    master = ProximalMaster(A, b, proximal, rest, gram)
    result = projected_newton(master, owner, total, q, tol, MOST_STEPS)
    u, solved = master.at(result.q)
    return Solution(result.q[:m], solved.theta, u, result.value)


def best_bound(
    problem: Any,
    A: np.ndarray,
    b: np.ndarray,
    block: np.ndarray,
    gram: np.ndarray | None,
    weights: np.ndarray,
    centre: np.ndarray,
    tol: float,
) -> tuple[float, np.ndarray]:
    """The best certified lower bound of the optimum that the planes at hand can give, and its multipliers.

    That is the largest value of the dual of (P) itself over their multipliers; each block may give weight to its
    origin, so that blocks shrink apart from each other. The dual is finite for ``c + u >= 0`` only, hence a proximal
    term that is small against the reference, entry by entry; what is left outside is shrunk away with one t for all.

    Parameters
    ----------
    problem : GenerativeProblem
    A, b, block, gram, weights
        As in :func:`solve_planes`, planes counted from the origins of their blocks.
    centre : array (d,)
        Any feasible theta close to the optimum.
    tol : float
        How exactly, in units of the dual.
    """
    bound, kept = -np.inf, weights
    none = np.zeros(problem.n_weights)
    for share in SMOOTHING:
        proximal = Proximal(problem.tables, problem.reference, share * problem.reference, centre, problem.pull)
        weights, _, u, _ = solve_planes(A, b, block, gram, weights, proximal, none, tol)
        quadratic = 0.0 if gram is None else float(weights @ gram @ weights)
        value, scale = problem.bound_along(float(weights @ b) - problem.offset, u, quadratic)
        if value > bound:
            bound, kept = value, scale * weights
    return bound, kept
