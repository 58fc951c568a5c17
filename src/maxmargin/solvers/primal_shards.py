"""Passes of the primal family in shards: each from the same weights over its own examples, then the weights are mixed.

With n_s of n examples in shard s, and v_s what a pass of shard s makes of the common vector,

    v <- sum_s (n_s / n) v_s

(iterative parameter mixing). The vectors hold the dual point beside the weights, and mixing is linear, so the mixed
weights come with a certificate like any others. Shard s takes n C_i for the weight of its examples, as if they were
drawn from all, and the step sizes of ``t n_s / n`` where a run without shards would be at step t; so the multipliers of
Pegasos add up to C_i after every pass, as they do without shards.

McDonald, Hall, Mann 2010, Distributed training strategies for the structured perceptron. Zinkevich, Weimer, Smola, Li
2010, Parallelized stochastic gradient descent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import Planes
from maxmargin.solvers import primal_kernel as pk

if TYPE_CHECKING:
    from maxmargin.solvers.primal import PrimalEngine, PrimalState

__all__ = ["Asked", "mixed_pass", "spaced"]


class Asked(NamedTuple):
    """What steps have asked of the oracle: calls, counts of queries, and seconds; of a compiled loop, all its time."""

    calls: int
    seconds: float
    counts: tuple[int, int] | None
    fused: bool

    def noted(self, oracle: CountingOracle) -> float:
        """Count it; returns the seconds that are the oracle's."""
        if self.fused and self.counts is not None:
            return oracle.count_fused(self.calls, self.seconds, self.counts)
        oracle.count(self.calls, self.seconds, self.counts)
        return self.seconds


class Done(NamedTuple):
    """What a pass of a shard makes: the vector, the sum of its iterates, how far its numbers went, what it asked."""

    vector: np.ndarray
    mean: np.ndarray
    numbers: np.ndarray
    asked: Asked


class _Worker:
    """Runs a pass over the examples of a shard; a resident of an executor, without a state of its own."""

    def work(self, engine: PrimalEngine, state: PrimalState, examples: np.ndarray) -> Done:
        """A pass over some examples, from the vector of a state."""
        vector, mean, numbers = state.vector.copy(), np.zeros_like(state.mean), state.numbers.copy()
        numbers[pk.STEPS] *= len(examples) / state.problem.n_examples
        numbers[pk.TOTAL] = numbers[pk.RHO] = 0.0
        before = numbers[[pk.STEPS, pk.UPDATES]]
        asked = engine.run_pass(state, examples, vector, mean, numbers)
        if len(mean):
            mean += numbers[pk.TOTAL] * vector
        vector *= numbers[pk.SCALE]
        numbers[[pk.STEPS, pk.UPDATES]] = np.rint(numbers[[pk.STEPS, pk.UPDATES]] - before)  # whole numbers again
        return Done(vector, mean, numbers, asked)


def mixed_pass(engine: PrimalEngine, state: PrimalState, plans: Sequence[np.ndarray]) -> list[Asked]:
    """A pass of all shards over the examples that their plans name, and the mixture of what they make.

    Compiled loops run on the workers; the result does not depend on how many there are.
    """
    fused = state.oracle.fused()
    executor = None if fused is None else fused.executor
    if executor is None or not executor.shares_memory:
        done: list[Done] = [_Worker().work(engine, state, plan) for plan in plans]
    else:
        if state.homes is None:
            state.homes = executor.start([_Worker() for _ in plans])
        calls = [(home, (engine, state, plan)) for home, plan in zip(state.homes, plans, strict=True)]
        done = executor.call("work", calls)
    n, numbers = state.problem.n_examples, state.numbers
    if len(state.mean):
        state.mean += numbers[pk.TOTAL] * state.vector
    state.vector[:] = 0.0
    numbers[pk.SCALE], numbers[pk.TOTAL] = 1.0, 0.0
    for plan, (vector, mean, own, _) in zip(plans, done, strict=True):
        state.vector += (len(plan) / n) * vector
        state.mean += mean
        numbers[[pk.RHO, pk.STEPS, pk.UPDATES]] += own[[pk.RHO, pk.STEPS, pk.UPDATES]]
    return [own.asked for own in done]


def spaced(planes: Planes, n_weights: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Planes as ``primal_step`` takes them: begins, lengths, indices, values; room for two entries behind each.

    Columns beyond the weights, which belong to squared slacks, are left out.
    """
    begins, room = planes.indptr[:-1] + 2 * np.arange(len(planes)), len(planes.indices) + 2 * len(planes)
    index, value = np.zeros(room, np.int32), np.zeros(room)
    lengths = np.zeros(len(planes), np.int64)
    for p, (first, last) in enumerate(zip(planes.indptr[:-1], planes.indptr[1:], strict=True)):
        lengths[p] = np.searchsorted(planes.indices[first:last], n_weights)
        own, given = slice(begins[p], begins[p] + lengths[p]), slice(first, first + lengths[p])
        index[own], value[own] = planes.indices[given], planes.data[given]
    return begins.astype(np.int64), lengths, index, value
