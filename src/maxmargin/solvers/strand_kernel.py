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
from maxmargin.prefetch_kernel import prefetch_much
from maxmargin.solvers import words_kernel as vk
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.visit_kernel import is_wanted, look
from maxmargin.solvers.words_kernel import SUMS, WORDS
from maxmargin.team_kernel import wait_for_all

LINES = 4  # bits: so many blocks in a row belong to one strand, so that strands write no line of memory in turn
FITS, STORE_FULL, TOO_LARGE = range(3)  # whether new planes find room, and their entries fit into packed words
# of a strand: rows or blocks it has seen, its own and others'; what was short; the most planes of a block, and entries
# of new ones; examples whose planes have been asked for and have not all joined, and the first row of those that have
# not; planes with columns that have no number
DONE, SHORT, ENTRIES, PLANES, WAITING, ROW, FRESH = range(7)
BESIDE = 100  # what a visit costs beside the entries of its block, in entries
STRIP = 1024  # columns that strands agree on at a time, which stay in the nearest cache meanwhile


class Own(NamedTuple):
    """What a strand has of the working set while planes come and go; a row for each."""

    free: np.ndarray  # int32 (strands, planes): unused planes
    size: np.ndarray  # int64 (strands, APART): as those of the store
    ends: np.ndarray  # int64 (strands,): where the part of the pool ends that a strand may fill
    done: np.ndarray  # int64 (strands, APART): DONE to FRESH
    fresh: np.ndarray  # int64 (strands, planes): first entries without a number, of planes that have such


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
OWN = record(Own, _i4ss, _i8ss, _i8s, _i8ss, _i8ss)
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
def _announce(store, words, block):
    """Let memory fetch a block that new planes will join soon."""
    width = store.gram.shape[1]
    for p in range(store.held[block]):
        plane = np.int64(store.slots[block, p])
        begin, end = store.start[plane], store.start[plane] + store.length[plane]
        if end - begin > wk.ANNOUNCED:
            return
        prefetch_much(words.word, begin, end)
        prefetch_much(store.columns, begin, end)
        prefetch_much(store.entries, begin, end)
        prefetch_much(store.gram, plane * width, plane * width + store.held[block])


@register_jitable
def _has_room(store, mine, words, block, row, end, rows, done):
    """Whether new planes find room in their block and in the part of the pool that a strand has, and fit into words."""
    first, last = rows.indptr[row], rows.indptr[end]
    planes, short = store.held[block] + end - row, FITS
    full = mine.size[wk.FREE] <= end - row or mine.size[wk.POOL_END] + last - first > len(mine.columns)
    if full or planes >= store.slots.shape[1]:
        short = STORE_FULL
    elif words.mask[0] == vk.PACKED and not vk.is_small_and_whole(rows.values[first:last]):
        short = TOO_LARGE
    done[SHORT], done[ENTRIES], done[PLANES] = short, max(done[ENTRIES], last - first), max(done[PLANES], planes)
    return short == FITS


@register_jitable
def _join(store, mine, block, row, end, rows, weight, lift, u, words, mirror, own, sums, visit, s):
    """Let the planes from ``row`` to ``end`` join their block, unless none of them can help, and make their words.

    All columns of the block have numbers, since one is joined at most once per call.
    """
    g, done = sums.g[s], own.done[s]
    vk.gradients(store, words, block, mirror, g)
    violation, best, scale = look(mine, block, row, rows, weight, lift, u, g)
    if is_wanted(violation, best, scale):
        for new in range(row, end):
            first, last = rows.indptr[new], rows.indptr[new + 1]
            index, value, begin = rows.indices[first:last], rows.values[first:last], mine.size[wk.POOL_END]
            at = wk.insert(mine, block, index, value, rows.b[new], sums.table[s], visit.bits, sums.dense[s])
            if at >= 0:
                fresh = vk.write(mine, words, begin, mine.size[wk.POOL_END])
                if fresh >= 0:
                    own.fresh[s, done[FRESH]] = fresh
                    done[FRESH] += 1
    elif violation < best - 1e-9 * scale:
        mine.size[wk.WORSE] += 1


@kernel(_i8(wk.STORE, _i8s, ROWS, _f8s, _f8s, _f8s, WORDS, MIRRORS, SUMS, OWN, wk.VISIT, _i8, _i8), borrows=True)
def bring_in(store, blocks, rows, weight, lift, u, words, mirrors, sums, own, visit, worker, workers):
    """Bring new planes into their blocks and words, each strand those of its own; nothing is solved.

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
                    _announce(store, words, blocks[end])
                enough = _has_room(store, mine, words, block, row, end, rows, done)
                if enough:
                    _join(store, mine, block, row, end, rows, weight, lift, u, words, mirrors.u[s], own, sums, visit, s)
            row = end if enough else row
        done[DONE] = row
    return 0


@kernel(
    _i8(
        BATCH_FUNCTION, SEARCH_FUNCTION, PLANE_FUNCTION, PACK, ROWS, _i8s, _i8, _i8, wk.STORE, _i8s, _f8s, _f8s, _f8s,
        _f8s, WORDS, MIRRORS, SUMS, OWN, wk.VISIT, _i8,
    ),
    borrows=True,
)  # fmt: skip
def ask_and_bring_in(
    planes_batch, search, plane, pack, rows, part, first, emit, store, blocks, w, weight, lift, u, words, mirrors,
    sums, own, visit, s,
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
            _announce(store, words, part[0] - first)
            planes_batch(search, plane, pack, w, part[:n], 0, emit, rows)
            row = 0
        while enough and rows.example[row] >= 0:
            i, end = rows.example[row], row + 1
            while rows.example[end] == i:
                end += 1
            block = part[i] - first
            if i + 1 < n:
                _announce(store, words, part[i + 1] - first)
            enough = _has_room(store, mine, words, block, row, end, rows, done)
            if enough:
                _join(store, mine, block, row, end, rows, weight, lift, u, words, mirrors.u[s], own, sums, visit, s)
                row = end
        n = 0 if enough else n
    done[DONE], done[WAITING], done[ROW] = at, n, row
    return 0


@kernel(_i8(wk.STORE, WORDS, _i8ss, _i8ss, _i8, _i8), borrows=True)
def write_all(store, words, fresh, done, worker, workers):
    """Make the words of all planes, each strand those of its own; ``fresh`` and ``done`` as in :class:`Own`."""
    count = len(done)
    for s in range(worker, count, workers):
        for block in range(len(store.held)):
            if owner_of(block, count) == s:
                for p in range(store.held[block]):
                    plane = store.slots[block, p]
                    first = vk.write(store, words, store.start[plane], store.start[plane] + store.length[plane])
                    if first >= 0:
                        fresh[s, done[s, FRESH]] = first
                        done[s, FRESH] += 1
    return 0


@kernel(types.void(_i4s, _f8ss, _f8s, _f8s, _i8, _i8), borrows=True)
def mirror(column, mirrors, base, u, begin, end):
    """Let all mirrors have some columns of u."""
    for c in range(begin, end):
        base[c] = u[np.uint32(column[c])]
    for own in mirrors:
        for c in range(begin, end):
            own[c] = base[c]


@kernel(_i8(WORDS, MIRRORS, _f8s, _i8, _i8, _i8), borrows=True)
def load_all(words, mirrors, u, n, worker, workers):
    """Take over columns of u."""
    count = len(mirrors.u)
    for s in range(worker, count, workers):
        mirror(words.column, mirrors.u, mirrors.base, u, s * n // count, (s + 1) * n // count)
    return 0


@kernel(_i8(WORDS, MIRRORS, _f8s, _i8, _i8, _i8), borrows=True)
def unload_all(words, mirrors, u, n, worker, workers):
    """Give columns of u back; strands must have agreed on all."""
    count = len(mirrors.u)
    for s in range(worker, count, workers):
        for c in range(s * n // count, (s + 1) * n // count):
            u[np.uint32(words.column[c])] = mirrors.u[0, c]
    return 0


@kernel(types.void(wk.STORE, _i8s, WORDS, MIRRORS, _f8s), borrows=True)
def unload(store, blocks, words, mirrors, u):
    """The same for the columns of some blocks, where no others have been visited."""
    for block in blocks:
        for p in range(store.held[block]):
            plane = store.slots[block, p]
            for e in range(store.start[plane], store.start[plane] + store.length[plane]):
                u[np.uint32(store.columns[e])] = mirrors.u[0, np.uint32(words.word[e] & words.mask[0])]


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


@kernel(types.void(wk.STORE, _i8s, _i8, _i8, _i8s, _i8s, _i8s), borrows=True)
def deal(store, blocks, s, count, order, done, cuts):
    """Pick the blocks of a strand that have planes, and cut them into rounds of about the same work.

    ``done`` receives the work up to each of them.
    """
    n, work, t, last = 0, 0, 1, len(cuts) - 1
    for block in blocks:
        if owner_of(block, count) == s and store.held[block] > 0:
            order[n], done[n] = block, work
            for p in range(store.held[block]):
                work += store.length[store.slots[block, p]]
            work += BESIDE
            n += 1
    cuts[0] = 0
    for i in range(n):
        while t < last and done[i] * last >= t * work:
            cuts[t] = i
            t += 1
    for round in range(t, last + 1):
        cuts[round] = n


@kernel(_i8(wk.STORE, _i8s, _i8ss, _i8ss, _i8ss, WORDS, MIRRORS, wk.VISIT, SUMS, _i8, _i8, _i8), borrows=True)
def revisit_rounds(store, blocks, order, work, cuts, words, mirrors, visit, sums, n, worker, workers):
    """A pass over blocks: in round t strand s visits those in ``order[s, cuts[s, t] : cuts[s, t + 1]]``.

    ``n`` is the number of columns in use; on these the strands agree in the end.
    """
    waits, rounds = 0, cuts.shape[1] - 1
    for s in range(worker, len(order), workers):
        deal(store, blocks, s, len(order), order[s], work[s], cuts[s])
    for t in range(rounds):
        for s in range(worker, len(order), workers):
            dealt = order[s, : cuts[s, rounds]]
            vk.visit_words(store, words, dealt, cuts[s, t], cuts[s, t + 1], mirrors.u[s], visit, sums, s)
        due = 0
        for level in range(len(mirrors.sizes)):
            if (t + 1) % mirrors.every[level] == 0:
                due = max(due, mirrors.sizes[level])
        due = n if t + 1 == rounds else due
        if due > 0:
            waits = _agree_on(mirrors, due, worker, workers, waits)
    return 0


@kernel(_f8(wk.STORE, WORDS, SUMS, _f8s, _f8ss, _i8, _i8), borrows=True)
def aim_all(store, words, sums, target, changes, worker, workers):
    """The aim of a jump, each strand for its own blocks: ``changes`` (strands, columns) of u, by number, and LINEAR."""
    count = len(changes)
    for s in range(worker, count, workers):
        for first in range(s << LINES, len(store.held), count << LINES):
            for block in range(first, min(first + (1 << LINES), len(store.held))):
                sums.gain[s, vk.LINEAR] += vk.aim_words(store, words, block, target, changes[s])
    return 0.0


@kernel(_i8(wk.STORE, OWN, _i8, _i8, _i8, _i8), borrows=True)
def forget_all(store, own, visits, patience, worker, workers):
    """Count visits without weight, and let planes go that had too many."""
    count = len(own.ends)
    for s in range(worker, count, workers):
        mine = own_store(store, own, s)
        for block in range(len(store.held)):
            if owner_of(block, count) == s and _count_idle(store, block, visits) > patience:
                for p in range(store.held[block] - 1, -1, -1):
                    plane = store.slots[block, p]
                    if store.alpha[plane] <= 0.0 and store.idle[plane] > patience:
                        wk.remove(mine, block, p)
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
def _count_idle(store, block, visits):
    """Count visits without weight of the planes of a block; the most that one of them has."""
    most = 0
    for p in range(store.held[block]):
        plane = store.slots[block, p]
        if store.alpha[plane] <= 0.0:
            store.idle[plane] += visits
            most = max(most, store.idle[plane])
        elif store.idle[plane] > 0:  # else the line of memory stays where it is
            store.idle[plane] = 0
    return most
