"""The state of a run of the dual engine: arrays only, so a checkpoint is a file of arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.formulations.problem import Problem
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import Planes
from maxmargin.solvers.blocks import Blocks

if TYPE_CHECKING:
    from maxmargin.solvers.working_set import WorkingSet

__all__ = ["PLANE_FIELDS", "DualState"]

FIRST_TAU = 1e-3
PLANE_FIELDS = ("indptr", "indices", "data", "b", "example", "bound")


@dataclass
class DualState:
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
    joint: bool = False  # whether the step at hand ends with a joint master problem
    retired: int = 0  # blocks at the end whose examples are gone: their planes and multipliers stay

    rounds = None

    @property
    def members(self) -> list[np.ndarray] | None:
        """Examples of each block; None when every example is its own block."""
        return self.blocks.members

    @property
    def n_blocks(self) -> int:
        """Blocks that have examples."""
        return self.working_set.n_blocks - self.retired

    @property
    def oracle_calls(self) -> int:
        return self.oracle.oracle_calls

    @property
    def argmax_calls(self) -> int:
        return self.oracle.argmax_calls

    @property
    def seconds(self) -> dict[str, float]:
        return {"oracle": self.oracle.seconds, "solver": self.solver_seconds}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        arrays = self.working_set.to_arrays()
        arrays |= {
            "u": self.u,
            "rng": np.array(json.dumps(self.rng.bit_generator.state)),
            "cursor": self.cursor,
            "counts": np.array([self.oracle.oracle_calls, self.oracle.argmax_calls, self.certificates]),
            "numbers": np.array(
                [
                    self.since,
                    self.solver_seconds,
                    self.oracle.seconds,
                    self.drift,
                    self.tau,
                    self.reached,
                    self.relative_gap,
                    self.slow,
                    self.gap,
                ]
            ),
            "weight": self.problem.weight,
            "data": np.array(self.problem.fingerprint),
            "blocks": np.array(self.blocks.fingerprint),
        }
        if self.earlier is not None:
            total, u, linear = self.earlier
            arrays |= {"earlier/u": u, "earlier/numbers": np.array([total, linear])}
        if self.pending is not None:
            p = self.pending
            arrays |= {f"pending/{name}": getattr(p, name) for name in PLANE_FIELDS}
        return {name: np.array(array) for name, array in arrays.items()}
