"""An oracle whose examples are spread over workers; the answer does not depend on their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.models.base import CompiledModel
from maxmargin.oracles.margin import MarginOracle
from maxmargin.oracles.wrapper import OracleWrapper
from maxmargin.planes import Planes

__all__ = ["ShardedOracle", "compiled_oracle"]

SUM_SHARDS = 4  # never depends on the number of workers: sums of floats depend on their order
SMALLEST_SHARD = 8


class ShardedOracle(OracleWrapper):
    """Splits the examples of a call over the workers of an executor and joins the answers in order.

    Parameters
    ----------
    oracle : any oracle
    executor : Serial, Threads or Processes
    """

    def __init__(self, oracle: Any, executor: Any) -> None:
        super().__init__(oracle)
        self.executor = executor

    def planes(self, w: np.ndarray, examples: np.ndarray, known: np.ndarray | None = None) -> Planes:
        """As the oracle's own: planes are computed example by example, so any split gives the same ones."""
        workers = self.executor.n_workers
        shards = min(2 * workers, len(examples) // SMALLEST_SHARD) if workers > 1 else 1
        if shards <= 1:
            return self.oracle.planes(w, examples, known)
        tasks = [(w, part, None if known is None else known) for part in np.array_split(examples, shards)]
        return Planes.concatenate(self.executor.map(self.oracle.planes, tasks))

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """As the oracle's own, added up over a fixed number of shards in their order."""
        shards = max(1, min(SUM_SHARDS, len(examples) // SMALLEST_SHARD))
        tasks = [
            (w, part, share)
            for part, share in zip(np.array_split(examples, shards), np.array_split(scale, shards), strict=True)
        ]
        parts = self.executor.map(self.oracle.sum, tasks)
        a, b = parts[0][0], parts[0][1]
        for more, offset, _ in parts[1:]:
            a += more
            b += offset
        return a, b, np.concatenate([losses for _, _, losses in parts])


def compiled_oracle(oracle: Any) -> MarginOracle | None:
    """The oracle whose kernel a compiled loop may call in place of ``oracle``; None when that would skip something."""
    if isinstance(oracle, ShardedOracle):
        oracle = oracle.oracle
    return oracle if isinstance(oracle, MarginOracle) and isinstance(oracle.model, CompiledModel) else None
