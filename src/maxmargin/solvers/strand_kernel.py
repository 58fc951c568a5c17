"""Compiled rounds of strands: each visits blocks of its own at weights of its own, and they agree again and again.

A strand owns blocks and has a *mirror* of u that it alone reads and changes, so strands wait for nothing while they are
at work. At the end of a round they agree on the columns that many blocks have, every few rounds on those that fewer
have, and at the end of a pass on all: mirrors then hold u with the changes of all strands, added up exactly. A column
that several strands have changed since they last agreed on it takes from the gain of the dual what its changes have in
common, so the gain is known exactly too:

    gain = sum_s gain_s - sum_{s < t} D_s . D_t,      D_s the change of strand s since the last agreement

Strands are what one worker does at a time; any number of workers does the same sums in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.models.signature import PLANE_FUNCTION, SEARCH_FUNCTION
from maxmargin.oracles.batch_kernel import BATCH_FUNCTION, PACK, ROWS
from maxmargin.prefetch_kernel import prefetch_entry, prefetch_much
from maxmargin.solvers import folded_kernel as vk
from maxmargin.solvers import folds_kernel as fk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.folded_kernel import SUMS
from maxmargin.solvers.folds_kernel import APART, FOLDED, SCRATCH
from maxmargin.solvers.visit_kernel import is_wanted, look
from maxmargin.team_kernel import wait_for_all

LINES = 4  # bits: so many blocks in a row belong to one strand, so that strands write no line of memory in turn
FITS, STORE_FULL, FOLDS_FULL = range(3)  # whether new planes find room
# of a strand: rows or blocks it has seen, its own and others'; what was short; the most entries and planes of a block;
# examples whose planes have been asked for and have not all joined, and the first row of those that have not
DONE, SHORT, ENTRIES, PLANES, WAITING, ROW = range(6)
STRIP = 1024  # columns that strands agree on at a time, which stay in the nearest cache meanwhile


class Own(NamedTuple):
    """What a strand has of the working set while planes come and go; a row for each."""

    free: np.ndarray  # int32 (strands, planes): unused planes
    size: np.ndarray  # int64 (strands, APART): as those of the store
    ends: np.ndarray  # int64 (strands,): where the part of the pool ends that a strand may fill
    place: np.ndarray  # int32 (strands, width): places that planes of a block had
    done: np.ndarray  # int64 (strands, APART): DONE, SHORT, ENTRIES, PLANES, WAITING, ROW


class Mirrors(NamedTuple):
    """The columns of u in use, by their numbers."""

    u: np.ndarray  # float64 (strands, room): as each strand has them
    base: np.ndarray  # float64 (room,): as all had them when they last agreed
    cross: np.ndarray  # float64 (strands, APART): what changes had in common
    sizes: np.ndarray  # int64 (levels,): on so many columns they agree
    every: np.ndarray  # int64 (levels,): after each so many rounds
    arrived: np.ndarray  # int64 (APART,): see wait_for_all


_i8, _f8 = types.int64, types.float64
_i4ss, _i8ss, _f8ss = types.int32[:, ::1], types.int64[:, ::1], types.float64[:, ::1]
_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]
OWN = record(Own, _i4ss, _i8ss, _i8s, _i4ss, _i8ss)
MIRRORS = record(Mirrors, _f8ss, _f8s, _f8ss, _i8s, _i8s, _i8s)


@register_jitable
def owner_of(block, count):
    """The strand that a block belongs to."""
    return (block >> LINES) % count


@register_jitable
def own_store(store, own, s):
    """The working set as strand s sees it: with unused planes, pool and sums of its own."""
    end = own.ends[s]
    return wk.Store(
        store.slots, store.held, store.total, store.origin, store.open, store.gap, store.start, store.length, store.b,
        store.alpha, store.idle, store.iterate, store.gram, store.columns[:end], store.entries[:end], own.free[s],
        own.size[s], store.linear, store.mean, store.moment,
    )  # fmt: skip


@register_jitable
def _announce(store, folds, block, s):
    """Let memory fetch a block that new planes will join soon."""
    width = store.gram.shape[1]
    for p in range(store.held[block]):
        plane = np.int64(store.slots[block, p])
        prefetch_much(store.gram, plane * width, plane * width + store.held[block])
    vk.announce(folds, block, s)


@register_jitable
def _has_room(store, mine, block, row, end, indptr, folds, done, s):
    """Whether new planes find room in their block, in the part of the pool that a strand has, and in its folds."""
    entries, planes, short = indptr[end] - indptr[row], store.held[block] + end - row, FITS
    if (
        mine.size[wk.FREE] <= end - row
        or mine.size[wk.POOL_END] + entries > len(mine.columns)
        or planes >= store.slots.shape[1]
    ):
        short = STORE_FULL
    for p in range(store.held[block]):
        entries += store.length[store.slots[block, p]]
    if short == FITS and not fk.has_room(folds, s, 3 * entries + planes, entries + 2 + planes * (planes + 3)):
        short = FOLDS_FULL
    done[SHORT], done[ENTRIES], done[PLANES] = short, max(done[ENTRIES], entries), max(done[PLANES], planes)
    return short == FITS


@register_jitable
def _join(store, mine, block, row, end, rows, weight, lift, u, folds, mirrors, scratch, sums, visit, s):
    """Let the planes from ``row`` to ``end`` join their block, unless none of them can help, and fold them."""
    g, held = sums.g[s], store.held[block]
    if (
        folds.block[block, fk.PLANES] == held
    ):  # all of its columns have numbers: a block is joined at most once per call
        vk.folded_gradients(store, block, folds, mirrors.u[s], sums, s, g)
    else:
        wk.gradients(store, block, u, g)
    violation, best, scale = look(mine, block, row, rows, weight, lift, u, g)
    if is_wanted(violation, best, scale):
        for new in range(row, end):
            first, last = rows.indptr[new], rows.indptr[new + 1]
            index, value = rows.indices[first:last], rows.values[first:last]
            wk.insert(mine, block, index, value, rows.b[new], visit.table, 0, visit.dense)
        fk.fold(mine, block, folds, scratch, s, store.held[block] - held)
    elif violation < best - 1e-9 * scale:
        mine.size[wk.WORSE] += 1


@kernel(
    _i8(wk.STORE, _i8s, ROWS, _f8s, _f8s, _f8s, FOLDED, MIRRORS, SCRATCH, SUMS, OWN, wk.VISIT, _i8, _i8), borrows=True
)
def bring_in(store, blocks, rows, weight, lift, u, folds, mirrors, scratch, sums, own, visit, worker, workers):
    """Bring new planes into their blocks and fold them, each strand those of its own; nothing is solved.

    ``blocks`` and ``rows`` are as those of :func:`~maxmargin.solvers.visit_kernel.absorb`, and so is what is left out.
    ``own.done`` says how far each strand has come, and why not further. A block has its rows side by side.
    """
    count, m = len(own.ends), len(blocks)
    for s in range(worker, count, workers):
        mine, done = own_store(store, own, s), own.done[s]
        row, enough = done[DONE], True
        while row < m and enough:
            block, end = blocks[row], row + 1
            while end < m and blocks[end] == block:
                end += 1
            if owner_of(block, count) == s:
                if end < m and owner_of(blocks[end], count) == s:
                    _announce(store, folds, blocks[end], s)
                enough = _has_room(store, mine, block, row, end, rows.indptr, folds, done, s)
                if enough:
                    _join(store, mine, block, row, end, rows, weight, lift, u, folds, mirrors, scratch, sums, visit, s)
            row = end if enough else row
        done[DONE] = row
    return 0


@kernel(
    _i8(
        BATCH_FUNCTION, SEARCH_FUNCTION, PLANE_FUNCTION, PACK, ROWS, _i8s, _i8, _i8, wk.STORE, _i8s, _f8s, _f8s, _f8s,
        _f8s, FOLDED, MIRRORS, SCRATCH, SUMS, OWN, wk.VISIT, _i8,
    ),
    borrows=True,
)  # fmt: skip
def ask_and_bring_in(
    planes_batch, search, plane, pack, rows, part, first, emit, store, blocks, w, weight, lift, u, folds, mirrors,
    scratch, sums, own, visit, s,
):  # fmt: skip
    """The same for planes that a strand asks for itself, all at the same weights w, a few at a time.

    They join their blocks while they are in the nearest cache. Example ``first`` is block 0; ``part`` (few,) names the
    examples asked last and ``rows`` holds their planes, which wait there while room is short.
    """
    count, few = len(own.ends), len(part)
    mine, done = own_store(store, own, s), own.done[s]
    at, n, row, enough = done[DONE], done[WAITING], done[ROW], True
    while enough and (n > 0 or at < len(blocks)):
        if n == 0:
            while at < len(blocks) and n < few:
                if owner_of(blocks[at], count) == s:
                    part[n] = blocks[at] + first
                    n += 1
                at += 1
            if n == 0:
                break
            _announce(store, folds, part[0] - first, s)
            planes_batch(search, plane, pack, w, part[:n], 0, emit, rows)
            row = 0
        while enough and rows.example[row] >= 0:
            i, end = rows.example[row], row + 1
            while rows.example[end] == i:
                end += 1
            block = part[i] - first
            if i + 1 < n:
                _announce(store, folds, part[i + 1] - first, s)
            enough = _has_room(store, mine, block, row, end, rows.indptr, folds, done, s)
            if enough:
                _join(store, mine, block, row, end, rows, weight, lift, u, folds, mirrors, scratch, sums, visit, s)
                row = end
        n = 0 if enough else n
    done[DONE], done[WAITING], done[ROW] = at, n, row
    return 0


@kernel(_i8(wk.STORE, _i8s, FOLDED, SCRATCH, _i8s, _i8, _i8), borrows=True)
def fold_all(store, blocks, folds, scratch, done, worker, workers):
    """Fold some blocks, each strand its own; ``done`` (strands * APART,) says how far each has come."""
    count = len(folds.end)
    for s in range(worker, count, workers):
        i = done[s * APART]
        while i < len(blocks):
            if owner_of(blocks[i], count) == s and not fk.fold(store, blocks[i], folds, scratch, s, 0):
                break
            i += 1
        done[s * APART] = i
    return 0


@kernel(types.void(_i4s, _f8ss, _f8s, _f8s, _i8, _i8), borrows=True)
def mirror(column, mirrors, base, u, begin, end):
    """Let all mirrors have some columns of u."""
    for c in range(begin, end):
        base[c] = u[np.uint32(column[c])]
    for own in mirrors:
        for c in range(begin, end):
            own[c] = base[c]


@kernel(_i8(wk.STORE, FOLDED, MIRRORS, _f8s, _i8, _i8, _i8), borrows=True)
def load_all(store, folds, mirrors, u, n, worker, workers):
    """Take over multipliers and columns of u."""
    count = len(folds.end)
    for block in range(len(folds.block)):
        s = owner_of(block, count)
        if s % workers == worker and folds.block[block, fk.PLANES] >= 0:
            vk.load(store, block, folds, s)
    for s in range(worker, count, workers):
        mirror(folds.column, mirrors.u, mirrors.base, u, s * n // count, (s + 1) * n // count)
    return 0


@kernel(_i8(wk.STORE, FOLDED, MIRRORS, _f8s, _i8, _i8, _i8), borrows=True)
def unload_all(store, folds, mirrors, u, n, worker, workers):
    """Give multipliers and columns of u back; strands must have agreed on all."""
    count = len(folds.end)
    for block in range(len(folds.block)):
        s = owner_of(block, count)
        if s % workers == worker and folds.block[block, fk.PLANES] >= 0:
            vk.unload(store, block, folds, s)
    for s in range(worker, count, workers):
        for c in range(s * n // count, (s + 1) * n // count):
            u[np.uint32(folds.column[c])] = mirrors.u[0, c]
    return 0


@kernel(types.void(wk.STORE, _i8s, FOLDED, MIRRORS, _f8s), borrows=True)
def unload(store, blocks, folds, mirrors, u):
    """The same for some blocks, where no others have been visited."""
    count = len(folds.end)
    for i in range(len(blocks)):
        s, own = owner_of(blocks[i], count), folds.block[blocks[i]]
        vk.unload(store, blocks[i], folds, s)
        ints = folds.ints[s]
        for e in range(own[fk.BEGIN], own[fk.BEGIN] + own[fk.COLUMNS]):
            u[np.uint32(folds.column[ints[e]])] = mirrors.u[0, ints[e]]


@kernel(types.void(_f8ss, _f8s, _f8ss, _i8, _i8, _i8), borrows=True)
def agree(u, base, cross, s, begin, end):
    """Let all mirrors have the changes of all strands in some columns."""
    for low in range(begin, end, STRIP):
        high = min(low + STRIP, end)
        all_of, common = u[0, low:high], base[low:high]  # base becomes base + D_0 + ... + D_t
        for t in range(1, len(u)):
            own, product = u[t, low:high], 0.0
            for c in range(len(own)):
                product += (all_of[c] - common[c]) * (own[c] - common[c])
            cross[s, 0] += product
            for c in range(len(own)):
                all_of[c] += own[c] - common[c]
        for c in range(len(common)):
            common[c] = all_of[c]
        for t in range(1, len(u)):
            own = u[t, low:high]
            for c in range(len(own)):
                own[c] = common[c]


@register_jitable
def _agree_on(mirrors, n, worker, workers, waits):
    """All strands agree on the first columns; each worker sees to some of them. Returns the waits so far."""
    count = len(mirrors.u)
    if count > 1:
        waits += 1
        wait_for_all(mirrors.arrived, waits, workers)
        for s in range(worker, count, workers):
            begin, end = (s * n // count) & ~7, ((s + 1) * n // count) & ~7
            agree(mirrors.u, mirrors.base, mirrors.cross, s, begin, n if s + 1 == count else end)
        waits += 1
        wait_for_all(mirrors.arrived, waits, workers)
    return waits


@register_jitable
def _work(folds, block):
    """About what a visit costs."""
    return folds.block[block, fk.COLUMNS] + 2 * folds.block[block, fk.ENTRIES] + 100


@kernel(types.void(wk.STORE, FOLDED, _i8s, _i8, _i8, _i8s, _i8s), borrows=True)
def deal(store, folds, blocks, s, count, order, cuts):
    """Pick the blocks of a strand that have planes, and cut them into rounds of about the same work."""
    n, work, done, t = 0, 0, 0, 1
    for i in range(len(blocks)):
        if owner_of(blocks[i], count) == s and store.held[blocks[i]] > 0:
            order[n] = blocks[i]
            work += _work(folds, blocks[i])
            n += 1
    last = len(cuts) - 1
    cuts[0] = 0
    for i in range(n):
        while t < last and done * last >= t * work:
            cuts[t] = i
            t += 1
        done += _work(folds, order[i])
    for round in range(t, last + 1):
        cuts[round] = n


@kernel(_i8(wk.STORE, _i8s, _i8ss, _i8ss, FOLDED, MIRRORS, wk.VISIT, SUMS, _i8, _i8, _i8), borrows=True)
def revisit_rounds(store, blocks, order, cuts, folds, mirrors, visit, sums, n, worker, workers):
    """A pass over blocks: in round t strand s visits those in ``order[s, cuts[s, t] : cuts[s, t + 1]]``.

    ``n`` is the number of columns in use; on these the strands agree in the end.
    """
    waits, rounds = 0, cuts.shape[1] - 1
    for s in range(worker, len(order), workers):
        deal(store, folds, blocks, s, len(order), order[s], cuts[s])
    for t in range(rounds):
        for s in range(worker, len(order), workers):
            vk.visit_folded(store, order[s, cuts[s, t] : cuts[s, t + 1]], folds, mirrors.u[s], visit, sums, s)
        due = 0
        for level in range(len(mirrors.sizes)):
            if (t + 1) % mirrors.every[level] == 0:
                due = max(due, mirrors.sizes[level])
        due = n if t + 1 == rounds else due
        if due > 0:
            waits = _agree_on(mirrors, due, worker, workers, waits)
    return 0


@kernel(_f8(wk.STORE, FOLDED, SUMS, _f8s, _f8ss, _i8, _i8), borrows=True)
def aim_all(store, folds, sums, target, changes, worker, workers):
    """The aim of a jump, each strand for its own blocks: ``changes`` (strands, columns) of u, by number, and LINEAR."""
    count = len(changes)
    for s in range(worker, count, workers):
        for first in range(s << LINES, len(store.held), count << LINES):
            for block in range(first, min(first + (1 << LINES), len(store.held))):
                linear = vk.aim_folded(store, block, folds, sums, s, target, changes[s])
                sums.gain[s, vk.LINEAR] += linear
    return 0.0


@kernel(_i8(wk.STORE, FOLDED, SCRATCH, OWN, _i8ss, _i8, _i8, _i8, _i8), borrows=True)
def forget_all(store, folds, scratch, own, going, visits, patience, worker, workers):
    """Count visits without weight, and let planes go that had too many; ``going`` lists the blocks that have such."""
    count = len(own.ends)
    for s in range(worker, count, workers):
        n = 0
        for block in range(len(store.held)):
            if owner_of(block, count) == s and _count_idle(store, block, visits, patience):
                going[s, n] = block
                n += 1
        mine, place = own_store(store, own, s), own.place[s]
        for i in range(n):
            if i + 1 < n:
                _announce(store, folds, going[s, i + 1], s)
            block = going[s, i]
            held = store.held[block]
            for p in range(held):
                place[p] = p
            for p in range(held - 1, -1, -1):
                plane = store.slots[block, p]
                if store.alpha[plane] <= 0.0 and store.idle[plane] > patience:
                    place[p] = place[store.held[block] - 1]
                    wk.remove(mine, block, p)
            if folds.block[block, fk.PLANES] == held:
                fk.keep_planes(store, block, folds, scratch, s, place)
    return 0


@kernel(types.void(wk.STORE, OWN, _i8), borrows=True)
def give_back(store, own, rows):
    """Let the working set have what strands that were given so many unused planes each have left, and their changes.

    All in one call, which an interrupt cannot split.
    """
    store.size[wk.FREE] -= rows * len(own.size)
    for s in range(len(own.size)):
        first, more = store.size[wk.FREE], own.size[s, wk.FREE]
        for i in range(more):
            store.free[first + i] = own.free[s, i]
        store.size[wk.FREE] = first + more
        store.size[wk.POOL_END] = max(store.size[wk.POOL_END], own.size[s, wk.POOL_END])
        for number in (wk.POOL_LIVE, wk.WORSE, wk.STEPS, wk.DUPLICATES):
            store.size[number] += own.size[s, number]


@register_jitable
def _count_idle(store, block, visits, patience):
    """Count visits without weight of the planes of a block; whether one had too many."""
    going = False
    for p in range(store.held[block]):
        plane = store.slots[block, p]
        if store.alpha[plane] <= 0.0:
            store.idle[plane] += visits
            going |= store.idle[plane] > patience
        elif store.idle[plane] > 0:  # else the line of memory stays where it is
            store.idle[plane] = 0
    return going


@kernel(types.void(wk.STORE, _i8s), borrows=True)
def measure(store, largest):
    """The most entries and planes of any block."""
    for block in range(len(store.held)):
        entries = 0
        for p in range(store.held[block]):
            entries += store.length[store.slots[block, p]]
        largest[0], largest[1] = max(largest[0], entries), max(largest[1], store.held[block])


@kernel(_i8(_i8s, _i8s, _i4s, _i4s, _i4s, _i8), borrows=True)
def count_columns(begin, end, index, number, column, n):
    """Count columns: those of a plane lie from ``begin`` to ``end``.

    A count of k is written as the number ``-1 - k``. New ones are listed in ``column``; returns how many there are now.
    """
    for i in range(len(begin)):
        for e in range(begin[i], end[i]):
            prefetch_entry(number, np.int64(index[min(e + fk.PREFETCHED, len(index) - 1)]))
            c = np.uint32(index[e])
            if number[c] == -1:
                column[n] = c
                n += 1
            number[c] -= 1
    return n
