"""An oracle whose questions are spread over workers; the answer does not depend on their number."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from weakref import finalize

import numpy as np

from maxmargin.contracts import Executor, Fused, Oracle, Sum
from maxmargin.kernel import clock
from maxmargin.oracles.counting import OracleAround
from maxmargin.oracles.part import HoldsParts
from maxmargin.planes import Planes, added_counts

__all__ = ["ShardedOracle", "spread_over"]

SUM_SHARDS = 4  # never depends on the number of workers: sums of floats depend on their order
SMALLEST_SHARD = 8
PARTS, PARTS_AWAY = 5, 2  # parts of a call for each worker: whoever is done first takes the next
WORTH, WORTH_AWAY = 1e-3, 1e-2  # seconds of work that fewer examples are worth a call for, in a thread and elsewhere


def spread_over(oracle: Oracle, executor: Executor) -> Oracle:
    """An oracle that asks the workers: they get its examples, or have them already."""
    if isinstance(oracle, HoldsParts) and oracle.elsewhere is not None:
        from maxmargin.execution.elsewhere import OracleElsewhere

        return OracleElsewhere(oracle, executor)
    return ShardedOracle(oracle, executor)


class ShardedOracle(OracleAround):
    """Splits the examples of a call over the workers of an executor and joins the answers in order.

    Every worker has the whole oracle, so any split gives the same planes.
    """

    def __init__(self, oracle: Oracle, executor: Executor) -> None:
        super().__init__(oracle)
        self.executor = executor
        self._seconds = 0.0  # of an example, in the last call for planes

    @cached_property
    def _homes(self) -> list[int]:
        homes = self.executor.start([self.oracle] * self.executor.n_workers)
        finalize(self, self.executor.release, homes)
        return homes

    def predicting(self) -> ShardedOracle:
        """That of the oracle, on the same workers."""
        return ShardedOracle(self.oracle.predicting(), self.executor)

    def fused(self) -> Fused | None:
        """That of the oracle; compiled loops may run on the same workers."""
        fused = self.oracle.fused()
        return None if fused is None else replace(fused, executor=self.executor)

    def spread(self) -> tuple[Oracle, Executor]:
        """The oracle without workers, and the workers."""
        return self.oracle, self.executor

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int = 1) -> Planes:
        """As the oracle's own: planes are computed example by example."""
        workers, n = self.executor.n_workers, len(examples)
        if workers == 1 or n == 0:
            return self.oracle.planes(w, examples, most)
        # few examples are worth sharing out where each takes long, as images do; planes do not depend on it
        worth = n * self._seconds / (WORTH if self.executor.shares_memory else WORTH_AWAY)
        parts_each = PARTS if self.executor.shares_memory else PARTS_AWAY
        shards = min(parts_each * workers, n, max(n // SMALLEST_SHARD, int(worth)))
        begin = clock()
        if shards <= 1:
            planes = self.oracle.planes(w, examples, most)
        else:
            parts = np.array_split(examples, shards)
            planes = Planes.concatenate(self._call("planes", [(w, part, most) for part in parts]))
        self._seconds = (clock() - begin) * min(max(shards, 1), workers) / n
        return planes

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> Sum:
        """As the oracle's own, added up over a fixed number of shards in their order."""
        shards = max(1, min(SUM_SHARDS, len(examples) // SMALLEST_SHARD))
        parts = zip(np.array_split(examples, shards), np.array_split(scale, shards), strict=True)
        first, *others = self._call("sum", [(w, part, share) for part, share in parts])
        a, b = first.a, first.b
        for other in others:
            a += other.a
            b += other.b
        counts = added_counts([first.counts, *(other.counts for other in others)])
        return Sum(a, b, np.concatenate([part.losses for part in (first, *others)]), counts)

    def _call(self, verb: str, tasks: list[tuple]) -> list:
        homes = self._homes
        return self.executor.call(verb, [(homes[t % len(homes)], task) for t, task in enumerate(tasks)])
