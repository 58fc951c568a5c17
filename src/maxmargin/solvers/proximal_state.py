"""The state of a run of the proximal point method: arrays and numbers only, so a checkpoint is a file of arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from maxmargin.oracles.counting import CountingOracle
from maxmargin.solvers.proximal_planes import Blocks, Found, Pool

__all__ = ["TRACE", "ProximalState"]

TRACE = (
    "iteration", "centres", "gamma", "planes", "outside", "oracle_calls", "seconds", "primal_here", "primal", "dual",
    "proximal_upper", "proximal_lower", "estimate",
)  # fmt: skip


@dataclass
class ProximalState:
    """Where a run stands; arrays and numbers only, so it can be saved and resumed."""

    problem: Any
    oracle: CountingOracle
    blocks: Blocks
    stream: list[np.ndarray]  # blocks of each visit, in order; empty: all at once
    pool: Pool
    rng: np.random.Generator
    theta: np.ndarray  # of the last master problem
    centre: np.ndarray
    best: np.ndarray  # the feasible theta of least objective so far
    gamma: float
    pending: Found | None = None
    value: float = -np.inf  # dual of the proximal problem at the present multipliers
    primal: float = np.inf  # objective of best
    dual: float = -np.inf  # the best certified lower bound
    centre_primal: float = np.inf
    gap: float = np.inf  # of the proximal problem at the last look
    first: float = 0.0  # |objective| at the start, the unit of absolute rules
    certified: bool = True
    news: bool = True  # whether a bound has improved since the last certificate
    looks: int = 0
    quiet: int = 0  # looks since a bound improved
    bound_at: int = 0  # look of the next lower bound from all planes
    bound_wait: int = 0
    centres: int = 0
    cursor: int = 0
    order: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # of the visits of this pass
    since: float = 0.0  # passes of visits since the last look
    master_seconds: float = 0.0
    bound_seconds: float = 0.0
    centre_seconds: float = 0.0
    trace: list[tuple] = field(default_factory=list)

    rounds = None

    NUMBERS = (
        "gamma", "value", "primal", "dual", "centre_primal", "gap", "first", "certified", "news", "looks", "quiet",
        "bound_at", "bound_wait", "centres", "cursor", "since", "master_seconds", "bound_seconds", "centre_seconds",
    )  # fmt: skip

    @property
    def oracle_calls(self) -> int:
        return self.oracle.oracle_calls

    @property
    def argmax_calls(self) -> int:
        return self.oracle.argmax_calls

    @property
    def seconds(self) -> dict[str, float]:
        """oracle and solver, and what is within: master, bound, centre (looks again after a centre change)."""
        parts = {"master": self.master_seconds, "bound": self.bound_seconds}
        return {
            "oracle": self.oracle.seconds, "solver": sum(parts.values()), **parts, "centre": self.centre_seconds
        }  # fmt: skip

    def extras(self) -> dict[str, float]:
        """The newest row of the trace, by name."""
        return dict(zip(TRACE, self.trace[-1], strict=True)) if self.trace else {}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        arrays = {f"pool/{name}": getattr(self.pool, name) for name in Pool.ARRAYS}
        arrays |= {name: getattr(self, name) for name in ("theta", "centre", "best", "order")}
        arrays |= {
            "members": np.concatenate(self.blocks.members) if self.blocks.members else np.zeros(0, np.int64),
            "sizes": np.array([len(m) for m in self.blocks.members], np.int64),
            "numbers": np.array([float(getattr(self, name)) for name in self.NUMBERS]),
            "counts": np.array([self.oracle.oracle_calls, self.oracle.argmax_calls]),
            "oracle_seconds": np.array(self.oracle.seconds),
            "rng": np.array(json.dumps(self.rng.bit_generator.state)),
            "trace": np.array(self.trace, np.float64).reshape(-1, len(TRACE)),
            "weight": self.problem.weight,
            "terms": np.array([self.problem.squared, self.problem.pull], np.float64),
            "data": np.array(self.problem.fingerprint),
        }
        if self.pending is not None:
            arrays |= {f"pending/{name}": getattr(self.pending, name) for name in Found._fields}
        return {name: np.array(array) for name, array in arrays.items()}

    def restore(self, arrays: Any) -> None:
        """Take over what :meth:`to_arrays` wrote."""
        for name in Pool.ARRAYS:
            setattr(self.pool, name, np.array(arrays[f"pool/{name}"]))
        for name in ("theta", "centre", "best", "order"):
            setattr(self, name, np.array(arrays[name]))
        kinds = {f.name: f.type for f in fields(self)}
        for name, number in zip(self.NUMBERS, arrays["numbers"], strict=True):
            setattr(self, name, {"int": int, "bool": bool}.get(str(kinds[name]), float)(number))
        calls, argmax_calls = map(int, arrays["counts"])
        self.oracle.restore(calls, argmax_calls, float(arrays["oracle_seconds"]))
        self.rng.bit_generator.state = json.loads(str(arrays["rng"]))
        self.trace = [tuple(row) for row in np.asarray(arrays["trace"])]
        if "pending/block" in arrays:
            self.pending = Found(*(np.array(arrays[f"pending/{name}"]) for name in Found._fields))
