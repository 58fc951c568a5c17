"""Strands of one dual engine: blocks visited several at a time, by as many threads as there are workers.

See :mod:`~maxmargin.solvers.strand_kernel`. What is done does not depend on the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import finalize

import numpy as np

from maxmargin.contracts import Executor, Fused
from maxmargin.oracles.batch_kernel import Rows, planes_batch
from maxmargin.oracles.oracle import packed
from maxmargin.planes import Planes
from maxmargin.solvers import strand_kernel as sk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.shard_kernel import best_shares
from maxmargin.solvers.state import DualState
from maxmargin.solvers.visit_kernel import absorb
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["Team", "strands_of"]

CALL = 2048  # visits with new planes between two looks at the room that is left
BEGIN = 32  # the first ones
VISITS, LINES = 16, 2  # of each strand in a round: visits with new planes, lines of blocks that take in planes
FREQUENT = 4096  # most columns that strands exchange in every round: those of most planes
SAMPLE = 150  # blocks whose planes tell which these are
ENTRIES, TIMES = 30_000, 16  # read by each strand in a round of a cached pass, at least; as many times the columns
ENOUGH = 0.3  # all changes of a call stay when that gains this share of what the strands have gained at their mirrors
ROUNDING = 1e-12  # of the dual: what is lost to it is not worth taking a call back
COUNTERS = [wk.WORSE, wk.STEPS, wk.DUPLICATES]
FIRST = 2048  # entries that the planes of an example are expected to have before any is known
MOST = 250  # strands, which have numbers of one byte


class _Worker:
    """Runs compiled rounds together with others."""

    def work(self, rounds: Callable, arguments: tuple, worker: int, workers: int) -> None:
        rounds(*arguments, worker, workers)


class Team:
    """Threads that run strands: at most as many as there are strands, workers and cores."""

    def __init__(self, executor: Executor | None, count: int, ws: WorkingSet, lifted: int) -> None:
        self.count, self.workers = count, 1
        if executor is not None and executor.shares_memory:
            self.workers = min(executor.n_workers, count, os.cpu_count() or 1)
        if executor is not None and self.workers > 1:
            self._call = executor.call
            self.homes = executor.start([_Worker()] * self.workers)
            finalize(self, executor.release, self.homes)
        n, columns, first = count, ws.n_columns, np.empty((count, FREQUENT))
        self.mirrors = sk.Mirrors(
            np.empty((n, columns)), np.empty((n, columns), np.int32), np.zeros((n, columns), np.int32),
            np.empty(0, np.int32), np.empty(0, np.int32), np.empty((n, FREQUENT), np.int32), first, first.copy(),
            first.copy(), np.empty((2 * n, FREQUENT)), np.zeros(columns, np.int32), np.empty((n, columns), np.int32),
            np.empty(columns), np.zeros((n, sk.APART)), np.zeros((n, sk.APART), np.int64), np.zeros(1, np.int64),
            np.zeros(sk.APART, np.int64),
        )  # fmt: skip
        self._lifted = np.array([lifted])
        self._found, self._counts = np.empty(columns, np.int32), np.zeros(columns, np.int32)
        self._strands: sk.Strands | None = None
        self._pool: np.ndarray | None = None  # whose columns are numbered
        self.taken_back = 0  # calls of which only a part stayed
        self.current = False  # whether mirrors are what u should be
        self.ahead = False  # whether mirrors are ahead of u

    def _all(self, rounds: Callable, *arguments: object) -> None:
        """The same call in all threads."""
        self.mirrors.arrived[:] = 0
        if self.workers == 1:
            rounds(*arguments, 0, 1)
        else:
            self._call("work", [(home, (rounds, arguments, k, self.workers)) for k, home in enumerate(self.homes)])

    def run(self, state: DualState, strands: sk.Strands, rounds: Callable, *arguments: object) -> float:
        """Rounds in all threads; the gain of the dual."""
        self.ahead = True
        try:
            self._all(rounds, *arguments)
        finally:
            _take_back(state.working_set.store, strands)
        return self._settle(state, strands)

    # --- what the engine calls ----------------------------------------------------------------------------------------

    def choose_frequent(self, state: DualState) -> None:
        """Choose the frequent columns: a function of the planes at hand alone, so a resumed run chooses the same."""
        ws = state.working_set
        self.hand_back(state)
        step = max(1, ws.n_blocks // SAMPLE)
        n = sk.count_columns(ws.store, step, self._counts, self._found)
        found = self._found[:n]
        often = self._counts[found]
        self._counts[found] = 0
        least = 2
        if n > FREQUENT:
            least = max(least, int(np.partition(often, n - FREQUENT)[n - FREQUENT]) + 1)
        self._choose(state, np.sort(found[often >= least]))

    def _choose(self, state: DualState, frequent: np.ndarray) -> None:
        """Exchange these columns in every round."""
        self.mirrors = mirrors = self.mirrors._replace(frequent=frequent)
        known = mirrors.counts[:, sk.USED].copy()
        for s in range(self.count):
            sk.number_all(mirrors, state.u, self._lifted[0], frequent, mirrors.places[s], s)
        sk.find_shared(mirrors, state.u, known)

    def hand_back(self, state: DualState) -> None:
        """Let u be what the strands have made of it."""
        if self.ahead:
            self._all(sk.hand_back, self.mirrors, state.u, self._lifted[0])
            self.ahead = False

    def revisit(self, solve: Callable, state: DualState, blocks: np.ndarray, point: wk.Point, visit: wk.Visit) -> float:
        """A pass over blocks with the planes they have; the gain of the dual."""
        own, offsets = self._dealt(blocks)
        strands, mirrors = self._ready(state)
        per_round = max(ENTRIES, TIMES * len(mirrors.frequent))
        return self.run(
            state, strands, sk.revisit_rounds, solve, state.working_set.store, own, offsets, point, visit, strands,
            mirrors, per_round,
        )  # fmt: skip

    def visit(
        self, state: DualState, visited: np.ndarray, fused: Fused, batch: int, parts: int, solve: Callable,
        point: wk.Point, visit_rules: Callable[[DualState], wk.Visit], weight: np.ndarray, counts: np.ndarray,
        gain: np.ndarray,
    ) -> int:  # fmt: skip
        """Visits with new planes; returns how many were made. ``counts`` and ``gain`` receive what the loops found.

        Fewer than all are made where memory asks for merging, which strands cannot do.
        """
        ws, kernel, pack = state.working_set, fused.kernel, packed(fused, parts)
        asking, done = self._asking(fused, pack.room, batch, parts), 0
        visited = visited.copy()  # what found no room is visited again, before the others
        while done < len(visited):
            self.hand_back(state)
            # before there are planes, nobody knows which columns are frequent
            call = min(CALL, max(BEGIN, int(np.count_nonzero(ws.store.held))))
            own, offsets = self._dealt(visited[done : done + call])
            most = int(np.diff(offsets).max())
            mean = 2 * parts * ws.n_entries / max(1, ws.n_planes) if ws.n_planes else FIRST
            entries = int(max(most * min(pack.room, mean), 2 * batch * pack.room))
            rows = most * parts + parts + 2
            if ws.reserve(int(ws.store.held[own].max()) + parts + 2, 2 * self.count * rows, self.count * entries + 1):
                break
            strands, mirrors = self._ready(state, rows, entries)
            gain += self.run(
                state, strands, sk.visit_rounds, planes_batch, kernel.search, kernel.plane, pack, absorb, wk.keep_all,
                solve, ws.store, point, visit_rules(state), own + fused.first, offsets, fused.first, batch, parts,
                weight, strands, mirrors, asking, VISITS,
            )  # fmt: skip
            made = [int(n) for n in mirrors.counts[:, sk.AT]]
            left = [own[first + n : last] for first, last, n in zip(offsets[:-1], offsets[1:], made, strict=True)]
            done += sum(made)
            visited[done : done + sum(map(len, left))] = np.concatenate(left)
            self.choose_frequent(state)
        counts += asking.counts.sum(axis=0)[:2]
        return done

    def take_in(
        self, state: DualState, planes: Planes, solve: Callable, point: wk.Point,
        visit_rules: Callable[[DualState], wk.Visit], weight: np.ndarray, lift: np.ndarray,
    ) -> tuple[Planes, float]:  # fmt: skip
        """Bring planes into their blocks; returns those that are left, for want of memory, and the gain of the dual."""
        ws, gain = state.working_set, 0.0
        rows = Rows(planes.example, planes.indptr, planes.indices.copy(), planes.data, planes.b, planes.bound)
        line = planes.example >> sk.LINE
        begins = np.concatenate([[0], np.flatnonzero(np.diff(line)) + 1])
        ends = np.append(begins[1:], len(planes))
        while len(begins):
            self.hand_back(state)
            owner = line[begins] % self.count
            order = np.argsort(owner, kind="stable")
            begins, ends, offsets = begins[order], ends[order], np.searchsorted(owner[order], np.arange(self.count + 1))
            most = np.bincount(owner, ends - begins, minlength=self.count).max()
            entries = np.bincount(owner, planes.indptr[ends] - planes.indptr[begins], minlength=self.count).max()
            held = np.bincount(planes.example, minlength=ws.n_blocks) + ws.store.held
            if ws.reserve(int(held.max()) + 2, 2 * self.count * (int(most) + 2), self.count * (int(entries) + 1)):
                break
            strands, mirrors = self._ready(state, int(most) + 2, int(entries) + 1)
            gain += self.run(
                state, strands, sk.absorb_rounds, absorb, wk.keep_all, solve, ws.store, begins, ends, offsets, rows,
                weight, lift, point, visit_rules(state), strands, mirrors, LINES,
            )  # fmt: skip
            begins, ends = begins[begins < ends], ends[begins < ends]
        left = [planes.between(first, last) for first, last in zip(begins, ends, strict=True)]
        return Planes.concatenate(left) if left else planes.between(0, 0), gain

    # --- inside -------------------------------------------------------------------------------------------------------

    def _dealt(self, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The blocks of each strand, in their order, one strand after the other, and where those of each begin."""
        owner = (blocks >> sk.LINE) % self.count
        own = [blocks[owner == s] for s in range(self.count)]
        return np.concatenate(own), np.cumsum([0, *map(len, own)])

    def _ready(self, state: DualState, rows: int = 0, entries: int = 0) -> tuple[sk.Strands, sk.Mirrors]:
        """Scratch for a call, with room for so many planes and entries of each strand; mirrors are u."""
        ws = state.working_set
        store = ws.store
        if store.size[wk.POOL_END] + self.count * entries + 1 > len(store.columns):
            wk.compact(store)
            self._pool = None
        if not self.current:
            for s in range(self.count):
                sk.reflect(self.mirrors, state.u, self._lifted[0], s)
            sk.renew_base(self.mirrors, state.u)
        strands = self._scratch(ws)
        strands.known[:] = self.mirrors.counts[:, sk.USED]
        if self._pool is not store.columns or not self.current:
            if len(self.mirrors.ids) != len(store.columns):
                self.mirrors = self.mirrors._replace(ids=np.empty(len(store.columns), np.int32))
            for s in range(self.count):
                sk.number_planes(self.mirrors, store, state.u, self._lifted[0], s)
            sk.find_shared(self.mirrors, state.u, strands.known)
            self._pool = store.columns
        self.current = True
        if rows:
            _hand_out(store, strands, rows, entries)
        strands.known[:] = self.mirrors.counts[:, sk.USED]
        return strands, self.mirrors

    def _scratch(self, ws: WorkingSet) -> sk.Strands:
        n, store, last = self.count, ws.store, self._strands
        width, planes, long = len(ws.g) + sk.APART, len(store.b), ws.longest > wk.HASHED
        if last is None or last.free.shape[1] != planes or last.g.shape[1] != width:
            last = self._strands = sk.Strands(
                np.empty((n, planes), np.int32), np.zeros((n, max(wk.SIZES, sk.APART)), np.int64),
                np.zeros((n, sk.APART)), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), self._lifted,
                np.empty((n, width)), np.empty((n, width)), np.zeros((n, len(ws.table)), np.int32),
                np.zeros((n, ws.n_columns)) if long else np.empty((1, 0)), np.empty(planes), np.empty(ws.n_blocks),
            )  # fmt: skip
        last.size[:], last.linear[:], last.begins[:], last.ends[:] = 0, 0.0, 0, len(store.columns)
        return last

    def _asking(self, fused: Fused, room: int, batch: int, parts: int) -> sk.Asking:
        n, k = self.count, fused.kernel
        rows, entries = batch * parts + parts + 1, (batch + 1) * room
        return sk.Asking(
            np.zeros((n, k.iwork_size), np.int32), np.empty((n, k.fwork_size)), np.empty((n, k.output_size), np.int32),
            np.zeros((n, sk.APART), np.int64), np.empty((n, rows), np.int64), np.empty((n, rows), np.int64),
            np.empty((n, entries), np.int32), np.empty((n, entries)), np.empty((n, rows)), np.empty((n, rows)),
        )  # fmt: skip

    def _settle(self, state: DualState, strands: sk.Strands) -> float:
        """The gain of a call: all of its changes stay, or the best share of those of each strand."""
        gained, met, crossed = self.mirrors.sums[:, :3].sum(axis=0)
        gain = gained + met - crossed
        lost = gained - gain
        if gain >= ENOUGH * gained or lost <= ROUNDING * abs(state.working_set.linear):
            return float(gain)
        self.taken_back += 1
        self.hand_back(state)
        self.current = False
        return _best_part(state, strands, self.count)


def _best_part(state: DualState, strands: sk.Strands, count: int) -> float:
    """Keep the best share of what each strand has changed; returns the gain of the dual.

    With the changes ``d_s`` of u and those of ``sum alpha b``, the dual is a concave quadratic in the shares.
    """
    ws, u = state.working_set, state.u
    store, blocks = ws.store, np.arange(ws.n_blocks)
    owner = (blocks >> sk.LINE) % count
    changes, linear = np.zeros((count, len(u))), np.zeros(count)
    for s in range(count):
        ids = ws.ids(blocks[owner == s])
        moved = store.alpha[ids] - strands.alpha[ids]
        linear[s] = moved @ store.b[ids]
        changes[s] = moved @ ws.rows(ids)
    gram, shares = changes @ changes.T, np.ones(count)
    slope = linear - changes @ (u - changes.sum(axis=0))
    best_shares(slope, gram, shares)
    for s in range(count):
        ids, x = ws.ids(blocks[owner == s]), shares[s]
        store.alpha[ids] = (1.0 - x) * strands.alpha[ids] + x * store.alpha[ids]
        store.idle[ids] = np.minimum(store.idle[ids], 0)  # a plane that has weight again must not go with the next step
        bounded = np.isfinite(store.total) & (owner == s)
        store.origin[bounded] = (1.0 - x) * strands.origin[bounded] + x * store.origin[bounded]
    u += (shares - 1.0) @ changes
    store.linear[0] += (shares - 1.0) @ linear
    return float(slope @ shares - 0.5 * shares @ gram @ shares)


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
        state.team = Team(None if fused is None else fused.executor, count, ws, state.problem.n_weights)
    return state.team


def _hand_out(store: wk.Store, strands: sk.Strands, rows: int, entries: int) -> None:
    """Give each strand so many unused planes, of lines of its own as far as there are, and so much of the pool."""
    count, size = len(strands.known), int(store.size[wk.FREE])
    owner = (store.free[:size] >> sk.LINE) % count
    end, taken = max(1, int(store.size[wk.POOL_END])), np.zeros(size, bool)  # 0 would mean that nothing was given
    for s in range(count):
        own = np.flatnonzero((owner == s) & ~taken)[-rows:]
        if len(own) < rows:
            own = np.concatenate([np.flatnonzero((owner != s) & ~taken)[len(own) - rows :], own])
        taken[own] = True
        strands.free[s, :rows] = store.free[own]
        strands.size[s, wk.FREE] = rows
        strands.size[s, wk.POOL_END] = strands.begins[s] = end
        strands.size[s, wk.POOL_LIVE] = len(store.columns)  # too much to be compacted by a strand
        end += entries
        strands.ends[s] = end
    kept = store.free[:size][~taken]
    store.free[: len(kept)], store.size[wk.FREE] = kept, len(kept)


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
