"""Passes of the primal family in shards: each from the same weights over its own examples, then the weights are mixed.

With n_s of n examples in shard s, and v_s what a pass of shard s makes of the common vector,

    v <- sum_s (n_s / n) v_s

(iterative parameter mixing). The vectors hold the dual point beside the weights, and mixing is linear, so the mixed
weights come with a certificate like any others. Shard s takes n C_i for the weight of its examples, as if they were
drawn from all, and the step sizes of ``t n_s / n`` where a run without shards would be at step t; so the multipliers of
Pegasos add up to C_i after every pass, as they do without shards.

Shards are residents of the executor, wherever it keeps them: they have their examples with them, and what travels is
vectors. What they hand back is mixed in their order, so results do not depend on the workers.

McDonald, Hall, Mann 2010, Distributed training strategies for the structured perceptron. Zinkevich, Weimer, Smola, Li
2010, Parallelized stochastic gradient descent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

import numpy as np

from maxmargin.execution.executors import Serial
from maxmargin.formulations.problem import Problem
from maxmargin.kernel import clock
from maxmargin.oracles.counting import CountingOracle, all_losses
from maxmargin.planes import Planes, added_counts, aligned_zeros
from maxmargin.solvers import primal_kernel as pk
from maxmargin.solvers.primal_pass import Asked, Steps, subtracted

if TYPE_CHECKING:
    from maxmargin.solvers.primal import PrimalState, Rule

__all__ = ["PrimalShards"]

CHANGING = frozenset({"subtract"})
SUMS = [pk.RHO, pk.STEPS, pk.UPDATES]  # numbers that add up over shards


class Done(NamedTuple):
    """What a pass of a shard makes: the vector, the sum of its iterates, how far its numbers went, what it asked."""

    vector: np.ndarray
    mean: np.ndarray
    numbers: np.ndarray
    asked: Asked
    seconds: float


class PrimalShard:
    """Passes over its examples, from the vector that it is given, and looks at them; a resident of an executor."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def work(self, vector: np.ndarray, numbers: np.ndarray, radius: float, examples: np.ndarray) -> Done:
        """A pass over ``examples``, in this order; the arguments stay as they are."""
        begin, steps = clock(), self.steps
        vector, mean, numbers = vector.copy(), np.zeros(len(vector) if steps.rule.averaging else 0), numbers.copy()
        numbers[pk.STEPS] *= len(examples) / steps.problem.n_examples
        numbers[pk.TOTAL] = numbers[pk.RHO] = 0.0
        before = numbers[[pk.STEPS, pk.UPDATES]]
        asked = steps.take(examples, radius, vector, mean, numbers)
        if len(mean):
            mean += numbers[pk.TOTAL] * vector
        vector *= numbers[pk.SCALE]
        numbers[[pk.STEPS, pk.UPDATES]] = np.rint(numbers[[pk.STEPS, pk.UPDATES]] - before)  # whole numbers again
        return Done(vector, mean, numbers, asked, clock() - begin)

    def losses(self, w: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
        """Those of all its examples; also the argmaxes that it took, and how many of the answers are not proven."""
        oracle = CountingOracle(self.steps.problem.oracle)
        return all_losses(oracle, w), (oracle.argmax_calls, oracle.unproven)

    def subtract(self, planes: Planes | None) -> None:
        """From now on, subtract these planes of its examples."""
        self.steps.planes = planes

    # --- for a worker that takes over ---------------------------------------------------------------------------------

    def save(self) -> Planes | None:
        """All that changes."""
        return self.steps.planes

    def load(self, saved: Planes | None) -> None:
        """Be as :meth:`save` found another one that began as this one did."""
        self.steps.planes = saved


class PrimalShards:
    """The shards of a run on the workers of its oracle, or here where it has none; let go with this object.

    Parameters
    ----------
    rule : Rule
    problem : Problem
    sizes : sequence of int
        Examples of each shard; they are neighbours.
    """

    def __init__(self, rule: Rule, problem: Problem, sizes: Sequence[int]) -> None:
        spread = problem.oracle.spread()
        oracle, self.executor = (problem.oracle, Serial()) if spread is None else spread
        bare, shards = replace(problem, oracle=oracle, term=None), []
        self.ranges = list(pairwise(np.cumsum([0, *sizes]).tolist()))
        for first, last in self.ranges:
            part = replace(bare, oracle=bare.part(first, last).oracle)
            shards.append(PrimalShard(Steps(rule, part, first)))
        self.planes: Planes | None = None  # that the shards subtract
        self.homes = self.executor.start(shards, CHANGING)
        finalize(self, self.executor.release, self.homes)

    def pass_over(self, state: PrimalState, plans: Sequence[np.ndarray]) -> Asked:
        """A pass of all shards over the examples that their plans name, and the mixture of what they make.

        Of the seconds that it takes, the oracle has the share that it has in the work of the shards.
        """
        self._subtract(subtracted(state.problem))
        begin, n, numbers = clock(), state.problem.n_examples, state.numbers.copy()
        done: list[Done] = self._call("work", [(state.vector, numbers, state.radius, plan) for plan in plans])
        spent, busy = clock() - begin, sum(own.seconds for own in done)
        mean, vector = state.mean.copy(), aligned_zeros(len(state.vector))
        if len(mean):
            mean += numbers[pk.TOTAL] * state.vector
        numbers[pk.SCALE], numbers[pk.TOTAL] = 1.0, 0.0
        for plan, own in zip(plans, done, strict=True):
            vector += (len(plan) / n) * own.vector
            mean += own.mean
            numbers[SUMS] += own.numbers[SUMS]
        state.vector, state.mean, state.numbers = vector, mean, numbers  # at once, whenever Ctrl-C comes
        return _together([own.asked for own in done], spent / busy if busy > 0 else 1.0)

    def losses(self, oracle: CountingOracle, w: np.ndarray) -> np.ndarray:
        """Losses (or upper bounds of them) of all examples at ``w``; ``oracle`` counts what that takes."""
        begin = clock()
        parts, counts = zip(*self._call("losses", [(w,)] * len(self.homes)), strict=True)
        losses = np.concatenate(parts)
        oracle.count_timed(len(losses), begin, added_counts(counts))
        return losses

    def _subtract(self, planes: Planes | None) -> None:
        """Give each shard those of its examples, where it has others so far."""
        if planes is self.planes:
            return
        own: list[tuple[Planes | None]] = [(None,)] * len(self.ranges)
        if planes is not None:
            places = [np.searchsorted(planes.example, ends).tolist() for ends in self.ranges]
            own = [(planes.between(begin, end),) for begin, end in places]
        self._call("subtract", own)
        self.planes = planes

    def _call(self, verb: str, arguments: Sequence[tuple]) -> list:
        return self.executor.call(verb, list(zip(self.homes, arguments, strict=True)))


def _together(asked: Sequence[Asked], share: float) -> Asked:
    """What all shards have asked, in this share of their seconds."""
    calls, seconds = sum(own.calls for own in asked), share * sum(own.seconds for own in asked)
    return Asked(calls, seconds, added_counts([own.counts for own in asked]), fused=asked[0].fused)
