"""The restarted primal-dual method as a master: it solves over the columns that matter and prices the others.

Most weights of an L1-regularised model are zero, and stay so: a column whose price ``|A' alpha|_j`` is far below 1 has
no part in the steps. So a stage steps over columns with a weight or a price near 1, the bounds are then taken over all
columns, and those whose price has risen join for the next stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxmargin.parameters import Parameters
from maxmargin.solvers.linear_programs.feasible_kernel import sparse
from maxmargin.solvers.linear_programs.primal_dual_kernel import Pair, Path, Saddle, primal_dual
from maxmargin.solvers.linear_programs.program import Bounds, Point, Program

__all__ = ["PrimalDual"]

POWER_STEPS = 20  # of the estimate of a matrix norm,
SAFETY = 1.05  # which is from below
OPENING = 30  # steps over all columns, when nothing is known about prices,
FAR = 0.1  # as at a start of at least this relative gap
SHARE = 0.1  # of the gap of the last stage: where a stage ends
CONTROL = np.array([0.3, 0.01])  # how the balance of the steps follows that of the weights and multipliers
RUIZ = 10  # passes of scaling, where
UNEVEN = 2.0  # powers of ten lie between the largest entries of columns
NEAR = 0.7  # price from which a column takes part


@dataclass(repr=False, eq=False)
class PrimalDual(Parameters):
    """Restarted primal-dual hybrid gradient method with reflected Halpern steps, for large programs.

    A step costs two sparse products and proves bounds; a warm start keeps its meaning, whatever rows were added. Steps
    have the lengths of Pock and Chambolle, after Ruiz' scaling where columns differ much, scaled up by the true norm.

    Parameters
    ----------
    max_steps : int
        The most steps in one solve; the point is then the best so far.

    References
    ----------
    Chambolle, Pock 2011. Pock, Chambolle 2011, Diagonal preconditioning. Applegate et al. 2021, PDLP. Lu, Yang 2024,
    Restarted Halpern PDHG for linear programming.
    """

    max_steps: int = 100_000

    def solve(self, program: Program, start: Point, tol: float) -> Point:
        """See :class:`~maxmargin.solvers.linear_programs.program.Master`."""
        order = np.argsort(program.owner, kind="stable")
        A = sp.csr_array(program.A[order])
        program = Program(A, program.b[order], program.owner[order], program.weight, program.positive)
        point = best = Point(start.w, start.alpha[order])
        bounds = program.bounds(point)
        part = np.ones(A.shape[1], bool)  # the columns that take part
        omega, left, target, priced = 0.0, self.max_steps, 1.0, False
        known = bounds.relative_gap < FAR
        while bounds.relative_gap > tol and left > 0:
            few, gap = left, bounds.relative_gap
            if known and point.alpha.any():
                near = (program.prices(point.alpha) > NEAR) | (point.w != 0.0)
                part, priced = part | near if priced else near, True
            else:  # no prices yet
                few = min(left, OPENING)
            stage = _Stage(program, np.flatnonzero(part), point, omega)
            steps, omega, reached = stage.run(target, few)
            left, point, known = left - steps, stage.last, True
            found = program.bounds(stage.best)
            best = Point(
                stage.best.w if found.primal < bounds.primal else best.w,
                stage.best.alpha if found.dual > bounds.dual else best.alpha,
            )
            bounds = Bounds(min(found.primal, bounds.primal), max(found.dual, bounds.dual))
            target = max(SHARE * bounds.relative_gap, tol) if bounds.relative_gap < gap else SHARE * reached
        alpha = np.empty(len(order))
        alpha[order] = best.alpha
        return Point(best.w, alpha)


class _Stage:
    """Steps over some columns of a program whose rows are ordered by owner."""

    def __init__(self, program: Program, columns: np.ndarray, start: Point, omega: float) -> None:
        m, d = program.A.shape
        T = program.transposed[columns]
        A = sp.csr_array(T.T)
        tau, sigma = _lengths(A, program.owner, len(program.weight))  # with these the norm is at most 1,
        norm = min(1.0, SAFETY * _norm(A, tau, sigma))  # but mostly it is less
        ends = np.searchsorted(program.owner, np.arange(len(program.weight) + 1))
        positive = np.zeros(len(columns), bool) if program.positive is None else program.positive[columns]
        owner = program.owner.astype(np.int64)
        tau, sigma = 0.998 * tau / norm, 0.998 * sigma / norm
        self.saddle = Saddle(sparse(A), sparse(T), program.b, ends, owner, program.weight, positive, tau, sigma)
        self.columns, self.n_columns = columns, d
        sizes = len(columns), m, len(columns), m
        self.path = Path(*(Pair(*map(np.empty, sizes)) for _ in Path._fields))
        z = self.path.z
        z.w[:], z.alpha[:] = start.w[columns], start.alpha
        self.best_w, self.best_alpha = z.w.copy(), z.alpha.copy()
        far, wide = (z.w**2 / tau).sum(), (z.alpha**2 / sigma).sum()
        self.omega = omega or (float(np.sqrt(wide / far)) if far > 0.0 and wide > 0.0 else 1.0)

    def run(self, tol: float, most: int) -> tuple[int, float, float]:
        """Step until the gap over these columns is at most ``tol``; the number of steps, omega, and the gap."""
        steps, primal, dual, omega = primal_dual(
            self.saddle, self.path, self.best_w, self.best_alpha, self.omega, CONTROL, tol, most
        )
        return int(steps), float(omega), Bounds(primal, dual).relative_gap

    @property
    def best(self) -> Point:
        return Point(self._spread(self.best_w), self.best_alpha)

    @property
    def last(self) -> Point:
        return Point(self._spread(self.path.image.w), self.path.image.alpha)

    def _spread(self, w: np.ndarray) -> np.ndarray:
        full = np.zeros(self.n_columns)
        full[self.columns] = w
        return full


def _lengths(A: sp.csr_array, owner: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Squares of the lengths of steps: tau (d,) of the weights, sigma (m,) of the multipliers, equal within an owner.

    Those of Pock and Chambolle for the matrix whose columns and owners are scaled until their largest entries are 1
    (Ruiz 2001). Where columns are of one size already, scaling only costs steps, and is left out.
    """

    def of_owner(x: np.ndarray) -> np.ndarray:
        largest = np.zeros(n)
        np.maximum.at(largest, owner, x)
        return largest[owner]

    size, rows, columns = abs(A), np.ones(A.shape[0]), np.ones(A.shape[1])
    tops = size.max(axis=0).toarray().ravel()
    uneven = bool(tops.any()) and np.ptp(np.log10(tops[tops > 0.0])) > UNEVEN
    for _ in range(RUIZ if uneven else 0):
        scaled = sp.csr_array(sp.diags_array(rows) @ size @ sp.diags_array(columns))
        rows = rows * np.sqrt(_inverse(of_owner(scaled.max(axis=1).toarray().ravel())))
        columns = columns * np.sqrt(_inverse(scaled.max(axis=0).toarray().ravel()))
    return columns * _inverse(size.T @ rows), rows**2 * _inverse(of_owner(rows * (size @ columns)))


def _inverse(x: np.ndarray) -> np.ndarray:
    """1 / x, and 1 where x is 0: what nothing depends on may go any way."""
    return 1.0 / np.where(x > 0.0, x, 1.0)


def _norm(A: sp.csr_array, tau: np.ndarray, sigma: np.ndarray) -> float:
    """An estimate from below of the largest singular value of ``A``, its columns times sqrt(tau), rows sqrt(sigma)."""
    x = np.random.default_rng(0).random(len(tau)) + 0.5
    square = 0.0
    for _ in range(POWER_STEPS):
        x = tau * (A.T @ (sigma * (A @ x)))  # in coordinates divided by sqrt(tau)
        square = float(np.sqrt((x**2 / tau).sum()))
        if square == 0.0:
            return 1.0
        x /= square
    return float(np.sqrt(square))
