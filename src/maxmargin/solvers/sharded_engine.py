"""The driver of shards: plans sweeps, combines the changes of each round, certifies. See :class:`Sharded`.

Shards are residents of an executor, called by verb. What they hand back is combined in their order, so results do not
depend on the workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from weakref import finalize

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.contracts import DualPoint, Executor, State
from maxmargin.execution.executors import Serial
from maxmargin.formulations.problem import Problem
from maxmargin.kernel import clock
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import Planes, added_counts, aligned_zeros
from maxmargin.solvers.accuracy import Scales
from maxmargin.solvers.base import Engine
from maxmargin.solvers.blocks import Blocks
from maxmargin.solvers.engine import FOREVER, DualEngine
from maxmargin.solvers.proof import check_around, check_at
from maxmargin.solvers.round_length import RoundLength
from maxmargin.solvers.saved import Saved
from maxmargin.solvers.settings import Settings
from maxmargin.solvers.shard import CHANGING, Change, Look, Order, Report, Shard, share_of
from maxmargin.solvers.shard_kernel import average, best_shares, products
from maxmargin.solvers.shard_sets import gathered, linear_of, scales_of
from maxmargin.solvers.state import DualState, OuterState
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["ShardedEngine", "ShardedState"]

ENOUGH = 0.99  # all of the changes stay when that gains this share of what the best shares would


@dataclass
class ShardedState(OuterState):
    """Where a run stands. Planes and multipliers are in the shards, everything else is in ``inner``."""

    inner: DualState  # its working set holds the average, no planes; u and linear are those of all when ``current``
    shards: list[Shard]  # as they began; where memory is shared, and behind ``Executor.recall``, as they are
    executor: Executor
    homes: list[int]
    seed: int  # of the random orders, together with the number of the sweep and of the shard
    scales: Scales  # of all blocks, when ``current``,
    entries: int  # and entries of all planes
    length: RoundLength
    pending: bool  # whether the planes of the last certificate wait in the shards
    sweeps: int = 0
    stamp: int = 0  # rounds begun
    combined: int = 0  # the last round that was combined
    changes: tuple[Change, ...] = ()  # of that round, which the shards have yet to settle,
    shares: tuple[float, ...] = ()  # and how much of each stays
    averaged: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))  # the last round in the average
    unvisited: int = 1  # blocks that the oracle has not seen, at most
    current: bool = True
    rounds: list[dict[str, float]] | None = None

    def __post_init__(self) -> None:
        finalize(self, self.executor.release, self.homes)

    @property
    def problem(self) -> Problem:
        """That of all examples, with the linear term of the present round of CCCP."""
        return self.inner.problem

    @property
    def oracle(self) -> CountingOracle:
        """It counts what the shards ask, too."""
        return self.inner.oracle

    @cached_property
    def scratch(self) -> np.ndarray:
        """Zeros, as long as u."""
        return np.zeros(len(self.inner.u))

    def ask(self, verb: str, *arguments: object) -> list:
        """Call all shards with the same arguments."""
        return self.executor.call(verb, [(home, arguments) for home in self.homes])

    def gather(self) -> None:
        """Let u be the sum over the multipliers of all shards, in their order, and tell the shards."""
        if self.current:
            return
        reports: list[Report] = self.ask("report", self.combined, self.shares or (1.0,) * len(self.homes))
        self.average()
        self.changes, self.shares = (), ()
        self.inner.working_set.store.linear[0], self.scales, self.entries = _added(reports)
        self.inner.u[:] = 0.0
        for report in reports:
            report.add_to(self.inner.u)
        if self.problem.shift is not None:
            self.inner.u -= self.problem.shift
        self.spread()

    def average(self) -> None:
        """Let the last round that was combined into the average, where one is kept and does not have it yet."""
        store = self.inner.working_set.store
        if self.combined > self.averaged[0] and len(store.mean):
            linear, visits = [change.linear for change in self.changes], sum(change.visits for change in self.changes)
            sums = np.array(linear), np.array(self.shares), float(visits)
            average(store.mean, store.moment, *_entries(self.changes), *sums, self.averaged, self.combined)

    def spread(self) -> None:
        """Let the weights of all shards be those of u."""
        u, w = self.inner.u, self.inner.w
        if w is not u:
            w[:] = self.problem.regulariser.weights(u)
        self.ask("start_from", u, None if w is u else w)
        self.current = True

    def joined(self) -> DualState:
        """The same as a state of the dual engine, with the planes and multipliers of all shards."""
        self.gather()
        budget, sets = self.inner.working_set.budget, self.ask("working_set")
        joined = gathered([(ws, np.arange(ws.n_blocks)) for ws in sets], budget)
        joined.take_mean(self.inner.working_set)
        pending = None
        if self.pending:
            firsts = np.cumsum([0, *(ws.n_blocks for ws in sets[:-1])])
            parts = zip(self.ask("awaiting"), firsts, strict=True)
            pending = Planes.concatenate([replace(part, example=part.example + first) for part, first in parts])
        return replace(self.inner, working_set=joined, pending=pending)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        return self.joined().to_arrays() | {"sharded": np.array([self.seed, self.sweeps, self.length.visits])}


@dataclass(eq=False)
class ShardedEngine(Engine):
    """What the driver runs."""

    settings: Settings
    n_shards: int
    visits_per_round: int | None  # None: as long as costs suggest
    combine: str = "exact"
    random_state: int | np.random.Generator | None = None

    handles = frozenset({"quadratic", "signs", "squared"})
    minimises = True

    def __post_init__(self) -> None:
        self.engine = DualEngine(self.settings, self.random_state)  # of the whole: starts, files, certificates

    # --- the contract with the driver ---------------------------------------------------------------------------------

    def init(self, problem: Problem, warm: State | None = None) -> ShardedState:
        """Start at the origin, or from the multipliers of an earlier run on the same examples, in shards or not."""
        return self._cut(self.engine.init(problem, warm.joined() if isinstance(warm, ShardedState) else warm))

    def _cut(self, whole: DualState) -> ShardedState:
        """Cut a state of the dual engine into shards."""
        problem, budget = whole.problem, self.settings.memory // self.n_shards
        ends = np.linspace(0, problem.n_examples, self.n_shards + 1).astype(int).tolist()
        visits = DualEngine(replace(self.settings, patience=FOREVER, memory=budget))
        spread = problem.oracle.spread()
        bare, executor = (problem, Serial()) if spread is None else (replace(problem, oracle=spread[0]), spread[1])
        shards, reports = [], []
        for number, (first, last) in enumerate(pairwise(ends)):
            part, ws = bare.part(first, last), gathered([(whole.working_set, np.arange(first, last))], budget)
            u = aligned_zeros(len(whole.u))
            w = u if whole.w is whole.u else aligned_zeros(len(u))
            own = DualState(part, CountingOracle(part.oracle), ws, u, w, Blocks(None), whole.rng)
            own.echo = float(self.n_shards) if self.combine == "cocoa+" else 1.0
            if whole.pending is not None:
                own.pending = _between(whole.pending, first, last)
            shards.append(Shard(number, visits, own, self.settings.patience))
            reports.append(Report(None, u, linear_of(ws), ws.n_entries, *scales_of(ws)))
        pending, whole.pending = whole.pending is not None, None
        empty = WorkingSet(np.empty(0), problem.n_columns, 1, budget=self.settings.memory)
        empty.take_mean(whole.working_set)
        empty.store.linear[0], scales, entries = _added(reports)
        whole.working_set = empty
        homes, seed = executor.start(shards, CHANGING), int(whole.rng.integers(2**62))
        length = RoundLength.of(self.visits_per_round, problem.n_examples // self.n_shards, problem.n_columns)
        state = ShardedState(whole, shards, executor, homes, seed, scales, entries, length, pending)
        state.spread()
        return state

    def certificate_due(self, state: ShardedState) -> bool:
        """Whether the next thing to do is to look at all examples."""
        return not state.pending and self.engine.certificate_due(state.inner)

    def certificate(self, state: ShardedState) -> Certificate:
        """Primal and dual at the present weights or their average. One oracle pass, whose planes the next step uses."""
        begin, whole, oracle_before = clock(), state.inner, state.oracle.seconds
        state.gather()
        state.length.adjust(state.entries / whole.problem.n_examples)
        if self.settings.averaging == "tail":
            self.engine.keep_tail(whole)
        point, asking = self.dual_point(state), clock()
        looks: list[Look] = state.ask("look", self.settings.parts, None if point.w is whole.w else point.w)
        losses = np.concatenate([look.losses for look in looks])
        whole.oracle.count_timed(len(losses), asking, added_counts([look.counts for look in looks]))
        state.pending = True
        if whole.resumed:
            check_at(state.joined(), point.w, losses)
        certificate = self.engine.judge(whole, point, losses, state.scales)
        whole.solver_seconds += clock() - begin - (state.oracle.seconds - oracle_before)
        return certificate

    def finished(self, state: ShardedState) -> str | None:
        """When rounding hides what is left to gain."""
        return self.engine.finished(state.inner)

    def step_calls(self, state: ShardedState) -> int:
        """Oracle calls that the next step and the certificate behind it will make."""
        n, new = state.problem.n_examples, 0
        if state.pending:
            return n
        if self.settings.selection == "gap" and state.unvisited:
            new = state.unvisited = sum(state.ask("unvisited"))
        return n + (new or sum(share_of(shard.state.n_blocks, self.settings.visits) for shard in state.shards))

    def step(self, state: ShardedState) -> None:
        """A sweep of visits with new planes, then passes over the planes at hand, in rounds of all shards."""
        begin, oracle_before = clock(), state.oracle.seconds
        state.current = False
        try:
            self._step(state)
        except KeyboardInterrupt:
            state.gather()
            raise
        state.inner.solver_seconds += clock() - begin - (state.oracle.seconds - oracle_before)

    def dual_point(self, state: ShardedState) -> DualPoint:
        """The multipliers that the run would end with: the present ones or their average."""
        state.gather()
        return self.engine.dual_point(state.inner)

    def weights(self, state: ShardedState) -> np.ndarray:
        """The weights of the model (n_weights,)."""
        return self.dual_point(state).w[: state.problem.n_weights]

    def conclude(self, state: ShardedState, certificate: Certificate, code: str) -> Certificate:
        """The planes of a resumed run are looked at once more."""
        if state.inner.resumed:
            check_around(state.joined(), state.problem, self.dual_point(state).w)
        return certificate

    def begin_at(self, state: ShardedState, w: np.ndarray) -> None:
        """Weights without multipliers are no point of the dual."""

    def move(self, state: ShardedState, problem: Problem) -> None:
        """Go on with a problem that differs in its linear term only: u follows the shift."""
        state.gather()
        self.engine.move(state.inner, problem)
        state.spread()

    def from_arrays(self, problem: Problem, arrays: Mapping[str, np.ndarray]) -> ShardedState:
        """Resume where :meth:`ShardedState.to_arrays` left off."""
        seed, sweeps, visits = Saved.of(arrays).whole("sharded", np.int64, (3,), (0, 2.0**62)).tolist()
        state = self._cut(self.engine.from_arrays(problem, arrays))
        state.seed, state.sweeps = seed, sweeps
        state.length.resume(visits)
        return state

    # --- inside -------------------------------------------------------------------------------------------------------

    def _step(self, state: ShardedState) -> None:
        whole, settings = state.inner, self.settings
        if state.pending:
            state.pending = False
            gain = self._sweep(state, "plan_planes", [()] * len(state.homes))
        else:
            calls = state.oracle_calls
            visits = [(settings.selection, settings.visits, seed) for seed in self._seeds(state)]
            gain = self._sweep(state, "plan_visits", visits)
            # a first pass by a policy that starts with blocks never visited is not yet a pass of its own
            if not (whole.certificates == 0 and calls == 0 and settings.selection == "gap"):
                whole.since += (state.oracle_calls - calls) / whole.problem.n_examples
        for _ in range(settings.cached_passes):
            more = self._sweep(state, "plan_again", [(seed,) for seed in self._seeds(state)])
            gain += more
            if more <= max(settings.cached_share * gain, 0.0):
                break

    def _seeds(self, state: ShardedState) -> list[tuple[int, ...]]:
        state.sweeps += 1
        return [(state.seed, state.sweeps, number) for number in range(len(state.shards))]

    def _sweep(self, state: ShardedState, plan: str, arguments: Sequence[tuple]) -> float:
        """Let all shards plan and work on their plans, a round at a time; the gain of the dual."""
        size = state.length.visits
        calls = [(home, (size, *own)) for home, own in zip(state.homes, arguments, strict=True)]
        gain = 0.0
        for number in range(max(state.executor.call(plan, calls))):
            state.stamp += 1
            order = Order(number, state.stamp, state.inner.tau, state.shares)
            changes = state.ask("round", order, state.changes)
            gain += self._combine(state, tuple(changes))
        return gain

    def _combine(self, state: ShardedState, changes: tuple[Change, ...]) -> float:
        """Decide how much of each change stays; the gain of the dual."""
        for asked in (change.asked for change in changes if change.asked.calls):
            state.oracle.count_fused(asked.calls, asked.seconds, (asked.argmax_calls, asked.unproven))
        K = len(changes)
        slope, gram = np.array([change.slope for change in changes]), np.diag([change.norm for change in changes])
        ends, columns, values = _entries(changes)
        products(ends, columns, values, state.scratch, gram)

        def gain(shares: np.ndarray) -> float:
            return float(slope @ shares - 0.5 * shares @ gram @ shares)

        shares = np.full(K, 1.0 / K if self.combine == "average" else 1.0)
        if self.combine == "exact":
            best = np.zeros(K)
            best_shares(slope, gram, best)
            shares = shares if gain(shares) >= ENOUGH * gain(best) else best
        state.changes, state.shares, state.combined = changes, tuple(shares.tolist()), state.stamp
        state.average()
        state.length.note(float(slope.sum() - 0.5 * gram.trace()), gain(shares), len(values))
        return gain(shares)


def _between(planes: Planes, first: int, last: int) -> Planes:
    """The planes of the examples from ``first`` to ``last`` (exclusive), numbered from 0."""
    begin, end = np.searchsorted(planes.example, [first, last])
    part = planes.between(int(begin), int(end))
    return replace(part, example=part.example - first)


def _entries(changes: Sequence[Change]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each change ends, and the columns and values of all, one behind the other."""
    columns, values = map(np.concatenate, zip(*(change.entries() for change in changes), strict=True))
    return np.cumsum([len(change.values) for change in changes]), columns, values


def _added(reports: Sequence[Report]) -> tuple[float, Scales, int]:
    """``sum alpha b`` over all shards, in their order, the scales of all blocks, and entries of all planes."""
    totals, largest = (np.concatenate([getattr(report, name) for report in reports]) for name in ("totals", "largest"))
    entries = sum(report.entries for report in reports)
    return sum(report.linear for report in reports), (totals, largest), entries
