"""The dual in shards that own their examples, for several workers at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.contracts import Problem
from maxmargin.solvers.base import BaseSolver
from maxmargin.solvers.settings import Settings, check_whole, check_words

if TYPE_CHECKING:
    from maxmargin.solvers.engine import DualEngine
    from maxmargin.solvers.sharded_engine import ShardedEngine

__all__ = ["Sharded"]

PER_SHARD, MOST = 50_000, 8  # examples of a shard, and the most shards, where their number is left to the solver
POLICIES = ("gap", "permutation", "random")
COMBINATIONS = ("exact", "add", "average", "cocoa+")


@dataclass(repr=False, eq=False)
class Sharded(BaseSolver):
    """The accelerated default for several workers, within the memory of one machine (strands) and beyond it (shards).

    On one machine use strands, one for each core: ``Sharded(shards=1, strands=8)`` with ``n_jobs=8``. Use shards for
    processes, for several machines, and for planes that the memory of one machine cannot hold.

    **Strands** work on one set of planes in the memory of one machine, each on a thread (``n_jobs``). A strand has its
    own part of the examples and its own copy of the weights. Every few dozen visits the strands exchange their changes
    of the columns that many examples have, less often those of rarer columns; at the end of a pass they have exchanged
    all. The gain of a pass is the sum of the gains of its visits minus the products of changes by different strands, so
    it is known exactly; if too little of that sum remains, an exact line search keeps the best share of the pass, so
    that the dual never falls. Where blocks must be solved one after the other (weights that must be positive, planes
    merged for want of memory), only argmaxes are shared out.

    **Shards** own their examples, planes and a copy of the weights, so they may live in processes or on other machines
    (``executor``). In a round, every shard visits some dozens of its examples from the same weights, in turn, and hands
    back the change of ``(sum alpha b, u)``. The dual value of keeping a share x_s of each change is

        D(x) = D(0) + sum_s x_s (d_s - w . delta_s) - 1/2 sum_st x_s x_t delta_s . delta_t,     0 <= x_s <= 1

    (a lower bound of it where weights must be positive), whose maximum is a quadratic program in one number per shard.
    It is at least D(0), so the dual never falls, however much the changes of the shards overlap. Shards have no joint
    master problems, no extrapolation and no strands, and after every round the driver compares the changes of each pair
    of them. So prefer strands where one machine can hold the planes.

    The numbers of strands and shards follow from the parameters and the data, never from the workers: weights are
    identical to the last bit for any number of workers, for threads, processes and Ray actors, and after a resume.

    Parameters
    ----------
    shards : int or "auto"
        Shards that the examples are cut into, in their order. "auto" is one below 100,000 examples, then one for every
        50,000, at most 8. Fits with more shards need more passes: use no more of them than workers.
    strands : int
        Strands of a single shard: the most threads that can visit its examples. Several shards have none.
    visits_per_round : int or "auto"
        Examples that a shard visits before the changes are combined. The more, the longer a shard works without the
        changes of the others, and the more passes a fit needs; the fewer, the more often shards wait for each other.
        "auto" weighs what an exchange costs where shards live in other processes against the work that is lost because
        shards do not know of each other (``solvers/round_length.py``): 8 to 256.
    combine : {"exact", "add", "average", "cocoa+"}
        How much of the changes of K shards stays: the best shares, all of each ("add"), or 1 / K of each ("average").
        "cocoa+" keeps all of each too, but every shard counts its own changes of u K times, as if all others made the
        same, and so takes shorter steps; weights cannot be forced to be positive then. Only with "add" can the dual
        fall.
    visits, cached_passes, max_steps, parts, certificate_every, memory
        As those of :class:`~maxmargin.solvers.presets.Auto`. ``memory`` is divided among the shards; where it is
        too small, a single shard merges planes, and several end with an error. Strands keep a second, shorter form of
        their planes beside it, a third as large.
    sampling : {"gap", "permutation", "random"}
        Which of its examples a shard visits.
    averaging : {None, "uniform", "weighted", "tail"}
        Average of the weights over the visits, and of the multipliers, so that the average has its own certificate, as
        that of :class:`~maxmargin.solvers.presets.BCFW`. Shards see each other's visits after a round only, so a visit
        counts with the weights that its round has led to: those of a round of m visits count m times ("uniform"), or
        as often as the numbers of its visits add up to ("weighted"). "tail" keeps the later half of the visits or more:
        at certificates, it leaves out the earlier ones. With a single shard and an average, examples are visited one
        after the other, and strands share out argmaxes only.

    References
    ----------
    Jaggi et al. 2014, Communication-efficient distributed dual coordinate ascent (averaging). Ma et al. 2015, Adding
    vs. averaging in distributed primal-dual optimization (CoCoA+, with gamma = 1 and sigma' = K).
    """

    shards: int | str = "auto"
    strands: int = 2
    visits_per_round: int | str = "auto"
    combine: str = "exact"
    visits: float = 0.2
    cached_passes: int = 30
    max_steps: int = 5
    parts: int = 4
    certificate_every: float = 2.0
    sampling: str = "gap"
    memory: int = 4 << 30
    averaging: str | None = None

    handles = frozenset({"quadratic", "signs", "squared", "ramp", "latent"})

    def engine(
        self, problem: Problem, random_state: int | np.random.Generator | None = None
    ) -> DualEngine | ShardedEngine:
        """What the driver runs: for one shard, the dual engine itself."""
        from maxmargin.solvers.engine import DualEngine
        from maxmargin.solvers.sharded_engine import ShardedEngine

        check_words("sampling", self.sampling, POLICIES)
        check_words("combine", self.combine, COMBINATIONS)
        check_whole(self, {"strands": 1})
        if self.combine == "cocoa+" and "signs" in problem.traits:
            raise ValueError('combine="cocoa+" is not possible where weights must be positive: use combine="exact".')
        settings = self.setting(Settings, selection=self.sampling, batch=8, patience=5, cached_share=0.18)
        count, visits = self.count(problem.n_examples), self._number("visits_per_round")
        if count == 1:
            return DualEngine(replace(settings, master="auto", extrapolate=True), random_state)
        return ShardedEngine(settings, count, visits, self.combine, random_state)

    def count(self, n_examples: int) -> int:
        """The number of shards for so many examples: never more than there are."""
        shards = self._number("shards")
        return max(1, min(n_examples // PER_SHARD, MOST) if shards is None else min(shards, n_examples))

    def _number(self, name: str) -> int | None:
        """A parameter that is a number, or None where it is left to the solver."""
        value = getattr(self, name)
        if isinstance(value, str):
            if value == "auto":
                return None
            raise ValueError(f'{name} must be a whole number >= 1 or "auto", got {value!r}.')
        check_whole(self, {name: 1})
        return int(value)
