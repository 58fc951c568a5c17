"""The state of a run of the proximal point method: that of the engine inside, the centre, and the best bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from maxmargin.formulations.divergence import TableDivergence
from maxmargin.formulations.problem import Problem
from maxmargin.oracles.counting import CountingOracle
from maxmargin.solvers.blocks import Blocks
from maxmargin.solvers.proof import Losses, agree
from maxmargin.solvers.saved import COUNT, FLAG, NUMBER, SIZE, Saved
from maxmargin.solvers.state import DualState, OuterState, numbers_of

__all__ = ["NUMBERS", "TRACE", "RecentringState"]

TRACE = (
    "iteration", "centres", "gamma", "planes", "outside", "oracle_calls", "seconds", "primal_here", "primal", "dual",
    "proximal_upper", "proximal_lower", "estimate",
)  # fmt: skip


LEAST = -1e3  # log-probability at which planes are looked at in place of minus infinity


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
    bound: tuple[float, np.ndarray] | None = None  # sum alpha b and sum alpha a behind ``dual``
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
        arrays |= {"numbers": numbers_of(self, NUMBERS), "pull": np.array(regulariser.pull)}
        arrays["trace"] = np.array(self.trace, np.float64).reshape(-1, len(TRACE))
        if self.bound is not None:
            arrays |= {"bound/linear": np.array(self.bound[0]), "bound/u": self.bound[1].copy()}
        return arrays

    def restore(self, saved: Saved) -> None:
        """Take over the numbers, the trace and the best lower bound that :meth:`to_arrays` wrote.

        The numbers must be what they say: ``primal`` the objective of ``best`` (one argmax per example), ``dual`` the
        value of the multipliers that prove it.
        """
        problem, w = self.problem, np.zeros(self.problem.n_columns)
        saved.take_over("numbers", self, NUMBERS, unknown="gamma")
        self.trace = [tuple(row) for row in saved.array("trace", np.float64, (None, len(TRACE)))]
        w[: len(self.best)] = self.best
        losses, proven = Losses.around(saved, problem, Blocks(None), w), -np.inf
        if "bound/u" in saved:
            linear, u = float(saved.reals("bound/linear", ())), saved.reals("bound/u", (problem.n_columns,))
            if losses.sum_exceeded(linear, u):
                raise saved.refusal("bound/linear", "claims planes that lie above the losses")
            self.bound, proven = (linear, u), problem.lower_bound(linear, u - self._shift)
        objective = problem.primal(w, losses.points[0][1])
        if self.certified and np.isfinite(self.primal) and not agree(self.primal, objective):
            raise saved.refusal("numbers", f"has the primal {self.primal} where the weights have {objective}")
        if np.isfinite(self.dual) and not agree(self.dual, proven, abs(objective)):
            raise saved.refusal("numbers", f"has the dual {self.dual} where {proven} is proven")

    def bound_weights(self) -> np.ndarray:
        """Where the lower bound is attained (n_columns,)."""
        linear, u = (0.0, np.zeros(self.problem.n_columns)) if self.bound is None else self.bound
        _, scale = self.problem.regulariser.lower_bound(linear + self.problem.offset, u - self._shift)
        return np.maximum(self.problem.regulariser.weights(scale * (u - self._shift)), LEAST)

    def prove(self, value: float, linear: float, u: np.ndarray) -> None:
        """Take note of multipliers whose lower bound is the best so far; u is without the shift of the problem."""
        self.dual, self.bound = value, (linear, u + self._shift)

    @property
    def _shift(self) -> np.ndarray | float:
        shift = self.problem.shift
        return 0.0 if shift is None else shift


_BY_TYPE = {"float": NUMBER, "int": COUNT, "bool": FLAG}
_OWN = {
    "gamma": (1e-150, 1e150),
    "gap": SIZE,
    "first": SIZE,
    "bound_wait": (0.0, 2.0**30),
    "other_examples": (0.0, 0.0),
}
NUMBERS = {f.name: _OWN.get(f.name, _BY_TYPE[f.type]) for f in fields(RecentringState) if f.type in _BY_TYPE}
