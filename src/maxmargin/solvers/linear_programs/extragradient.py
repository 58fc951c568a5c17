"""The extragradient method as a master: Algorithm 2 of Wang and Shawe-Taylor (2009), corrected.

With x = (w, xi), the matrix ``B = [A  M]`` where M marks the owner of each row, and the step s,

    x' = prox(x + s B' alpha)           alpha' = [alpha + s (b - B x)]_+
    x  = prox(x + s B' alpha')          alpha  = [alpha + s (b - B x')]_+

where prox thresholds the weights softly by s (cuts them at 0 where they must be >= 0) and takes ``s C_i`` off the
slacks, cut at 0. It converges for ``0 < s < 1 / |B|_2``; the printed bound includes both ends, which do not converge.
Korpelevich 1976.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from maxmargin.parameters import Parameters
from maxmargin.solvers.linear_programs.program import Bounds, Point, Program
from maxmargin.solvers.settings import check_words

__all__ = ["Extragradient"]

Vectors: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # weights, slacks, multipliers

CHECKED = 20  # steps between certified bounds


@dataclass(repr=False, eq=False)
class Extragradient(Parameters):
    """The extragradient method; four sparse products a step.

    Parameters
    ----------
    step : {"spectral", "frobenius"}
        "frobenius" is the paper's, ``(2 |A|_F^2 + 2 |M|_F^2)^(-1/2)``: safe, but far below what converges;
        "spectral" is ``0.99 / |B|_2``.
    stop : {"gap", "paper"}
        "gap": the certified relative gap is at most ``tol``. "paper": the relative movement of x and of alpha is below
        ``tol``, and the signed difference of the objectives, which infeasible multipliers can make negative, below
        ``tol`` times the primal one.
    max_steps : int
        The most steps in one solve; the point is then the best so far.

    References
    ----------
    Wang, Shawe-Taylor 2009, Large-margin structured prediction via linear programming, section 4.
    """

    step: str = "spectral"
    stop: str = "gap"
    max_steps: int = 100_000

    def solve(self, program: Program, start: Point, tol: float) -> Point:
        """See :class:`~maxmargin.solvers.linear_programs.program.Master`. Slacks begin at the violations of ``w``."""
        check_words("step", self.step, ("spectral", "frobenius"))
        check_words("stop", self.stop, ("gap", "paper"))
        size = self._length(program)
        now: Vectors = (start.w, program.losses(start.w), np.maximum(start.alpha, 0.0))
        move = _mover(program, size)
        best, bounds = start, program.bounds(start)
        for count in range(1, self.max_steps + 1):
            if bounds.relative_gap <= tol and self.stop == "gap":
                break
            last, now = now, move(now, move(now, now))
            if self.stop == "paper" and _settled(program, last, now, tol):
                return Point(now[0], now[2])
            if count % CHECKED == 0 or count == self.max_steps:
                point = Point(now[0], now[2])
                found = program.bounds(point)
                best = Point(
                    point.w if found.primal < bounds.primal else best.w,
                    point.alpha if found.dual > bounds.dual else best.alpha,
                )
                bounds = Bounds(min(found.primal, bounds.primal), max(found.dual, bounds.dual))
        return best

    def _length(self, program: Program) -> float:
        """The step s."""
        m, n = len(program.b), len(program.weight)
        if self.step == "frobenius":
            return float((2.0 * (program.A.data**2).sum() + 2.0 * m) ** -0.5) if m else 1.0
        owners = sp.csr_array((np.ones(m), (np.arange(m), program.owner)), shape=(m, n))
        B = sp.csr_array(sp.hstack([program.A, owners]))
        x, norm = np.random.default_rng(0).random(B.shape[1]) + 0.5, 0.0
        for _ in range(100):
            x = B.T @ (B @ x)
            norm = float(np.linalg.norm(x))
            x /= norm or 1.0
        return 0.99 / np.sqrt(norm) if norm else 1.0


def _mover(program: Program, s: float) -> Callable[[Vectors, Vectors], Vectors]:
    """The function (now, at) -> now moved by the step s along the gradients at ``at``."""
    n, signs = len(program.weight), program.positive

    def move(now: Vectors, at: Vectors) -> Vectors:
        w = now[0] + s * (program.transposed @ at[2])
        down = np.maximum(w - s, 0.0)
        w = down + np.minimum(w + s, 0.0) * (1.0 if signs is None else ~signs)
        xi = np.maximum(now[1] + s * (np.bincount(program.owner, at[2], minlength=n) - program.weight), 0.0)
        alpha = np.maximum(now[2] + s * (program.b - program.A @ at[0] - at[1][program.owner]), 0.0)
        return w, xi, alpha

    return move


def _settled(program: Program, last: Vectors, now: Vectors, tol: float) -> bool:
    """The stopping rule as printed: small relative movements, and a small signed difference of the objectives."""
    x, before = np.concatenate(now[:2]), np.concatenate(last[:2])
    still = np.linalg.norm(x - before) < tol * np.linalg.norm(x)
    still = still and np.linalg.norm(now[2] - last[2]) < tol * np.linalg.norm(now[2])
    primal = np.abs(now[0]).sum() + program.weight @ now[1]
    return bool(still and primal - program.b @ now[2] < tol * primal)
