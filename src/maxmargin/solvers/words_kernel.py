"""Compiled visits of strands: planes in words, at a short copy of u.

Columns are numbered by how many blocks have them, so those in use lie side by side. Beside each entry of the pool is a
word. In the *packed* form it holds the entry, a small whole number, above the number of its column
(:mod:`~maxmargin.solvers.packed_kernel`); in the other form, for entries that are not whole or columns that are too
many, it is the number alone. Both forms do the same sums in the same order.

A strand makes the words of its own planes. Columns that have no number yet get one between two calls: the strand lists
the first such entry of each plane, whose word says how far it is to the next one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.planes_kernel import sparse_add, sparse_dot
from maxmargin.prefetch_kernel import prefetch_entry
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.extrapolation_kernel import pull
from maxmargin.solvers.masters.smo_kernel import move_pairs
from maxmargin.solvers.packed_kernel import BITS, FETCHED_AHEAD, LARGEST, announce, packed_add, packed_dot


class Words(NamedTuple):
    """The pool of a working set in words."""

    word: np.ndarray  # int32 (pool,)
    number: np.ndarray  # int32 (columns,): number of a column, or -1
    column: np.ndarray  # int32 (columns,): column of a number
    mask: np.ndarray  # int64 (1,): the part of a word that is the number, PACKED or PLAIN


class Sums(NamedTuple):
    """Scratch of visits, a row for each strand, and what they have gained."""

    table: np.ndarray  # int32 (strands, 2^bits): zeros, for Gram rows; see working_set_kernel.Visit
    dense: np.ndarray  # float64 (strands, columns): zeros, where planes are too long for tables
    g: np.ndarray  # float64 (strands, width)
    change: np.ndarray  # float64 (strands, width)
    gain: np.ndarray  # float64 (strands, APART): GAIN and LINEAR
    size: np.ndarray  # int64 (strands, APART): as those of the store
    before: np.ndarray  # float64 (strands, room): multipliers before visits, each block's behind that of its origin
    noted: np.ndarray  # int64 (strands, APART): how many these are


MOST = 1 << BITS  # columns that packed words can number
PACKED, PLAIN = MOST - 1, -1
GAIN, LINEAR = range(2)
APART = 8  # numbers that different strands write are so far apart

_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]
_i4ss, _i8ss, _f8ss = types.int32[:, ::1], types.int64[:, ::1], types.float64[:, ::1]
_i8, _f8 = types.int64, types.float64
WORDS = record(Words, _i4s, _i4s, _i4s, _i8s)
SUMS = record(Sums, _i4ss, _f8ss, _f8ss, _f8ss, _f8ss, _i8ss, _f8ss, _i8ss)


def no_words(columns: int) -> Words:
    """Words of an empty pool."""
    return Words(np.zeros(0, np.int32), np.full(columns, -1, np.int32), np.empty(columns, np.int32), np.full(1, PACKED))


def sums(strands: int, room: int, bits: int, width: int, columns: int) -> Sums:
    """For so many blocks and planes together."""
    wide, apart = np.empty((strands, width)), (strands, APART)
    return Sums(
        np.zeros((strands, 1 << bits), np.int32), np.zeros((strands, columns)), wide, wide.copy(), np.zeros(apart),
        np.zeros(apart, np.int64), np.empty((strands, room)), np.zeros(apart, np.int64),
    )  # fmt: skip


@kernel(types.boolean(_f8s), borrows=True)
def is_small_and_whole(entries):
    """Whether entries fit into packed words."""
    misfits = 0
    for entry in entries:
        whole = np.int32(entry) if abs(entry) <= LARGEST else np.int32(0)
        misfits += whole != entry
    return misfits == 0


@kernel(_i8(wk.STORE, WORDS, _i8, _i8), borrows=True)
def write(store, words, begin, end):
    """Make the words of a plane; returns the first of its entries whose column has no number, or -1."""
    first, last, packed = -1, -1, words.mask[0] == PACKED
    for e in range(begin, end):
        number = words.number[np.uint32(store.columns[e])]
        if number < 0:
            if last >= 0:
                words.word[last] = e - last
            else:
                first = e
            last, number = e, 0
        words.word[e] = (np.int32(store.entries[e]) << BITS) | number if packed else number
    if last >= 0:
        words.word[last] = 0
    return first


@kernel(_i8(wk.STORE, WORDS, _i8s, _i8), borrows=True)
def number_columns(store, words, fresh, n):
    """Give numbers from ``n`` on to columns that have none, in planes that ``fresh`` lists; returns the next number.

    Where that is more than packed words can number, they have to be made again.
    """
    packed = words.mask[0] == PACKED
    for k in range(len(fresh)):
        if k + 8 < len(fresh):
            prefetch_entry(words.word, fresh[k + 8])
            prefetch_entry(store.columns, fresh[k + 8])
            prefetch_entry(store.entries, fresh[k + 8])
        if k + 4 < len(fresh):
            prefetch_entry(words.number, np.int64(store.columns[fresh[k + 4]]))
        e, more = fresh[k], 1
        while more:
            more, c = words.word[e], np.uint32(store.columns[e])
            if words.number[c] < 0:
                words.number[c], words.column[n] = n, store.columns[e]
                n += 1
            number = words.number[c]
            words.word[e] = (np.int32(store.entries[e]) << BITS) | number if packed else number
            e += more
    return n


@register_jitable
def _dot(store, words, u, plane):
    begin, end = store.start[plane], store.start[plane] + store.length[plane]
    if words.mask[0] == PACKED:
        return packed_dot(u, words.word[begin:end])
    return sparse_dot(u, words.word[begin:end], store.entries[begin:end])


@register_jitable
def _add(store, words, u, plane, scale):
    begin, end = store.start[plane], store.start[plane] + store.length[plane]
    if words.mask[0] == PACKED:
        packed_add(u, words.word[begin:end], scale)
    else:
        sparse_add(u, words.word[begin:end], store.entries[begin:end], scale)


@register_jitable
def gradients(store, words, block, u, g):
    """``g[p] = b_p - u . a_p`` for the planes of a block."""
    for p in range(store.held[block]):
        plane = store.slots[block, p]
        g[p] = store.b[plane] - _dot(store, words, u, plane)


@kernel(types.void(wk.STORE, WORDS, _i8s, _i8, _i8, _f8s, wk.VISIT, SUMS, _i8), borrows=True)
def visit_words(store, words, blocks, begin, end, u, visit, sums, s):
    """Solve ``blocks[begin:end]`` in turn at u, which follows, by strand s.

    ``sums`` receives what the dual and ``sum alpha b`` gain, and the multipliers before.
    """
    g, change, before, noted = sums.g[s], sums.change[s], sums.before[s], sums.noted[s, 0]
    own = wk.Store(
        store.slots, store.held, store.total, store.origin, store.open, store.gap, store.start, store.length, store.b,
        store.alpha, store.idle, store.iterate, store.gram, store.columns, store.entries, store.free, sums.size[s],
        store.linear, store.mean, store.moment,
    )  # fmt: skip
    for k in range(begin, end):
        announce(store, words, blocks, k)
        block = blocks[k]
        gradients(store, words, block, u, g)
        before[noted] = store.origin[block]
        for p in range(store.held[block]):
            before[noted + 1 + p] = store.alpha[store.slots[block, p]]
        noted += 1 + store.held[block]
        sums.gain[s, GAIN] += move_pairs(own, block, g, change, visit.tau, visit.max_steps, 1.0)
        for p in range(store.held[block]):
            if change[p] != 0.0:
                plane = store.slots[block, p]
                sums.gain[s, LINEAR] += change[p] * store.b[plane]
                _add(store, words, u, plane, change[p])
    sums.noted[s, 0] = noted


@kernel(types.void(wk.STORE, WORDS, _i8s, _f8s, _f8s), borrows=True)
def add_changes(store, words, blocks, before, total):
    """Add to ``total``, by number, what the visits of a pass over blocks have changed in u."""
    at = 0
    for block in blocks:
        for p in range(store.held[block]):
            plane, at = store.slots[block, p], at + 1
            if store.alpha[plane] != before[at]:
                _add(store, words, total, plane, store.alpha[plane] - before[at])
        at += 1


@kernel(_f8(wk.STORE, _i8s, _f8s, _f8), borrows=True)
def take_back(store, blocks, before, share):
    """Keep a share of what they have changed; returns by how much ``sum alpha b`` falls."""
    linear, at = 0.0, 0
    for block in blocks:
        if store.total[block] < np.inf:
            store.origin[block] = before[at] + share * (store.origin[block] - before[at])
        for p in range(store.held[block]):
            plane, at = store.slots[block, p], at + 1
            new = store.alpha[plane]
            store.alpha[plane] = before[at] + share * (new - before[at])
            linear += (new - store.alpha[plane]) * store.b[plane]
        at += 1
    return linear


@kernel(_f8(wk.STORE, WORDS, _i8, _f8s, _f8s), borrows=True)
def aim_words(store, words, block, target, total):
    """As :func:`~maxmargin.solvers.masters.extrapolation_kernel.aim` for a block; ``total`` is by number."""
    if not pull(store, target, block):
        return 0.0
    linear = 0.0
    for p in range(store.held[block]):
        plane = store.slots[block, p]
        step = target[plane] - store.alpha[plane]
        if step != 0.0:
            _add(store, words, total, plane, step)
            linear += step * store.b[plane]
    return linear


@kernel(_i8(_i8s, _i8s, _i4s, _i4s, _i4s, _i8), borrows=True)
def count_columns(begin, end, index, number, column, n):
    """Count columns: those of a plane lie from ``begin`` to ``end``.

    A count of k is written as the number ``-1 - k``. New ones are listed in ``column``; returns how many there are now.
    """
    for i in range(len(begin)):
        for e in range(begin[i], end[i]):
            prefetch_entry(number, np.int64(index[min(e + FETCHED_AHEAD, len(index) - 1)]))
            c = np.uint32(index[e])
            if number[c] == -1:
                column[n] = c
                n += 1
            number[c] -= 1
    return n
