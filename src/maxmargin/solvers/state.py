"""States of runs: what all of them have, and that of the dual engine. A checkpoint is a file of arrays."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from maxmargin.contracts import State
from maxmargin.formulations.problem import Problem
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import Planes
from maxmargin.solvers.blocks import Blocks
from maxmargin.solvers.saved import COUNT, FLAG, NUMBER, SECONDS, SIZE

if TYPE_CHECKING:
    from maxmargin.solvers.packed import PackedPlanes
    from maxmargin.solvers.strands import Team
    from maxmargin.solvers.working_set import WorkingSet
    from maxmargin.solvers.working_set_kernel import Log

__all__ = ["DualState", "InnerState", "OuterState", "Spent"]

FIRST_TAU = 1e-3
PLANE_FIELDS = ("indptr", "indices", "data", "b", "example", "bound")
COUNTS = {"oracle.oracle_calls": COUNT, "oracle.argmax_calls": COUNT, "certificates": COUNT}
NUMBERS = {
    "since": COUNT, "solver_seconds": SECONDS, "oracle.seconds": SECONDS, "drift": SIZE, "tau": (0.0, FIRST_TAU),
    "reached": NUMBER, "relative_gap": SIZE, "slow": FLAG, "gap": SIZE,
    "least_gap": NUMBER, "without_gain": COUNT, "idle_masters": COUNT, "coarse": FLAG,
}  # fmt: skip
SPENT = {"oracle_calls": COUNT, "argmax_calls": COUNT, "oracle seconds": SECONDS, "solver seconds": SECONDS}


def numbers_of(state: object, names: Iterable[str]) -> np.ndarray:
    """Numbers of a state, or of its parts (names with a dot), as one array."""
    return np.array([float(attrgetter(name)(state)) for name in names])


def plane_arrays(name: str, planes: Planes) -> dict[str, np.ndarray]:
    """Planes as arrays called ``name/...``."""
    return {f"{name}/{key}": getattr(planes, key) for key in PLANE_FIELDS}


class Spent(NamedTuple):
    """What a run has cost so far: oracle calls, the argmaxes of their searches, and seconds."""

    oracle_calls: int = 0
    argmax_calls: int = 0
    oracle: float = 0.0
    solver: float = 0.0

    def plus(self, more: Spent) -> Spent:
        """The sum, part by part."""
        calls, argmax_calls, oracle, solver = more
        return Spent(self[0] + calls, self[1] + argmax_calls, self[2] + oracle, self[3] + solver)


class CountedState(ABC):
    """A state that says what it has spent, all at once."""

    @abstractmethod
    def spent(self) -> Spent:
        """Calls and seconds so far."""

    @property
    def oracle_calls(self) -> int:
        return self.spent().oracle_calls

    @property
    def argmax_calls(self) -> int:
        return self.spent().argmax_calls

    @property
    def seconds(self) -> dict[str, float]:
        spent = self.spent()
        return {"oracle": spent.oracle, "solver": spent.solver}


class InnerState(CountedState):
    """What all states with an oracle and a generator of their own have."""

    problem: Problem
    oracle: CountingOracle
    rng: np.random.Generator
    solver_seconds: float
    rounds: list[dict[str, float]] | None = None
    least_gap: float = np.inf  # of all certificates so far,
    without_gain: int = 0  # and how many have come since it last fell by a tenth
    coarse: bool = False  # whether rounding hides the objective, as a certificate has shown

    def note_gap(self, gap: float) -> None:
        """Note whether a certificate is progress."""
        self.without_gain = 0 if gap < 0.9 * self.least_gap else self.without_gain + 1
        self.least_gap = min(self.least_gap, gap)

    def spent(self) -> Spent:
        counts = self.oracle
        return Spent(counts.oracle_calls, counts.argmax_calls, counts.seconds, self.solver_seconds)

    @property
    def unproven(self) -> int:
        return self.oracle.unproven

    def common_arrays(self) -> dict[str, np.ndarray]:
        """The generator, and what tells whether a saved state belongs to a problem."""
        rng = np.array(json.dumps(self.rng.bit_generator.state))
        return {"rng": rng, "weight": self.problem.weight, "data": np.array(self.problem.fingerprint)}


class OuterState(CountedState):
    """What all states with another one inside have; ``earlier`` is what was spent before that one began."""

    inner: State
    earlier: Spent = Spent()

    def spent(self) -> Spent:
        """What would be ``earlier`` if another state began now."""
        inner, seconds = self.inner, self.inner.seconds
        return Spent(inner.oracle_calls, inner.argmax_calls, seconds["oracle"], seconds["solver"]).plus(self.earlier)

    @property
    def unproven(self) -> int:
        return self.inner.unproven

    def set_earlier(self, numbers: Iterable[float]) -> None:
        """``earlier`` from saved numbers, those of :data:`SPENT`."""
        calls, argmax_calls, oracle, solver = numbers
        self.earlier = Spent(int(calls), int(argmax_calls), float(oracle), float(solver))

    def inner_arrays(self) -> dict[str, np.ndarray]:
        """Those of the state inside, called ``inner/...``."""
        return {f"inner/{name}": array for name, array in self.inner.to_arrays().items()}


@dataclass
class DualState(InnerState):
    """Where a run stands; arrays only, so it can be saved and resumed."""

    problem: Problem
    oracle: CountingOracle
    working_set: WorkingSet
    u: np.ndarray  # sum alpha a, less the shift of the problem
    w: np.ndarray  # weights(u); the same array as u without sign constraints
    blocks: Blocks
    rng: np.random.Generator
    pending: Planes | None = None  # planes of the last certificate, not yet used
    cursor: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    since: float = 0.0  # passes of steps since the last certificate
    certificates: int = 0
    solver_seconds: float = 0.0
    drift: float = 0.0  # largest correction that a rebuild of the weights has made
    tau: float = FIRST_TAU
    reached: float = -np.inf  # dual of the last certificate
    gap: float = np.inf  # of the last certificate,
    relative_gap: float = np.inf  # and in relation to its size
    slow: bool = False  # whether the gap has not even halved since the certificate before
    earlier: tuple[float, np.ndarray, float] | None = None  # the half before, of a tail average: weight, u, linear
    idle_masters: int = 0  # joint master problems in a row that gained next to nothing
    log: Log | None = None  # where changes of u are noted, for a shard
    echo: float = 1.0  # how often the visits of a shard count their own changes of u
    team: Team | None = None  # runs the strands, once there are any
    packed: PackedPlanes | None = None  # planes for passes over them, once there were any
    joint: bool = False  # whether the step at hand ends with a joint master problem
    retired: int = 0  # blocks at the end whose examples are gone: their planes and multipliers stay
    resumed: str = ""  # where it stood in a checkpoint: planes from there are looked at with every certificate

    @property
    def members(self) -> list[np.ndarray] | None:
        """Examples of each block; None when every example is its own block."""
        return self.blocks.members

    @property
    def n_blocks(self) -> int:
        """Blocks that have examples."""
        return self.working_set.n_blocks - self.retired

    def leave_strands(self) -> None:
        """Others than the strands change multipliers, planes or u from here on."""
        if self.team is not None:
            self.team.leave()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        arrays = self.working_set.to_arrays() | self.common_arrays() | {"u": self.u, "cursor": self.cursor}
        arrays |= {"counts": numbers_of(self, COUNTS), "numbers": numbers_of(self, NUMBERS)}
        arrays["blocks"] = np.array(self.blocks.fingerprint)
        if self.earlier is not None:
            total, u, linear = self.earlier
            arrays |= {"earlier/u": u, "earlier/numbers": np.array([total, linear])}
        if self.pending is not None:
            arrays |= plane_arrays("pending", self.pending)
        return {name: np.array(array) for name, array in arrays.items()}
