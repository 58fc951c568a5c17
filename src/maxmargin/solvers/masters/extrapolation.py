"""Extrapolation of passes over planes at hand: a jump to the best point of the plane through the last few points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.solvers.base import one_blas_thread

__all__ = ["LONGER", "POINTS", "Extrapolation", "pays"]

POINTS = 4  # that a jump looks back at
EVERY = 2  # passes between two jumps
LONGER = 1 / 6  # passes with jumps are worth going on with until they gain less than this share of the usual
SHORT_BESIDE = 10  # weights are few when the planes at hand have this many times as many non-zeros


def pays(ws: Any) -> bool:
    """Whether the weights are few beside the planes at hand, so that jumps cost little beside passes."""
    return SHORT_BESIDE * ws.n_columns <= ws.n_entries


Aim = Callable[[Any, np.ndarray, np.ndarray], float]  # (store, target, change) -> linear


def _aim(store: Any, target: np.ndarray, change: np.ndarray) -> float:
    from maxmargin.solvers.masters.extrapolation_kernel import aim

    return float(aim(store, target, change))


class Extrapolation:
    """Looks at the points that passes over blocks leave behind, and jumps ahead.

    Block after block is slow where blocks pull at the same weights: the points crawl along a few directions, and where
    those lead can be computed. With the differences ``d_k`` of the last points in the multipliers and ``D_k`` in u, the
    dual is a quadratic in the coefficients c of ``alpha + sum_k c_k d_k``:

        max_c  c . (d . b - D w) - 1/2 c' D H D' c,      H = R*''(u)

    The solution may leave the simplexes. It is pulled back into them, and the exact line search towards the point found
    decides how far to go, so that the dual never falls. A jump costs the non-zeros of the planes that move and a few
    operations on vectors as long as the weights: it pays where these are short beside the planes. The regulariser is a
    quadratic one, with signs or not; ``u`` and ``w`` (n_columns,) are kept up to date. ``aim`` may be shared out.

    Bertrand, Massias 2021, Anderson acceleration of coordinate descent. Here the combination is the best one for the
    dual in place of the one of least residual, and constraints are kept.
    """

    def __init__(self, ws: Any, u: np.ndarray, w: np.ndarray, regulariser: Any, aim: Aim | None = None) -> None:
        self.ws, self.u, self.w, self.regulariser, self.aim = ws, u, w, regulariser, aim
        self.alpha: list[np.ndarray] = []
        self.points: list[np.ndarray] = []
        self.linear: list[float] = []
        self.passes = 0
        self.moved = False  # whether the last call has changed multipliers, be the gain below rounding

    def after_pass(self) -> float:
        """Note where a pass has ended; jump when it is time to. Returns the gain of the dual."""
        self.alpha = [*self.alpha, self.ws.store.alpha.copy()][-POINTS:]
        self.points = [*self.points, self.u.copy()][-POINTS:]
        self.linear = [*self.linear, self.ws.linear][-POINTS:]
        self.passes, self.moved = self.passes + 1, False
        if self.passes <= EVERY or (self.passes - 1) % EVERY:
            return 0.0
        with one_blas_thread():
            return self.jump()

    def jump(self) -> float:
        """Jump from the last point noted; returns the gain of the dual."""
        from maxmargin.solvers.masters.extrapolation_kernel import advance

        store, u, change = self.ws.store, self.u, self.ws.dense
        D = np.diff(self.points, axis=0)
        slope = np.diff(self.linear) - D @ self.w
        if self.regulariser.positive is not None:
            D = D[:, ~(self.regulariser.positive & (u < 0))]
        c = np.linalg.lstsq(D @ D.T, slope, rcond=1e-10)[0]
        target = store.alpha.copy()  # one plane like another, wherever it lies: a product of matrices may not
        for coefficient, step in zip(c, np.diff(self.alpha, axis=0), strict=True):
            target += coefficient * step
        linear = (self.aim or _aim)(store, target, change)
        before, share = self.regulariser.conjugate(u), self._line_search(linear, change)
        if share > 0.0:
            self.moved = True
            advance(store, target, share)
            self.ws.follow(u, self.w, change, linear, self.regulariser, share)
        change[:] = 0.0
        return max(share * linear - (self.regulariser.conjugate(u) - before), 0.0)

    def _line_search(self, linear: float, change: np.ndarray) -> float:
        """The best share of the way, in [0, 1]."""
        if self.regulariser.positive is not None:
            from maxmargin.solvers.masters.smo_signed_kernel import signed_step

            index = np.flatnonzero(change).astype(np.int32)
            signs = self.regulariser.positive.astype(np.int8)
            return float(signed_step(self.u, signs, index, change[index], len(index), linear, 1.0))
        slope, curvature = linear - float(self.w @ change), float(change @ change)
        if slope <= 0.0:
            return 0.0
        return 1.0 if slope >= curvature else slope / curvature
