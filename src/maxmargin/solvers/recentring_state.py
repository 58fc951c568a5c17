"""The state of a run of the proximal point method: that of the engine inside, the centre, and the best bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from maxmargin.formulations.divergence import TableDivergence
from maxmargin.formulations.problem import Problem
from maxmargin.oracles.counting import CountingOracle
from maxmargin.solvers.state import DualState, OuterState, numbers_of, set_numbers

__all__ = ["TRACE", "RecentringState"]

TRACE = (
    "iteration", "centres", "gamma", "planes", "outside", "oracle_calls", "seconds", "primal_here", "primal", "dual",
    "proximal_upper", "proximal_lower", "estimate",
)  # fmt: skip


@dataclass
class RecentringState(OuterState):
    """Where a run stands; arrays and numbers only, so it can be saved and resumed."""

    problem: Problem  # with its own regulariser; that of ``inner`` has the proximal term
    inner: DualState
    centre: np.ndarray
    best: np.ndarray  # the feasible theta of least objective so far
    gamma: float
    primal: float = np.inf  # objective of best
    dual: float = -np.inf  # the best certified lower bound
    centre_primal: float = np.inf
    gap: float = np.inf  # of the proximal problem at the last look
    first: float = 0.0  # |objective| at the start, the unit of absolute rules
    certified: bool = True
    improved: bool = True  # whether a bound has improved since the last certificate
    looks: int = 0  # at all examples
    unchanged: int = 0  # looks since a bound improved
    bound_at: int = 0  # look of the next lower bound from all planes
    bound_wait: int = 0
    centres: int = 0
    bound_seconds: float = 0.0
    centre_seconds: float = 0.0
    other_examples: bool = False  # whether the run that begins here has other examples in place of these
    bound: tuple[float, np.ndarray] | None = None  # sum alpha b and sum alpha a of the best lower bound from all planes
    trace: list[tuple] = field(default_factory=list)

    rounds = None

    @property
    def oracle(self) -> CountingOracle:
        return self.inner.oracle

    @property
    def visits(self) -> int:
        """Visits of blocks (subsets of a stream) so far, where those are visited in turn."""
        return int(self.inner.cursor[0])

    @property
    def active(self) -> int:
        """Planes with weight."""
        ws = self.inner.working_set
        return int((ws.store.alpha[ws.ids(np.arange(ws.n_blocks))] > 0).sum())

    @property
    def seconds(self) -> dict[str, float]:
        """oracle and solver, and what is within: master, bound, centre (looks again after a centre change)."""
        parts = {"master": self.inner.solver_seconds, "bound": self.bound_seconds, "centre": self.centre_seconds}
        return {"oracle": self.oracle.seconds, "solver": parts["master"] + parts["bound"], **parts}

    def note(self, here: float, upper: float, lower: float, estimate: float, outside: int) -> None:
        """A row of the trace."""
        seconds = self.seconds["oracle"] + self.seconds["solver"]
        work = (self.looks, self.centres, self.gamma, self.active, outside, self.oracle_calls, seconds)
        self.trace.append((*work, here, self.primal, self.dual, upper, lower, estimate))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        regulariser = self.problem.regulariser
        assert isinstance(regulariser, TableDivergence)
        arrays = self.inner_arrays() | {"centre": self.centre.copy(), "best": self.best.copy()}
        arrays |= {"numbers": numbers_of(self, _NUMBERS), "pull": np.array(regulariser.pull)}
        arrays["trace"] = np.array(self.trace, np.float64).reshape(-1, len(TRACE))
        if self.bound is not None:
            arrays |= {"bound/linear": np.array(self.bound[0]), "bound/u": self.bound[1].copy()}
        return arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over the numbers, the trace and the best lower bound that :meth:`to_arrays` wrote."""
        set_numbers(self, _NUMBERS, arrays["numbers"])
        self.trace = [tuple(row) for row in np.asarray(arrays["trace"])]
        if "bound/u" in arrays:
            self.bound = float(arrays["bound/linear"]), np.array(arrays["bound/u"])


_NUMBERS = [f.name for f in fields(RecentringState) if f.type in ("float", "int", "bool")]  # gamma first
