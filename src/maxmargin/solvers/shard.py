"""A shard of the dual: some examples with their planes and multipliers, and a copy of the weights.

It is a resident of an executor: only the shard itself touches what it holds, and what its verbs return can travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin.kernel import clock
from maxmargin.planes import OverBudget, Planes
from maxmargin.solvers import shard_kernel as sk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.block_selection import select
from maxmargin.solvers.block_solver import NO_SIGNS
from maxmargin.solvers.engine import DualEngine
from maxmargin.solvers.shard_sets import linear_of, scales_of
from maxmargin.solvers.state import DualState
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["CHANGING", "Asked", "Change", "Look", "Order", "Report", "Shard"]

CHANGING = frozenset({"plan_planes", "plan_visits", "plan_again", "round", "report", "start_from", "look"})


class Order(NamedTuple):
    """What a shard is told to do in a round."""

    number: int  # of the round in its sweep,
    stamp: int  # and of all rounds of the run
    tau: float
    shares: tuple[float, ...]  # of each change of the round before that stays


class Asked(NamedTuple):
    """What a round has asked the oracle, and the seconds that it took."""

    calls: int = 0
    argmax_calls: int = 0
    unproven: int = 0
    seconds: float = 0.0


class Change(NamedTuple):
    """What a round has changed: u, and what any share x of it gains alone, ``x slope - x^2 norm / 2``."""

    columns: np.ndarray | None = np.empty(0, np.int32)  # (m,): those of u that have changed, none twice,
    values: np.ndarray = np.empty(0)  # (m,): and by how much; columns are None where that of all of u is smaller
    slope: float = 0.0
    norm: float = 0.0
    linear: float = 0.0  # by how much ``sum alpha b`` has changed,
    visits: int = 0  # of blocks
    asked: Asked = Asked()

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values."""
        return np.arange(len(self.values), dtype=np.int32) if self.columns is None else self.columns, self.values


class Report(NamedTuple):
    """What the multipliers of a shard add up to."""

    columns: np.ndarray | None  # int32 (m,): those of u that are not 0; None where all of u is smaller
    values: np.ndarray  # (m,) or (n_columns,): ``sum alpha a``
    linear: float  # ``sum alpha b``
    entries: int  # of all planes
    totals: np.ndarray  # (n_blocks,): as :meth:`WorkingSet.scales`,
    largest: np.ndarray  # (n_blocks,)

    def add_to(self, u: np.ndarray) -> None:
        """``u += sum alpha a``."""
        u[slice(None) if self.columns is None else self.columns] += self.values


class Look(NamedTuple):
    """The losses of all examples of a shard at its weights, and what it took to find them."""

    losses: np.ndarray  # (n_blocks,)
    counts: tuple[int, int] | None


class Before(NamedTuple):
    """Blocks of a round, the planes that each had before it, and the multipliers of these and of the origin."""

    blocks: np.ndarray  # int64 (m,)
    held: np.ndarray  # int32 (m,)
    alpha: np.ndarray  # float64 (m, width)
    origin: np.ndarray  # float64 (m,)


class Shard:
    """Visits its blocks, some in each round, and keeps the share of a change that it is told to keep.

    Parameters
    ----------
    number : int
        Its place among all shards.
    engine : DualEngine
        Visits blocks. It forgets no plane; the shard does, once it is settled how much of a change stays.
    state : DualState
        Of the problem of its own examples, but for u and w, which are those of all shards.
    patience : int
        Visits that a plane without weight survives.
    """

    def __init__(self, number: int, engine: DualEngine, state: DualState, patience: int) -> None:
        self.number, self.engine, self.state, self.patience = number, engine, state, patience
        d = len(state.u)
        seen, columns, before = np.zeros(d // 8 + 1, np.uint8), np.empty(d, np.int32), np.empty(d)
        self.log = state.log = wk.Log(seen, columns, before, np.zeros(1, np.int64))
        positive = state.problem.positive
        self.positive = NO_SIGNS if positive is None else positive.astype(np.int8)
        self.plan: list[Planes | np.ndarray] = []  # for each round: planes to bring in, or blocks to visit,
        self.again = False  # with the planes that they have
        self.open: Before | None = None  # the last round, until it is settled
        self.stamp = 0  # its number, of all rounds of the run

    # --- verbs --------------------------------------------------------------------------------------------------------

    def start_from(self, u: np.ndarray, w: np.ndarray | None) -> None:
        """Let the copy of u and of the weights be these; None where the weights are u."""
        self.state.u[:] = u
        if w is not None:
            self.state.w[:] = w

    def look(self, parts: int, w: np.ndarray | None) -> Look:
        """Ask the oracle about all examples, at the weights at hand or at w; the planes wait here for a sweep."""
        n, w = self.state.n_blocks, self.state.w if w is None else w
        planes = self.state.oracle.planes(w[: self.state.problem.n_columns], np.arange(n), parts)
        self.state.pending = planes
        return Look(planes.losses(n), planes.counts)

    def awaiting(self) -> Planes | None:
        """Planes of the last look that no sweep has brought in yet."""
        return self.state.pending

    def working_set(self) -> WorkingSet:
        """Planes and multipliers."""
        return self.state.working_set

    def unvisited(self) -> int:
        """Blocks that the oracle has never seen."""
        return int(np.isinf(self.state.working_set.store.gap).sum())

    def plan_planes(self, size: int) -> int:
        """Plan to bring in the planes of the last look, in the order of their blocks, those of ``size`` in a round.

        Like the other plans, it returns the number of rounds.
        """
        planes, self.state.pending = self.state.pending, None
        assert planes is not None
        ends = np.append(np.flatnonzero(np.diff(planes.example)) + 1, len(planes)).tolist()
        cuts = [0, *ends[size - 1 : -1 : size], ends[-1]]
        self.plan = [planes.between(begin, end) for begin, end in pairwise(cuts)]
        return len(self.plan)

    def plan_visits(self, size: int, policy: str, share: float, seed: tuple[int, ...]) -> int:
        """Plan to visit a share of the blocks with new planes."""
        store, rng = self.state.working_set.store, np.random.default_rng(seed)
        self.again = False
        return self._plan(select(policy, store, rng, share_of(self.state.n_blocks, share), self.state.cursor), size)

    def plan_again(self, size: int, seed: tuple[int, ...]) -> int:
        """Plan to visit all blocks with the planes that they have, in random order."""
        self.again = True
        return self._plan(np.random.default_rng(seed).permutation(self.state.n_blocks), size)

    def _plan(self, blocks: np.ndarray, size: int) -> int:
        self.plan = [blocks[begin : begin + size] for begin in range(0, len(blocks), size)]
        return len(self.plan)

    def round(self, order: Order, changes: Sequence[Change]) -> Change:
        """Settle the round before; then the work that is planned for this one, at the weights that all shards know."""
        begin, state, oracle = clock(), self.state, self.state.oracle
        self.settle(order.shares, changes)
        self.stamp = order.stamp
        if order.number >= len(self.plan):
            return Change()
        work, ws, state.tau = self.plan[order.number], state.working_set, order.tau
        calls, argmax_calls, unproven = oracle.oracle_calls, oracle.argmax_calls, oracle.unproven
        linear = ws.linear
        self.open = self._remember(np.unique(work.example if isinstance(work, Planes) else work))
        if isinstance(work, Planes):
            gain = self.engine.take_in(state, work)
        else:
            gain = self.engine.revisit(state, work) if self.again else self.engine.visit(state, work)
        if ws.limit is not None:  # planes were merged: what was before cannot be had back
            raise OverBudget(
                f"a shard needs more than its {ws.budget / 2**20:.3g} MB for planes. Raise the solver's memory, or use "
                'solver="auto", which merges planes.'
            )
        asked = oracle.oracle_calls - calls, oracle.argmax_calls - argmax_calls, oracle.unproven - unproven
        n, sums = int(self.log.size[0]), np.empty(2)
        columns, values = self.log.columns[:n].copy(), np.empty(n)
        sk.collect(self.log, state.u, self.positive, values, sums)
        excess, norm = sums.tolist()  # to more digits than the product of change and weights; visits never lose
        values /= state.echo
        slope = max(gain, 0.0) + excess / state.echo
        if not is_sparse(n, len(state.u)):
            dense = np.zeros(len(state.u))
            dense[columns] = values
            columns, values = None, dense
        done = Asked(*asked, clock() - begin)
        return Change(columns, values, slope, norm / state.echo**2, ws.linear - linear, len(self.open.blocks), done)

    def _remember(self, blocks: np.ndarray) -> Before:
        store, m = self.state.working_set.store, len(blocks)
        before = Before(blocks, np.empty(m, np.int32), np.empty((m, store.slots.shape[1])), np.empty(m))
        sk.remember(store, *before)
        return before

    def report(self, combined: int, shares: Sequence[float]) -> Report:
        """Settle what is open, without the changes of others; then all that the multipliers add up to.

        A round that was interrupted before it was combined counts for nothing.
        """
        self.settle(shares if self.stamp == combined else [0.0] * len(shares), [])
        ws = self.state.working_set
        u = np.empty(len(self.state.u))
        wk.rebuild(ws.store, u)
        ws.store.linear[0] = linear_of(ws)  # as that of a shard that begins here
        columns = np.flatnonzero(u).astype(np.int32)
        sparse = is_sparse(len(columns), len(u))
        values = u[columns] if sparse else u
        return Report(columns if sparse else None, values, ws.linear, ws.n_entries, *scales_of(ws))

    def settle(self, shares: Sequence[float], changes: Sequence[Change]) -> None:
        """Keep a share of the change, forget idle planes, and take over what the other shards have changed.

        Without ``changes``, u is left as it is: it has to be made anew.
        """
        state, store = self.state, self.state.working_set.store
        if self.open is not None:
            if shares[self.number] < 1.0:
                sk.retreat(store, *self.open, shares[self.number])
            sk.drop_idle(store, self.open.blocks, self.patience)
            self.open = None
        for s, change in enumerate(changes):
            rest = shares[s] - (state.echo if s == self.number else 0.0)
            if rest != 0.0 and len(change.values):
                sk.advance(*change.entries(), rest, state.u, state.w, self.positive)

    # --- for a worker that takes over ---------------------------------------------------------------------------------

    def save(self) -> tuple:
        """All that changes."""
        state, ws = self.state, self.state.working_set
        wk.compact(ws.store)  # what planes that are gone have left behind need not travel
        end = int(ws.store.size[wk.POOL_END])
        store = ws.store._replace(columns=ws.store.columns[:end], entries=ws.store.entries[:end])
        held = tuple(store), len(ws.store.columns), ws.longest, ws.limit
        point = state.u, None if state.w is state.u else state.w, state.tau, state.cursor, state.pending
        return held, point, self.plan, self.again, self.open, self.stamp

    def load(self, saved: tuple) -> None:
        """Be as :meth:`save` found another one that began as this one did."""
        (store, pool, longest, limit), point, self.plan, self.again, self.open, self.stamp = saved
        state, before = self.state, self.state.working_set
        state.working_set = WorkingSet.restore(wk.Store(*store), pool, before.n_columns, longest, before.budget, limit)
        u, w, state.tau, state.cursor, state.pending = point
        self.start_from(u, w)


def is_sparse(entries: int, d: int) -> bool:
    """Whether so many entries with their columns take fewer bytes than a vector."""
    return 12 * entries < 8 * d


def share_of(n: int, share: float) -> int:
    """Blocks in a share of n."""
    return max(1, round(share * n))
