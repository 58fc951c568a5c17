"""Strands of one dual engine: blocks visited several at a time, by as many threads as there are workers.

See :mod:`~maxmargin.solvers.strand_kernel`. What is done does not depend on the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import finalize

import numpy as np

from maxmargin.contracts import Executor, Fused
from maxmargin.oracles.batch_kernel import planes_batch
from maxmargin.oracles.oracle import packed
from maxmargin.solvers import strand_kernel as sk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.state import DualState
from maxmargin.solvers.visit_kernel import absorb
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["Team", "strands_of"]

AT_ONCE = 16  # visits of all strands at the same weights: with twice as many, rounds begin to undo each other
CALL = 1024  # visits with new planes between two looks at the room that is left
COUNTERS = [wk.WORSE, wk.STEPS, wk.DUPLICATES]
FIRST = 2048  # entries that the planes of an example are expected to have before any is known


class _Worker:
    """Runs compiled rounds together with others."""

    def work(self, rounds: Callable, arguments: tuple, worker: int, workers: int) -> float:
        return rounds(*arguments, worker, workers)


class Team:
    """Threads that run strands: at most as many as there are strands, workers and cores."""

    def __init__(self, executor: Executor | None, count: int) -> None:
        self.count, self.workers = count, 1
        self.classes = 1 << (count - 1).bit_length()  # of columns, shared out among the threads
        if executor is not None and executor.shares_memory:
            self.workers = min(executor.n_workers, count, os.cpu_count() or 1)
        if executor is not None and self.workers > 1:
            self._call = executor.call
            self.homes = executor.start([_Worker()] * self.workers)
            finalize(self, executor.release, self.homes)

    def run(self, rounds: Callable, *arguments: object) -> float:
        """The same call in all threads; they return the same."""
        if self.workers == 1:
            return rounds(*arguments, 0, 1)
        tasks = [(home, (rounds, arguments, k, self.workers)) for k, home in enumerate(self.homes)]
        return self._call("work", tasks)[0]

    @property
    def at_once(self) -> int:
        return max(1, AT_ONCE // self.count)

    # --- what the engine calls ----------------------------------------------------------------------------------------

    def revisit(self, solve: Callable, ws: WorkingSet, blocks: np.ndarray, point: wk.Point, visit: wk.Visit) -> float:
        """A pass over blocks with the planes they have; the gain of the dual."""
        strands = self._scratch(ws, visit)
        blocks = dealt(ws.store, blocks, self.count, self.at_once)
        gain = self.run(sk.revisit_rounds, solve, ws.store, blocks, point, visit, strands, self.at_once)
        _take_back(ws.store, strands)
        return gain

    def visit(
        self, state: DualState, visited: np.ndarray, fused: Fused, parts: int, solve: Callable, point: wk.Point,
        visit_rules: Callable[[DualState], wk.Visit], weight: np.ndarray, counts: np.ndarray, gain: np.ndarray,
    ) -> int:  # fmt: skip
        """Visits with new planes; returns how many were made. ``counts`` and ``gain`` receive what the loops found.

        Fewer than all are made where memory asks for merging, which strands cannot do.
        """
        ws, kernel, pack = state.working_set, fused.kernel, packed(fused, parts)
        asking, done = self._asking(fused, pack.room, parts), 0
        visited = visited.copy()  # rounds that found no room are made again, in this order
        while done < len(visited):
            some = dealt(ws.store, visited[done : done + CALL], self.count, self.at_once)
            visited[done : done + CALL] = some
            own = -(-len(some) // self.count)
            mean = 2 * parts * ws.n_entries / max(1, ws.n_planes) if ws.n_planes else FIRST
            entries = int(max(own * min(pack.room, mean), 2 * self.at_once * pack.room))
            rows = own * parts + parts + 2
            if ws.reserve(int(ws.store.held[some].max()) + parts + 2, self.count * rows, self.count * entries + 1):
                break
            store = ws.store
            if store.size[wk.POOL_END] + self.count * entries + 1 > len(store.columns):
                wk.compact(store)
            visit = visit_rules(state)
            strands = self._scratch(ws, visit)
            _hand_out(store, strands, rows, entries)
            made = self.run(
                sk.visit_rounds, planes_batch, kernel.search, kernel.plane, pack, absorb, wk.keep_all, solve, store,
                point, visit, some + fused.first, fused.first, parts, weight, strands, asking, self.at_once, gain,
            )  # fmt: skip
            _take_back(store, strands)
            done += int(made)
        counts += asking.counts.sum(axis=0)[:2]
        return done

    def _scratch(self, ws: WorkingSet, visit: wk.Visit) -> sk.Strands:
        n, store = self.count, ws.store
        width = len(ws.g) + sk.APART
        room, apart = self.at_once * min(2 * visit.max_steps, width) + sk.APART, (n, sk.APART)
        long = ws.longest > wk.HASHED
        return sk.Strands(
            np.empty((n, room), np.int32), np.empty((n, room), np.int32), np.empty((n, room)),
            np.zeros(apart, np.int64), np.zeros(apart), np.zeros(apart), np.zeros(apart),
            np.zeros((self.classes, sk.APART)), np.empty((n, len(store.b)), np.int32),
            np.zeros((n, max(wk.SIZES, sk.APART)), np.int64), np.full(n, len(store.columns)), np.empty((n, width)),
            np.empty((n, width)), np.zeros((n, len(ws.table)), np.int32),
            np.zeros((n, ws.n_columns)) if long else np.empty((1, 0)), np.zeros(sk.APART, np.int64),
            np.zeros(apart, np.int64),
        )  # fmt: skip

    def _asking(self, fused: Fused, room: int, parts: int) -> sk.Asking:
        n, k = self.count, fused.kernel
        rows, entries = self.at_once * parts + parts + 1, (self.at_once + 1) * room
        return sk.Asking(
            np.zeros((n, k.iwork_size), np.int32), np.empty((n, k.fwork_size)), np.empty((n, k.output_size), np.int32),
            np.zeros((n, sk.APART), np.int64), np.empty((n, rows), np.int64), np.empty((n, rows), np.int64),
            np.empty((n, entries), np.int32), np.empty((n, entries)), np.empty((n, rows)), np.empty((n, rows)),
            np.zeros((n, sk.APART), np.int64), np.zeros((n, sk.APART)),
        )  # fmt: skip


def strands_of(state: DualState, count: int) -> Team | None:
    """The strands of a state; None where blocks have to be visited one after the other.

    That is so with one strand, before a joint master problem, with signs and other regularisers than the quadratic one,
    with averages, where planes are merged, and where blocks are no examples.
    """
    ws = state.working_set
    plain = state.w is state.u and state.log is None and state.members is None and state.echo == 1.0
    if count == 1 or state.joint or not plain or ws.limit is not None or ws.store.moment[wk.RULE] != wk.NO_MEAN:
        return None
    if state.team is None:
        fused = state.oracle.fused()
        state.team = Team(None if fused is None else fused.executor, count)
        wk.arrange_all(ws.store, state.team.classes)
    return state.team


def dealt(store: wk.Store, blocks: np.ndarray, count: int, at_once: int) -> np.ndarray:
    """The blocks of each round in an order that gives its strands about the same work, by the size of their planes."""
    rounds = blocks[: len(blocks) // (count * at_once) * count * at_once].reshape(-1, count * at_once)
    work = store.held[rounds] * store.length[store.slots[rounds, 0]]
    turns = np.arange(count * at_once).reshape(at_once, count)
    turns[1::2] = turns[1::2, ::-1]  # to and fro, so that no strand always has the larger one
    order = np.argsort(work, axis=1, kind="stable")[:, turns.T.ravel()]
    return np.concatenate([np.take_along_axis(rounds, order, axis=1).ravel(), blocks[rounds.size :]])


def _hand_out(store: wk.Store, strands: sk.Strands, rows: int, entries: int) -> None:
    """Give each strand so many unused planes and so much of the pool."""
    end = max(1, int(store.size[wk.POOL_END]))  # 0 would mean that nothing was given
    for s in range(len(strands.made)):
        last = int(store.size[wk.FREE])
        strands.free[s, :rows] = store.free[last - rows : last]
        store.size[wk.FREE] = last - rows
        strands.size[s, wk.FREE] = rows
        strands.size[s, wk.POOL_END] = end
        strands.size[s, wk.POOL_LIVE] = len(store.columns)  # too much to be compacted by a strand
        end += entries
        strands.ends[s] = end


def _take_back(store: wk.Store, strands: sk.Strands) -> None:
    """Let the working set have what the strands have left of it, and know what they have changed."""
    for s, size in enumerate(strands.size):
        first, more = int(store.size[wk.FREE]), int(size[wk.FREE])
        store.free[first : first + more] = strands.free[s, :more]
        store.size[wk.FREE] += more
        handed = size[wk.POOL_END] > 0
        store.size[wk.POOL_LIVE] += size[wk.POOL_LIVE] - (len(store.columns) if handed else 0)
        store.size[wk.POOL_END] = max(store.size[wk.POOL_END], size[wk.POOL_END])
        store.size[COUNTERS] += size[COUNTERS]
        store.linear[0] += strands.linear[s, 0]
