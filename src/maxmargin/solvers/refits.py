"""Refits with completed truths, in the driver's verbs: a step is a step of the solver inside, sometimes of a new round.

See :mod:`maxmargin.formulations.latent`. The certificate is that of the round at hand; only the last round may end the
run by its gap. Budgets, callbacks and the history cover all rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.contracts import Solver, State
from maxmargin.formulations.latent import LatentProblem
from maxmargin.solvers.saved import FLAG, Saved
from maxmargin.solvers.state import SPENT, OuterState

__all__ = ["RefitState", "Refits"]


@dataclass
class RefitState(OuterState):
    """Where the rounds stand; ``earlier`` holds calls and seconds of the rounds that have ended."""

    problem: LatentProblem
    inner: State
    left: int
    completed_at: np.ndarray | None = None  # weights whose completions are the present truth; None: as given
    small: bool = False  # whether the gap of the round at hand is at most tol

    @property
    def rounds(self) -> list[dict[str, float]] | None:
        return self.inner.rounds

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here; the truth follows from the weights that it was completed at."""
        arrays = self.inner_arrays()
        arrays["rounds"] = np.array([self.left, self.small, *self.earlier])
        if self.completed_at is not None:
            arrays["completed_at"] = self.completed_at
        return arrays


@dataclass(eq=False)
class Refits:
    """The outer loop of latent outputs: ``refits`` rounds after the first, each by the solver ``inner``.

    A round ends at the relative gap ``tol``. The first begins with the outputs completed at the weights ``start``
    (n_weights,), or as given where that is None.
    """

    inner: Solver
    refits: int
    _: KW_ONLY
    tol: float
    start: np.ndarray | None = None

    @property
    def handles(self) -> frozenset[str]:
        """What the solver inside handles, and latent outputs."""
        return self.inner.handles | {"latent"}

    def init(self, problem: LatentProblem, warm: State | None = None) -> RefitState:
        """Begin with the outputs as given, or with their completions at the start."""
        if warm is not None:
            raise ValueError("warm_start needs the same truth in every fit, and latent outputs change it.")
        if self.start is not None:
            return RefitState(problem, self.inner.init(problem.at(self.start)), self.refits - 1, self.start)
        return RefitState(problem, self.inner.init(problem.first), self.refits)

    def certificate_due(self, state: RefitState) -> bool:
        """When the solver inside wants one."""
        return self.inner.certificate_due(state.inner)

    def certificate(self, state: RefitState) -> Certificate:
        """That of the round at hand."""
        certificate = self.inner.certificate(state.inner)
        state.small = certificate.relative_gap <= self.tol and self.inner.may_end(state.inner)
        return certificate

    def step_calls(self, state: RefitState) -> int:
        """Those of the solver inside."""
        return self.inner.step_calls(state.inner)

    def step(self, state: RefitState) -> None:
        """Begin the next round if this one is over, then one step of the solver inside."""
        if state.left and (state.small or self.inner.finished(state.inner) is not None):
            spent = state.spent()
            state.completed_at = self.inner.weights(state.inner).copy()
            state.inner, state.earlier = self.inner.init(state.problem.at(state.completed_at)), spent
            state.left, state.small = state.left - 1, False
        self.inner.step(state.inner)

    def weights(self, state: RefitState) -> np.ndarray:
        """Those of the round at hand."""
        return self.inner.weights(state.inner)

    def may_end(self, state: RefitState) -> bool:
        """In the last round only."""
        return state.left == 0 and self.inner.may_end(state.inner)

    def finished(self, state: RefitState) -> str | None:
        """When the solver inside is, in the last round."""
        return self.inner.finished(state.inner) if state.left == 0 else None

    def conclude(self, state: RefitState, certificate: Certificate, code: str) -> Certificate:
        """As the solver inside."""
        return self.inner.conclude(state.inner, certificate, code)

    def from_arrays(self, problem: LatentProblem, arrays: Mapping[str, np.ndarray]) -> RefitState:
        """Resume where :meth:`RefitState.to_arrays` left off."""
        saved, at = Saved.of(arrays), None
        if "completed_at" in saved:
            present = self.inner.weights(self.inner.init(problem.first))
            at = saved.weights("completed_at", problem, present.shape)
        ranges = {"left": (0.0, float(self.refits)), "small": FLAG, **SPENT}
        left, small, *earlier = map(float, saved.numbers("rounds", ranges))
        inner = self.inner.from_arrays(problem.first if at is None else problem.at(at), saved.part("inner"))
        state = RefitState(problem, inner, int(left), at, bool(small))
        state.set_earlier(earlier)
        return state
