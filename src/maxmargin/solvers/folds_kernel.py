"""Compiled folding of blocks: columns that all planes of a block treat alike count as one.

The planes of an example differ from the truth in the same places, so most columns of a block have equal entries in all
of its planes. Such columns are a *fold*. With ``s_f = sum_{c in f} u_c``, inner products are

    w . a_p = sum_f v_pf s_f

where ``v_pf`` is the entry that all columns of the fold have in plane p, and a step changes all of them by the same
number. A visit (:mod:`~maxmargin.solvers.folded_kernel`) reads each column of u once, in place of once for each plane.
Columns are numbered anew by how many blocks have them, so those in use lie side by side.

The folds of a block depend on its planes and on their order only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.prefetch_kernel import prefetch_entry
from maxmargin.solvers import working_set_kernel as wk


class Folds(NamedTuple):
    """Folded blocks. Whole numbers of a block lie side by side from ``block[b, BEGIN]`` on, floats from FLOATS on."""

    block: np.ndarray  # int64 (blocks, 8): where and how many, below
    ints: np.ndarray  # int32 (strands, room): columns by fold, ends of folds, ends of planes, folds of entries
    floats: np.ndarray  # float64 (strands, room): origin (2), b, alpha, alpha before, Gram matrix, entries
    end: np.ndarray  # int64 (strands, APART): how much of ints, floats and fresh is in use
    number: np.ndarray  # int32 (columns,): number of a column, or -1
    column: np.ndarray  # int32 (columns,): column of a number
    fresh: np.ndarray  # int32 (strands, room): where ints has columns without a number


class Scratch(NamedTuple):
    """What folding needs, a row for each strand."""

    table: np.ndarray  # int32 (strands, 2^bits): zeros; more than the entries of a block
    column: np.ndarray  # int32 (strands, room): those of a block, old ones first; ~c for a column c without a number
    at: np.ndarray  # int32 (strands, room): node of each, see _refine; then fold
    parent: np.ndarray  # int32 (strands, room)
    child: np.ndarray  # int32 (strands, room)
    sibling: np.ndarray  # int32 (strands, room)
    plane: np.ndarray  # int32 (strands, room)
    seen: np.ndarray  # int32 (strands, room)
    fold: np.ndarray  # int32 (strands, room)
    width: np.ndarray  # int32 (strands, room): columns of each fold
    ints: np.ndarray  # int32 (strands, room): what a block had before
    entry: np.ndarray  # float64 (strands, room)
    floats: np.ndarray  # float64 (strands, room)


BEGIN, FLOATS, PLANES, COLUMNS, FOLDS, ENTRIES, INT_ROOM, FLOAT_ROOM = range(8)  # PLANES is -1 for a block not folded
FRESH = 2  # behind the ends of ints and floats
PREFETCHED = 24  # that many columns ahead their numbers are prefetched
APART = 8  # numbers that different strands write are so far apart

_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]
_i4ss, _i8ss, _f8ss = types.int32[:, ::1], types.int64[:, ::1], types.float64[:, ::1]
_i8, _f8 = types.int64, types.float64
FOLDED = record(Folds, _i8ss, _i4ss, _f8ss, _i8ss, _i4s, _i4s, _i4ss)
SCRATCH = record(Scratch, *[_i4ss] * 11, _f8ss, _f8ss)


def folds(strands: int, blocks: int, columns: int, room: int) -> Folds:
    """Of blocks none of which is folded, with so much room for each strand."""
    made = Folds(
        np.zeros((blocks, 8), np.int64), np.empty((strands, room), np.int32), np.empty((strands, room)),
        np.zeros((strands, APART), np.int64), np.full(columns, -1, np.int32), np.empty(columns, np.int32),
        np.empty((strands, room), np.int32),
    )  # fmt: skip
    made.block[:, PLANES] = -1
    return made


def scratch(strands: int, room: int) -> Scratch:
    """For blocks of so many entries."""
    table = np.zeros((strands, 2 << max(5, room.bit_length())), np.int32)
    ints = [np.empty((strands, room), np.int32) for _ in range(len(Scratch._fields) - 3)]
    return Scratch._make([table, *ints, np.empty((strands, room)), np.empty((strands, room))])


@register_jitable
def _slot(column, mask):
    """Where the search for a column in a hash table begins (Knuth's multiplicative hashing)."""
    return np.uint32((np.uint32(column) * np.uint32(2654435761)) >> np.uint32(9)) & mask


@register_jitable
def _refine(store, block, folds, scratch, s, old):
    """Sort columns by what planes from ``old`` on do with them. Returns the number of columns and of nodes.

    Columns of a node have had the same entries in the planes so far. There is a node for each fold of the planes before
    and one for new columns; then plane after plane columns with other entries part. A node knows its plane, its entry
    there, and its parent, which knows the planes before.
    """
    table, column, at = scratch.table[s], scratch.column[s], scratch.at[s]
    parent, child, sibling = scratch.parent[s], scratch.child[s], scratch.sibling[s]
    of_plane, seen, entry, keys = scratch.plane[s], scratch.seen[s], scratch.entry[s], scratch.fold[s]
    own, ints = folds.block[block], folds.ints[s]
    columns, n_folds = (own[COLUMNS], own[FOLDS]) if old > 0 else (0, 0)
    total = columns
    for p in range(old, store.held[block]):
        total += store.length[store.slots[block, p]]
    bits = 5
    while (1 << bits) <= 2 * total:  # few collisions
        bits += 1
    mask = np.uint32((1 << bits) - 1)
    begin = own[BEGIN]
    i = 0
    for f in range(n_folds):
        end = ints[begin + columns + f]
        while i < end:
            column[i], at[i] = ints[begin + i], f
            slot = _slot(column[i], mask)
            while table[slot] != 0:
                slot = (slot + np.uint32(1)) & mask
            i += 1
            table[slot] = i
    new = n_folds
    nodes = n_folds + 1
    for node in range(nodes):
        seen[node] = parent[node] = -1
    for p in range(old, store.held[block]):
        plane = store.slots[block, p]
        begin, length = store.start[plane], store.length[plane]
        for e in range(length):  # in a loop without branches, since these numbers are far apart in memory
            c = store.columns[begin + e]
            number = folds.number[np.uint32(c)]
            keys[e] = number ^ ((number >> 31) & (number ^ ~c))  # ~c for a number of -1
        for e in range(length):
            key, x = keys[e], store.entries[begin + e]
            slot = _slot(key, mask)
            held = table[slot]
            while held != 0 and column[np.uint32(held - 1)] != key:
                slot = (slot + np.uint32(1)) & mask
                held = table[slot]
            if held == 0:
                column[columns], at[columns] = key, new
                columns += 1
                table[slot] = held = columns
            place = np.uint32(held - 1)
            node = np.uint32(at[place])
            if seen[node] != p:  # what it has from planes before is over
                seen[node], child[node] = p, -1
            to = child[node]
            while to >= 0 and entry[np.uint32(to)] != x:
                to = sibling[np.uint32(to)]
            if to < 0:
                to = nodes
                nodes += 1
                parent[to], of_plane[to], entry[to], seen[to] = node, p, x, -1
                sibling[to], child[node] = child[node], to
            at[place] = to
    for slot in range(1 << bits):
        table[slot] = 0
    return columns, nodes


@register_jitable
def _keep(folds, block, scratch, s, old):
    """Copy the entries of the planes before, as they were; returns how many folds there were."""
    if old == 0:
        return 0
    own, ints, floats = folds.block[block], folds.ints[s], folds.floats[s]
    ends = own[BEGIN] + own[COLUMNS] + own[FOLDS]
    for i in range(old + own[ENTRIES]):
        scratch.ints[s, i] = ints[ends + i]
    values = own[FLOATS] + 2 + old * (old + 3)
    for i in range(own[ENTRIES]):
        scratch.floats[s, i] = floats[values + i]
    return own[FOLDS]


@register_jitable
def _room_for(folds, block, s, need, need_floats):
    """Room for a block, where it is or at the end; False when there is none."""
    own, end = folds.block[block], folds.end[s]
    if need > own[INT_ROOM] or need_floats > own[FLOAT_ROOM]:
        room, room_floats = need + need // 2, need_floats + need_floats // 2
        if end[0] + room > folds.ints.shape[1] or end[1] + room_floats > folds.floats.shape[1]:
            return False
        own[BEGIN], own[FLOATS], own[INT_ROOM], own[FLOAT_ROOM] = end[0], end[1], room, room_floats
        end[0] += room
        end[1] += room_floats
    return True


@register_jitable
def has_room(folds, s, need, need_floats):
    """Whether that is free behind the blocks of a strand, and the reserve of a block too."""
    end = folds.end[s]
    more, more_floats = need + need // 2, need_floats + need_floats // 2
    if end[FRESH] + need > folds.fresh.shape[1]:
        return False
    return end[0] + more <= folds.ints.shape[1] and end[1] + more_floats <= folds.floats.shape[1]


@kernel(_i8(wk.STORE, _i8, FOLDED, SCRATCH, _i8, _i8), borrows=True)
def fold(store, block, folds, scratch, s, fresh):
    """Fold the planes that have joined a block since it was folded; returns 0 when there is no room.

    The last ``fresh`` planes have no Gram rows in the store yet and get them. New columns have no number yet.
    O(entries of the new planes + columns + planes x folds).
    """
    own, ints, floats, end = folds.block[block], folds.ints[s], folds.floats[s], folds.end[s]
    planes, old = np.int64(store.held[block]), max(own[PLANES], 0)
    before = _keep(folds, block, scratch, s, old)
    columns, nodes = _refine(store, block, folds, scratch, s, old)
    at, parent, of_plane = scratch.at[s], scratch.parent[s], scratch.plane[s]
    name, count, first = scratch.fold[s], scratch.width[s], scratch.seen[s]
    ids_before, values_before, entry = scratch.ints[s], scratch.floats[s], scratch.entry[s]
    for node in range(nodes):
        name[node] = -1
    n_folds = 0
    for i in range(columns):  # folds are numbered by their first columns
        node = at[i]
        if name[node] < 0:
            name[node], count[n_folds], first[n_folds] = n_folds, 0, node
            n_folds += 1
        at[i] = name[node]
        count[at[i]] += 1
    head, following = scratch.child[s], scratch.sibling[s]  # new folds of each fold before
    for f in range(before):
        head[f] = -1
    entries = 0
    for f in range(n_folds - 1, -1, -1):
        node = first[f]
        while node > before:
            entries += 1
            node = parent[node]
        if node < before:
            following[f], head[node] = head[node], f
    for e in range(old, old + (own[ENTRIES] if old > 0 else 0)):
        f = head[ids_before[e]]
        while f >= 0:
            entries += 1
            f = following[f]
    need, need_floats = columns + n_folds + planes + entries, 2 + planes * (planes + 3) + entries
    if end[FRESH] + columns > folds.fresh.shape[1] or not _room_for(folds, block, s, need, need_floats):
        return 0
    own[PLANES], own[COLUMNS], own[FOLDS], own[ENTRIES] = planes, columns, n_folds, entries
    first_column = own[BEGIN]
    fold_ends = first_column + columns
    ends = fold_ends + n_folds
    ids = ends + planes
    values = own[FLOATS] + 2 + planes * (planes + 3)
    place = np.int64(0)
    for f in range(n_folds):
        ints[fold_ends + f], place = place, place + count[f]
    for i in range(columns):
        f = fold_ends + at[i]
        key, c = scratch.column[s, i], first_column + ints[f]
        ints[c] = key
        ints[f] += 1
        if key < 0:
            folds.fresh[s, end[FRESH]] = c
            end[FRESH] += 1
    place, e = np.int64(0), old
    for p in range(old):
        while e < old + ids_before[p]:
            f = head[ids_before[e]]
            while f >= 0:
                ints[ids + place], floats[values + place] = f, values_before[e - old]
                place += 1
                f = following[f]
            e += 1
        ints[ends + p] = place
    for p in range(old, planes):
        ints[ends + p] = 0
    for f in range(n_folds):
        node = first[f]
        while node > before:
            ints[ends + of_plane[node]] += 1
            node = parent[node]
    for p in range(old, planes):
        ints[ends + p], place = place, place + ints[ends + p]
    for f in range(n_folds):
        node = first[f]
        while node > before:
            e = ends + of_plane[node]
            ints[ids + ints[e]], floats[values + ints[e]] = f, entry[node]
            ints[e] += 1
            node = parent[node]
    _fill(store, block, own, ints, floats, scratch.floats[s], fresh)
    return 1


@register_jitable
def _fill(store, block, own, ints, floats, dense, fresh):
    """The numbers of a folded block that the store has; Gram rows of the last planes are computed, for both."""
    planes, n_folds, begin = own[PLANES], own[FOLDS], own[FLOATS]
    fold_ends = own[BEGIN] + own[COLUMNS]
    ends = fold_ends + n_folds
    ids, b = ends + planes, begin + 2
    gram = b + 3 * planes
    values = gram + planes * planes
    floats[begin] = store.origin[block]
    for p in range(planes):
        plane = store.slots[block, p]
        floats[b + p], floats[b + planes + p] = store.b[plane], store.alpha[plane]
        for q in range(min(p + 1, planes - fresh)):
            floats[gram + p * planes + q] = floats[gram + q * planes + p] = store.gram[plane, q]
    for f in range(n_folds):
        dense[f] = 0.0
    for p in range(planes - fresh, planes):
        plane = store.slots[block, p]
        begin_p = ints[ends + p - 1] if p > 0 else 0
        for e in range(begin_p, ints[ends + p]):
            f = ints[ids + e]
            size = ints[fold_ends + f] - (ints[fold_ends + f - 1] if f > 0 else 0)
            dense[f] = size * floats[values + e]
        e = 0
        for q in range(p + 1):
            dot = 0.0
            while e < ints[ends + q]:
                dot += floats[values + e] * dense[ints[ids + e]]
                e += 1
            floats[gram + p * planes + q] = floats[gram + q * planes + p] = dot
            store.gram[plane, q] = store.gram[store.slots[block, q], p] = dot
        for e in range(begin_p, ints[ends + p]):
            dense[ints[ids + e]] = 0.0


@kernel(types.void(wk.STORE, _i8, FOLDED, SCRATCH, _i8, _i4s), borrows=True)
def keep_planes(store, block, folds, scratch, s, kept):
    """Let a folded block follow the store, where planes have left it: ``kept`` are the places that the others had."""
    own, ints, floats = folds.block[block], folds.ints[s], folds.floats[s]
    old, planes = own[PLANES], np.int64(store.held[block])
    _keep(folds, block, scratch, s, old)
    ids_before, values_before, name = scratch.ints[s], scratch.floats[s], scratch.fold[s]
    _drop_columns(own, ints, ids_before, kept[:planes], scratch.width[s], scratch.child[s], name)
    ends = own[BEGIN] + own[COLUMNS] + own[FOLDS]
    ids = ends + planes
    values = own[FLOATS] + 2 + planes * (planes + 3)
    place = np.int64(0)
    for p in range(planes):
        for e in range(old + (ids_before[kept[p] - 1] if kept[p] > 0 else 0), old + ids_before[kept[p]]):
            ints[ids + place], floats[values + place] = name[ids_before[e]], values_before[e - old]
            place += 1
        ints[ends + p] = place
    own[PLANES], own[ENTRIES] = planes, place
    _fill(store, block, own, ints, floats, scratch.floats[s], 0)


@register_jitable
def _drop_columns(own, ints, ids_before, kept, used, ends, name):
    """Let columns go that none of the planes at hand has; ``name`` receives the new numbers of their folds."""
    old, n_folds, begin = own[PLANES], own[FOLDS], own[BEGIN]
    for f in range(n_folds):
        used[f], ends[f] = 0, ints[begin + own[COLUMNS] + f]
    for p in range(len(kept)):
        for e in range(old + (ids_before[kept[p] - 1] if kept[p] > 0 else 0), old + ids_before[kept[p]]):
            used[ids_before[e]] = 1
    left, folds_left, i = np.int64(0), np.int64(0), 0
    for f in range(n_folds):
        if used[f]:
            for c in range(i, ends[f]):
                ints[begin + left] = ints[begin + c]
                left += 1
        i, name[f] = ends[f], folds_left
        if used[f]:
            ends[folds_left] = left
            folds_left += 1
    for f in range(folds_left):
        ints[begin + left + f] = ends[f]
    own[COLUMNS], own[FOLDS] = left, folds_left


@kernel(_i8(FOLDED, _i8), borrows=True)
def number_columns(folds, n):
    """Give numbers from ``n`` on to the columns that have none; returns the next number."""
    for s in range(len(folds.end)):
        ints, fresh, end = folds.ints[s], folds.fresh[s], folds.end[s]
        for i in range(end[FRESH]):
            if i + PREFETCHED < end[FRESH]:
                later = ints[fresh[i + PREFETCHED]]
                prefetch_entry(folds.number, np.int64(later if later >= 0 else ~later))
            c = ~ints[fresh[i]]
            if c >= 0:  # else folded again since
                if folds.number[c] < 0:
                    folds.number[c], folds.column[n] = n, c
                    n += 1
                ints[fresh[i]] = folds.number[c]
        end[FRESH] = 0
    return n
