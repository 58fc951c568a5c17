"""The linear program of L1-regularised large margins over the planes at hand, and what proves how well it is solved.

    min  |w|_1 + sum_i C_i xi_i    over  A w + xi_owner >= b,  xi >= 0,  w_j >= 0 where positive
    max  b . alpha                 over  alpha >= 0,  sum of each owner's alpha <= C_i,  |A' alpha|_j <= 1

where the last row is ``(A' alpha)_j <= 1`` for weights that must be >= 0. Wang, Shawe-Taylor 2009, equations (9), (10).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

__all__ = ["Basis", "Bounds", "Master", "Point", "Program"]


SWEEPS = 400  # over the columns, to make multipliers feasible
ROUNDING = 1e-12  # by which prices may be out of what has been made feasible


class Basis(NamedTuple):
    """Where a simplex method stands: what is basic."""

    weights: np.ndarray  # int8 (d,): 1 for the positive part of a weight, -1 for the negative one, 0 for neither
    slacks: np.ndarray  # bool (n,)
    rows: np.ndarray  # bool (m,): rows without a multiplier


class Point(NamedTuple):
    """Weights (d,) and one multiplier per row (m,), with the basis where a simplex method has found them."""

    w: np.ndarray
    alpha: np.ndarray
    basis: Basis | None = None


class Bounds(NamedTuple):
    """Values at a point: ``dual <= optimum <= primal``."""

    primal: float
    dual: float

    @property
    def relative_gap(self) -> float:
        """gap / max(|primal|, |dual|), 0 when there is none."""
        gap = self.primal - self.dual
        return gap / max(abs(self.primal), abs(self.dual)) if gap > 0.0 else 0.0


@dataclass(frozen=True)
class Program:
    """A linear program over m planes of n examples and d weights.

    ``A`` (m, d) and ``b`` (m,) are the planes, ``owner`` (m,) their examples, ``weight`` (n,) holds C_i, and
    ``positive`` (d,) says which weights must be >= 0; None when all are free.
    """

    A: sp.csr_array
    b: np.ndarray
    owner: np.ndarray
    weight: np.ndarray
    positive: np.ndarray | None = None

    @cached_property
    def transposed(self) -> sp.csr_array:
        """``A'`` by rows, (d, m)."""
        return sp.csr_array(self.A.T)

    def losses(self, w: np.ndarray) -> np.ndarray:
        """The largest of 0 and ``b - A w`` over the rows of each example, (n,): the best slacks for w."""
        losses = np.zeros(len(self.weight))
        np.maximum.at(losses, self.owner, self.b - self.A @ w)
        return losses

    def feasible(self, alpha: np.ndarray) -> np.ndarray:
        """Multipliers made feasible: the negative ones 0, then each example scaled, then all of them.

        One column that is far out costs all multipliers, so those in the columns that are out are moved first; what
        proves more is taken.
        """
        from maxmargin.solvers.linear_programs.feasible_kernel import project_prices, sparse

        alpha = np.maximum(alpha, 0.0)
        sums = np.bincount(self.owner, alpha, minlength=len(self.weight))
        share = np.divide(self.weight, sums, out=np.ones(len(sums)), where=sums > self.weight)
        alpha = alpha * share[self.owner]
        scale = float(self.prices(alpha).max(initial=0.0))
        if scale <= 1.0 + ROUNDING:
            return alpha / max(scale, 1.0)
        signs = np.zeros(self.A.shape[1], bool) if self.positive is None else self.positive
        moved, owner = alpha.copy(), self.owner.astype(np.int64)
        room = np.maximum(self.weight - np.bincount(owner, alpha, minlength=len(self.weight)), 0.0)
        project_prices(sparse(self.A), sparse(self.transposed), signs, owner, room, moved, np.empty(len(signs)), SWEEPS)
        moved /= max(1.0, float(self.prices(moved).max(initial=0.0)))
        return moved if self.b @ moved > self.b @ alpha / scale else alpha / scale

    def prices(self, alpha: np.ndarray) -> np.ndarray:
        """``|A' alpha|`` (d,), without the absolute value where weights must be >= 0: feasible up to 1."""
        u = self.transposed @ alpha
        return np.where(self.positive, u, np.abs(u)) if self.positive is not None else np.abs(u)

    def bounds(self, point: Point) -> Bounds:
        """What a point proves: the objective at its weights, and at its multipliers made feasible."""
        w = point.w if self.positive is None else np.where(self.positive, np.maximum(point.w, 0.0), point.w)
        primal = float(np.abs(w).sum() + self.weight @ self.losses(w))
        return Bounds(primal, float(self.b @ self.feasible(point.alpha)))


@runtime_checkable
class Master(Protocol):
    """A method that solves the program."""

    def solve(self, program: Program, start: Point, tol: float) -> Point:
        """A point whose bounds have a relative gap of at most ``tol``, from a start of any kind."""
