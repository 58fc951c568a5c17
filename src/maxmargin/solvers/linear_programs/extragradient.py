"""The extragradient method as a master: Algorithm 2 of Wang and Shawe-Taylor (2009), corrected.

With x = (w, xi), the matrix ``B = [A  M]`` where M marks the owner of each row, and the step s,

    x' = prox(x + s B' alpha)           alpha' = [alpha + s (b - B x)]_+
    x  = prox(x + s B' alpha')          alpha  = [alpha + s (b - B x')]_+

where prox thresholds the weights softly by s (cuts them at 0 where they must be >= 0) and takes ``s C_i`` off the
slacks, cut at 0. It converges for ``0 < s < 1 / |B|_2``; the printed bound includes both ends, which do not converge.
Korpelevich 1976.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxmargin.parameters import Parameters
from maxmargin.solvers.linear_programs.extragradient_kernel import Printed, Triple, extragradient
from maxmargin.solvers.linear_programs.feasible_kernel import sparse
from maxmargin.solvers.linear_programs.program import Bounds, Point, Program
from maxmargin.solvers.settings import check_words

__all__ = ["Extragradient"]

CHECKED = 20  # steps between certified bounds at first,
SELDOM = 20  # and later this part of all steps so far


@dataclass(repr=False, eq=False)
class Extragradient(Parameters):
    """The extragradient method; four sparse products a step, compiled.

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
        steps, best, bounds = _Steps(program, start, self._length(program)), start, program.bounds(start)
        few, done, lap = (1 if self.stop == "paper" else CHECKED), 0, 0
        while done < self.max_steps and not (bounds.relative_gap <= tol and self.stop == "gap"):
            steps.run(min(few, self.max_steps - done))
            done, lap = done + few, lap + 1
            if self.stop == "paper":
                if steps.settled(tol):
                    return steps.now
                if lap % CHECKED:
                    continue
            for point in steps.points():
                found = program.bounds(point)
                best = Point(
                    point.w if found.primal < bounds.primal else best.w,
                    point.alpha if found.dual > bounds.dual else best.alpha,
                )
                bounds = Bounds(min(found.primal, bounds.primal), max(found.dual, bounds.dual))
            if self.stop == "gap":
                few = max(CHECKED, done // SELDOM)
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


class _Steps:
    """Steps of length s from a point, whose slacks begin at the violations of its weights."""

    def __init__(self, program: Program, start: Point, s: float) -> None:
        (m, d), n = program.A.shape, len(program.weight)
        positive = np.zeros(d, bool) if program.positive is None else program.positive
        parts = sparse(program.A), sparse(program.transposed), program.b, program.owner.astype(np.int64)
        self.printed, self.size = Printed(*parts, program.weight, positive), s
        self.triples = [Triple(*map(np.zeros, (d, n, m, d, m, n))) for _ in range(4)]
        self.triple, self.last, self.ahead, self.mean = self.triples
        self.triple.w[:], self.triple.alpha[:] = start.w, np.maximum(start.alpha, 0.0)
        self.triple.xi[:] = program.losses(start.w)

    def run(self, steps: int) -> None:
        extragradient(self.printed, self.size, *self.triples, steps)

    @property
    def now(self) -> Point:
        return Point(self.triple.w.copy(), self.triple.alpha.copy())

    def points(self) -> list[Point]:
        """Where bounds are taken: here, and at the mean of the last run, which swings less."""
        return [self.now, Point(self.mean.w.copy(), self.mean.alpha.copy())]

    def settled(self, tol: float) -> bool:
        """The stopping rule as printed: small relative movements, and a small signed difference of the objectives."""
        now, last = self.triple, self.last
        x, before = np.concatenate([now.w, now.xi]), np.concatenate([last.w, last.xi])
        still = np.linalg.norm(x - before) < tol * np.linalg.norm(x)
        still = still and np.linalg.norm(now.alpha - last.alpha) < tol * np.linalg.norm(now.alpha)
        primal = np.abs(now.w).sum() + self.printed.weight @ now.xi
        return bool(still and primal - self.printed.b @ now.alpha < tol * primal)
