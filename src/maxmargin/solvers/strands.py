"""Strands of one dual engine: each visits blocks of its own, on as many threads as there are workers.

See :mod:`~maxmargin.solvers.strand_kernel`. What is done does not depend on the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple
from weakref import finalize

import numpy as np

from maxmargin.contracts import Executor, Fused
from maxmargin.kernel import clock
from maxmargin.oracles.batch_kernel import planes_batch
from maxmargin.oracles.oracle import buffers, packed, rows_of, taken
from maxmargin.planes import Planes
from maxmargin.solvers import strand_kernel as sk
from maxmargin.solvers import words_kernel as vk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.extrapolation import Extrapolation
from maxmargin.solvers.state import DualState
from maxmargin.solvers.working_set import WorkingSet, extended

__all__ = ["Team", "strands_of"]

PER_ROUND, PER_SHORT_ROUND = 64, 32  # blocks that all strands together visit in a round: of two strands, of more
SELDOM = 4  # rounds between agreements of one level for one of the level before
BRIEF = 1 << 15  # columns that one thread copies before others have woken up
SEVERAL = 8  # fewer blocks than one of so many settle one by one
FIRST = 256  # examples decoded at the same weights while there are some never seen before; later all of a sweep
STALE = 8.0  # visits that may change a column before strands agree on it
# a pass that gains less than this share of what its visits have gained is looked at, and rounds get shorter;
# longer again when one gains more than that share
ENOUGH, AMPLE = 0.5, 0.9
SPARE = 1.25  # more entries than strands are expected to need
FEW = 8  # examples that a strand decodes before their planes join their blocks


class _Worker:
    """Runs compiled rounds together with others, for whom it waits in them."""

    def __init__(self, arrived: np.ndarray) -> None:
        self._arrived = arrived

    def let_go(self) -> None:
        """Wait for nobody any more: others may never come."""
        self._arrived[0] = 1 << 62

    def work(self, rounds: Callable, arguments: tuple, worker: int, workers: int) -> float:
        try:
            return rounds(*arguments, worker, workers)
        except BaseException:
            self.let_go()
            raise

    def ask(self, fused: Fused, most: int, asked: list, arguments: tuple, worker: int, workers: int) -> tuple[int, int]:
        kernel = fused.kernel
        pack = packed(fused, most)
        for s in range(worker, len(asked), workers):
            rows, part = asked[s]
            sk.ask_and_bring_in(
                planes_batch, kernel.search, kernel.plane, pack, rows, part, fused.first, most, *arguments, s
            )
        return taken(pack.counts)


class Room(NamedTuple):
    """What new planes need. The first three may be guesses: where one is too small, it grows."""

    rows: int  # new planes of any strand
    entries: int  # their entries
    wide: int  # planes of any block, old and new
    longest: int  # the most entries that new planes of a block can have


Join = Callable[[wk.Store, sk.Own], None]  # how new planes join their blocks


class Team:
    """Threads that run strands: at most as many as there are strands, workers and cores.

    u is in the state, or with the team while it is at work: :meth:`settle` gives it back. What others change meanwhile,
    the team has to be told (:meth:`leave`).
    """

    known: bool  # whether columns have numbers, and planes words;
    loaded: bool  # whether mirrors are those of the state,
    at_work: bool  # or newer
    finer: int  # rounds are so many times as short as usual,
    calm: int  # passes that gained nearly all since that last changed,
    caution: int  # how many of these it takes to make rounds longer,
    eased: bool  # and whether the last pass was the first with longer ones
    words: vk.Words
    mirrors: sk.Mirrors
    columns: int  # that have numbers
    frequency: np.ndarray  # of these, below zero: shares of the blocks, the most frequent first
    compactions: int  # of the pool, that the words have seen
    joined: float  # entries that joined for each example asked last, in the strand with the most
    visited: np.ndarray  # blocks, since the team has last settled

    def __init__(self, executor: Executor | None, count: int) -> None:
        self.count, self.workers, self._arrived = count, 1, np.zeros(vk.APART, np.int64)
        others = 1 if executor is None else executor.n_workers
        if executor is not None and executor.shares_memory:
            others = min(others, os.cpu_count() or 1)
            self.workers = min(others, count)
        self.shared_out = others > self.workers  # then questions are better shared out among all workers
        if executor is not None and self.workers > 1:
            self._call = executor.call
            self.homes = executor.start([_Worker(self._arrived)] * self.workers)
            finalize(self, executor.release, self.homes)
        self.retreats = 0  # passes whose changes did not stay whole
        self.made_for = (0, 0)  # so many blocks and columns
        self._sums = vk.sums(count, 0, 0, 0, 0)
        self.leave()

    def run(self, rounds: Callable, *arguments: object) -> float:
        """The same call in all threads; they return the same."""
        return rounds(*arguments, 0, 1) if self.workers == 1 else self._all("work", rounds, arguments)[0]

    def _all(self, verb: str, *arguments: object) -> list:
        """What all workers answer."""
        if self.workers == 1:
            return [getattr(_Worker(self._arrived), verb)(*arguments, 0, 1)]
        return self._call(verb, [(home, (*arguments, k, self.workers)) for k, home in enumerate(self.homes)])

    def _briefly(self, rounds: Callable, *arguments: object) -> float:
        """The same; by this thread alone where that is done before others have woken up."""
        return rounds(*arguments, 0, 1) if self.columns < BRIEF else self.run(rounds, *arguments)

    # --- what the engine calls ----------------------------------------------------------------------------------------

    def leave(self, planes: bool = True) -> None:
        """Others change multipliers and u from here on, and maybe planes: what the team knows of them is void."""
        self.at_work = self.loaded = False
        if planes:
            self.known, self.finer, self.joined = False, 1, 0.0
            self.calm, self.caution, self.eased = 0, 1, False

    def take_in(
        self, state: DualState, planes: Planes, visit: wk.Visit, weight: np.ndarray, lift: np.ndarray
    ) -> float | None:
        """Bring planes into their blocks and visit these; the gain of the dual, or None where memory is too short."""
        if len(planes) == 0:
            return 0.0
        if (np.diff(planes.example) < 0).any():
            planes = planes.take(np.argsort(planes.example, kind="stable"))
        self.settle(state)
        self._open(state, planes)
        blocks = np.unique(planes.example)
        if not self._bring_in(state, *self._given(state, planes, visit, weight, lift)):
            return None
        return self.revisit(state, blocks, visit)

    def visit(
        self, state: DualState, visited: np.ndarray, most: int, visit: wk.Visit, weight: np.ndarray, lift: np.ndarray
    ) -> float | None:
        """The same for planes that are asked for at the present weights, ``most`` per example.

        None also where columns have no numbers yet, or compiled code cannot ask. Each strand asks for its own, unless
        there are workers beside those of the strands, who can help.
        """
        fused, visited = state.oracle.fused(), np.unique(visited)
        self.settle(state)
        if fused is None or not self.known:
            return None
        self._open(state)
        new = self._asked(state, fused, visited, most, (weight, lift, visit))
        return self.revisit(state, visited, visit) if self._bring_in(state, *new) else None

    def revisit(self, state: DualState, blocks: np.ndarray, visit: wk.Visit) -> float:
        """A pass over blocks with the planes they have; the gain of the dual."""
        self._open(state)
        ws, n = state.working_set, self.columns
        live = int((ws.store.held[blocks] > 0).sum())
        if live == 0:
            return 0.0
        rounds = -(-live * self.finer // self._per_round)
        (order, work), cuts = self._order, np.zeros((self.count, rounds + 1), np.int64)
        mirrors, sums = self._mirrors(rounds, self._per_round / self.finer), self._scratch(ws, visit.bits)
        sums.gain[:], sums.size[:], sums.noted[:] = 0.0, 0, 0
        blocks = np.ascontiguousarray(blocks)
        self.run(sk.revisit_rounds, ws.store, blocks, order, work, cuts, self.words, mirrors, visit, sums, n)
        made = float(sums.gain[:, vk.GAIN].sum())
        gain = made - float(mirrors.cross[:, 0].sum())
        ws.store.linear[0] += sums.gain[:, vk.LINEAR].sum()
        ws.store.size[wk.STEPS] += sums.size[:, wk.STEPS].sum()
        self.visited = blocks if not self.at_work else np.concatenate([self.visited, blocks])
        self.at_work = True
        self._adjust(gain, made)
        return self._search(ws.store, order, cuts, gain) if gain < ENOUGH * made else gain

    @property
    def _per_round(self) -> int:
        return PER_ROUND if self.count == 2 else PER_SHORT_ROUND

    def _adjust(self, gain: float, made: float) -> None:
        """Shorter rounds after a pass that gained too little, longer ones after some that gained nearly all.

        Where longer rounds were too long at once, it takes twice as many such passes the next time.
        """
        if gain < ENOUGH * made:
            self.caution *= 2 if self.eased else 1
            self.finer, self.calm, self.eased = min(2 * self.finer, self._per_round), 0, False
            return
        self.calm, self.eased = self.calm + (gain > AMPLE * made), False
        if self.calm >= self.caution and self.finer > 1:
            self.finer, self.calm, self.eased = self.finer // 2, 0, True

    def after_pass(self, state: DualState, jumps: Extrapolation) -> float:
        """Let a pass be noted, and maybe a jump be made; the gain of the dual."""
        self.settle(state)
        gain = jumps.after_pass()
        if jumps.moved:
            self.leave(planes=False)
        return gain

    def aim(self, store: wk.Store, target: np.ndarray, change: np.ndarray) -> float:
        """The aim of a jump, for :class:`~maxmargin.solvers.masters.extrapolation.Extrapolation`."""
        changes = np.zeros((self.count, self.columns))
        self._sums.gain[:] = 0.0
        self.run(sk.aim_all, store, self.words, self._sums, target, changes)
        change[self.words.column[: self.columns]] += changes.sum(axis=0)
        return float(self._sums.gain[:, vk.LINEAR].sum())

    def settle(self, state: DualState) -> None:
        """Give u back."""
        if self.at_work:
            store = state.working_set.store
            if SEVERAL * len(self.visited) < len(store.held):
                sk.unload(store, self.visited, self.words, self.mirrors, state.u)
            else:
                self._briefly(sk.unload_all, self.words, self.mirrors, state.u, self.columns)
            self.at_work = False

    def end(self, state: DualState, visits: int, patience: int) -> None:
        """The end of a step with so many visits of all blocks: planes that had no weight for too long may go."""
        self.settle(state)
        if self.known:
            ws = state.working_set
            own = self._own(ws, 0, 0, np.zeros((self.count, vk.APART), np.int64))
            own = own._replace(free=np.empty((self.count, len(ws.store.b)), np.int32))
            try:
                self.run(sk.forget_all, ws.store, own, visits, patience)
            finally:
                sk.give_back(ws.store, own, 0)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _given(
        self, state: DualState, planes: Planes, visit: wk.Visit, weight: np.ndarray, lift: np.ndarray
    ) -> tuple[Room, Join]:
        """The room that planes need, and how they join their blocks."""
        example, lengths = planes.example, np.diff(planes.indptr)
        owner, per_block, held = sk.owner_of(example, self.count), np.bincount(example), state.working_set.store.held
        room = Room(
            int(np.bincount(owner, minlength=self.count).max()) + 2,
            int(np.bincount(owner, lengths, minlength=self.count).max()),
            int((held[: len(per_block)] + per_block).max(initial=0)) + 2,
            int(np.bincount(example, lengths).max(initial=0)),
        )
        return room, lambda store, own: self._join(state, planes, (weight, lift, visit), store, own)

    def _join(self, state: DualState, planes: Planes, rules: tuple, store: wk.Store, own: sk.Own) -> None:
        weight, lift, visit = rules
        self.run(
            sk.bring_in, store, planes.example, rows_of(planes), weight, lift, state.u, self.words, self.mirrors,
            self._scratch(state.working_set, visit.bits), own, visit,
        )  # fmt: skip

    def _asked(self, state: DualState, fused: Fused, blocks: np.ndarray, most: int, rules: tuple) -> tuple[Room, Join]:
        """The same for planes that are asked for: by the strands, or where there are more workers, by all of them.

        The room is guessed in both cases, so that planes get the same places.
        """
        weight, lift, visit = rules
        ws, w = state.working_set, state.w[: state.problem.n_columns]
        own, longest = int(np.bincount(sk.owner_of(blocks, self.count)).max()), fused.kernel.room + most
        per_block = self.joined if self.joined > 0.0 else ws.n_entries / max(1, ws.n_planes)
        entries, wide = int(SPARE * per_block * own) + longest, int(ws.store.held[blocks].max()) + 2
        rows = FEW * most + most + 1, (FEW + 1) * longest
        asked = [(buffers(*rows), np.empty(FEW, np.int64)) for _ in range(self.count)]
        self.joined, calls = 0.0, len(blocks)
        planes: Planes | None = None

        def join(store: wk.Store, part: sk.Own) -> None:
            nonlocal calls, planes
            begin, before = clock(), part.size[:, wk.POOL_END].copy()
            if self.shared_out:
                planes = state.oracle.planes(w, blocks, most) if planes is None else planes
                self._join(state, planes, rules, store, part)
            else:
                both = store, blocks, w, weight, lift, state.u, self.words, self.mirrors
                counts = self._all("ask", fused, most, asked, (*both, self._scratch(ws, visit.bits), part, visit))
                state.oracle.count_fused(calls, clock() - begin, (sum(n for n, _ in counts), sum(n for _, n in counts)))
            self.joined += float((part.size[:, wk.POOL_END] - before).max()) / own
            calls = 0  # what is left to do where room was short is not asked for the first time

        return Room(most * own + 2, entries, wide, longest), join

    def _bring_in(self, state: DualState, room: Room, join: Join) -> bool:
        """New planes join their blocks; False where there is no room for all of them."""
        ws, (rows, entries, wide, longest) = state.working_set, room
        done, short, fits = np.zeros((self.count, vk.APART), np.int64), None, True
        while fits and (short is None or short.any()):
            if short is not None and (short == sk.TOO_LARGE).any():
                self._leave_entries_out(ws.store)
            if short is not None and (short == sk.STORE_FULL).any():
                longest, most = done[:, [sk.ENTRIES, sk.PLANES]].max(axis=0).tolist()
                rows, entries, wide = 2 * rows, 2 * entries + longest, max(wide, most + 2)
            fits = not ws.reserve(wide, self.count * rows, self.count * entries + 1, restrict=False)
            if fits:
                if ws.store.size[wk.POOL_END] + self.count * entries + 1 > len(ws.store.columns):
                    wk.compact(ws.store)
                self._follow(ws.store)
                store, own = ws.store, self._own(ws, rows, entries, done)
                try:
                    join(store, own)
                finally:  # even if interrupted, planes that have joined must stay intact
                    sk.give_back(store, own, rows)
                self._number(state, own.fresh, done)
                short = done[:, sk.SHORT].copy()
        return fits

    def _own(self, ws: WorkingSet, rows: int, entries: int, done: np.ndarray) -> sk.Own:
        """So much of the working set for each strand; it is the strands' until it is taken back."""
        n, store = self.count, ws.store
        own = sk.Own(
            np.empty((n, rows), np.int32), np.zeros((n, max(wk.SIZES, vk.APART)), np.int64), np.zeros(n, np.int64),
            done, np.empty((n, rows), np.int64),
        )  # fmt: skip
        end = int(store.size[wk.POOL_END])
        last = int(store.size[wk.FREE])
        for s in range(n):
            own.free[s] = store.free[last - rows : last]
            last -= rows
            own.size[s, wk.FREE] = rows
            own.size[s, wk.POOL_END] = end
            end += entries
            own.ends[s] = end
        return own

    def _open(self, state: DualState, planes: Planes | None = None) -> None:
        """Make words of planes and take over u, unless all is there. The planes are those that will join next."""
        store = state.working_set.store
        if not self.known:
            self._begin(store, planes, len(state.u))
            self._write(state)
        self._follow(store)
        if not self.loaded:
            self._briefly(sk.load_all, self.words, self.mirrors, state.u, self.columns)
            self.loaded = True

    def _follow(self, store: wk.Store) -> None:
        """Let words be where the pool is."""
        if len(self.words.word) != len(store.columns):
            end = min(int(store.size[wk.POOL_END]), len(self.words.word))  # more where none have been made yet
            self.words = self.words._replace(word=extended(self.words.word, end, len(store.columns)))
        if self.compactions != store.size[wk.COMPACTIONS]:  # all columns have numbers
            self._rewrite(store)

    def _fresh(self, planes: int) -> tuple[np.ndarray, np.ndarray]:
        """Lists of planes with columns that have no number."""
        return np.empty((self.count, planes), np.int64), np.zeros((self.count, vk.APART), np.int64)

    def _rewrite(self, store: wk.Store) -> None:
        """Make the words of all planes again; all columns have numbers."""
        self.run(sk.write_all, store, self.words, *self._fresh(0))
        self.compactions = int(store.size[wk.COMPACTIONS])

    def _leave_entries_out(self, store: wk.Store) -> None:
        """Let words be numbers alone."""
        self.words.mask[0] = vk.PLAIN
        self._rewrite(store)

    def _write(self, state: DualState) -> None:
        """Make the words of all planes."""
        store = state.working_set.store
        self.compactions = int(store.size[wk.COMPACTIONS])
        self._follow(store)
        if not vk.is_small_and_whole(store.entries[: store.size[wk.POOL_END]]):
            self.words.mask[0] = vk.PLAIN
        fresh, done = self._fresh(state.working_set.n_planes)
        self.run(sk.write_all, store, self.words, fresh, done)
        self._number(state, fresh, done)

    def _number(self, state: DualState, fresh: np.ndarray, done: np.ndarray) -> None:
        """Give numbers to the columns that have none, and mirrors to these."""
        first, store = self.columns, state.working_set.store
        for own, planes in zip(fresh, done[:, sk.FRESH], strict=True):
            self.columns = vk.number_columns(store, self.words, own[:planes], self.columns)
        done[:, sk.FRESH] = 0
        if self.words.mask[0] == vk.PACKED and self.columns > vk.MOST:
            self._leave_entries_out(store)
        if self.loaded:
            sk.mirror(self.words.column, self.mirrors.u, self.mirrors.base, state.u, first, self.columns)

    def _begin(self, store: wk.Store, planes: Planes | None, n_columns: int) -> None:
        """Begin anew: number columns by how many blocks have them, as far as a plane of each tells."""
        n, blocks = self.count, len(store.held)
        if self.made_for != (blocks, n_columns):
            self.words = vk.no_words(n_columns)
            self.mirrors = sk.Mirrors(
                np.empty((n, n_columns)), np.empty(n_columns), np.zeros((n, vk.APART)), np.empty(0, np.int64),
                np.empty(0, np.int64), self._arrived,
            )  # fmt: skip
            self._order = np.empty((2, n, blocks), np.int64)
            self.made_for = blocks, n_columns
        else:
            self.words.number[self.words.column[: self.columns]] = -1
        number, column = self.words.number, self.words.column
        planes_seen = found = 0
        if planes is not None:
            first = np.flatnonzero(np.diff(planes.example, prepend=-1))
            begin, end, planes_seen = planes.indptr[first], planes.indptr[first + 1], len(first)
            found = vk.count_columns(begin, end, planes.indices, number, column, 0)
        live = np.flatnonzero(store.held)
        if 2 * planes_seen < len(live):  # else they tell enough
            ids = store.slots[live, 0]
            begin, end = store.start[ids], store.start[ids] + store.length[ids]
            found = vk.count_columns(begin, end, store.columns, number, column, found)
            planes_seen += len(ids)
        order = np.argsort(np.maximum(number[column[:found]], -32768).astype(np.int16), kind="stable")
        self.columns = found
        column[:found] = column[order]
        self.frequency = (1.0 + number[column[:found]]) / max(1, planes_seen)
        number[column[:found]] = np.arange(found, dtype=np.int32)
        self.known = True

    def _scratch(self, ws: WorkingSet, bits: int) -> vk.Sums:
        """Scratch for planes and blocks as large as those of the working set can be."""
        n, (blocks, width), made = self.count, ws.store.slots.shape, self._sums
        room, width = blocks + len(ws.store.b), width + vk.APART  # so much apart that no line is written by two
        if (made.table.shape[1], made.g.shape[1]) != (1 << bits, width):
            self._sums = vk.sums(n, room, bits, width, len(ws.dense) if ws.longest > wk.HASHED else 0)
        elif made.before.shape[1] != room:
            self._sums = made._replace(before=np.empty((n, room)))
        return self._sums

    def _mirrors(self, rounds: int, per_round: float) -> sk.Mirrors:
        """With the columns on which strands agree after each so many rounds."""
        every = [1]
        while every[-1] * SELDOM < rounds:
            every.append(every[-1] * SELDOM)
        often = [STALE / (per_round * SELDOM * k) for k in every]
        sizes = np.searchsorted(self.frequency, [-x for x in often], side="right")
        self.mirrors.cross[:] = 0.0
        self.mirrors.arrived[:] = 0
        return self.mirrors._replace(sizes=sizes.astype(np.int64), every=np.array(every, np.int64))

    def _search(self, store: wk.Store, order: np.ndarray, cuts: np.ndarray, gain: float) -> float:
        """Keep as much of the changes of a pass as gains most; returns the gain."""
        d = np.zeros(self.columns)
        visited = [order[s, : cuts[s, -1]] for s in range(self.count)]
        for s, blocks in enumerate(visited):
            vk.add_changes(store, self.words, blocks, self._sums.before[s], d)
        norm = float(d @ d)
        slope = gain + 0.5 * norm
        share = max(slope / norm, 0.0) if norm > slope else 1.0
        if share == 1.0:
            return gain
        for s, blocks in enumerate(visited):
            store.linear[0] -= vk.take_back(store, blocks, self._sums.before[s], share)
        self.mirrors.base[: self.columns] -= (1.0 - share) * d
        self.mirrors.u[:, : self.columns] = self.mirrors.base[: self.columns]
        self.retreats += 1
        return share * slope - 0.5 * share * share * norm


def strands_of(state: DualState, count: int) -> Team | None:
    """The strands of a state; None where blocks have to be visited one after the other.

    That is so with one strand, before a joint master problem, with signs and other regularisers than the quadratic one,
    with averages, where planes are merged, and where blocks are no examples.
    """
    ws = state.working_set
    plain = state.w is state.u and state.log is None and state.members is None and state.echo == 1.0
    if ws.limit is not None:  # for good
        state.team = None
    if count == 1 or state.joint or not plain or ws.limit is not None or ws.store.moment[wk.RULE] != wk.NO_MEAN:
        return None
    if state.team is None:
        fused = state.oracle.fused()
        state.team = Team(None if fused is None else fused.executor, count)
    return state.team
