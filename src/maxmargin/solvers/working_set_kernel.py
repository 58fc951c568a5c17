"""Compiled heart of the dual engine: planes kept by block, their Gram entries, and the rules that bound their number.

The dual of every formulation here is, with one block of planes for each example (or group of examples),

    max  sum_p alpha_p b_p - 1/2 |sum_p alpha_p a_p|^2    over   alpha >= 0,  sum_{p in block} alpha_p = total[block]

where the *origin* (the plane (0, 0) of the true output) takes what the planes leave. ``total = inf`` makes the block an
orthant, which is what squared slacks need: the origin's multiplier is unbounded then, and the same code runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.planes_kernel import sparse_add, sparse_dot
from maxmargin.prefetch_kernel import prefetch_much


class Store(NamedTuple):
    """The arrays of a working set. A block holds the planes ``slots[block, :held[block]]``."""

    slots: np.ndarray  # int32 (blocks, width): plane at each position of a block
    held: np.ndarray  # int32 (blocks,)
    total: np.ndarray  # float64 (blocks,): the sum of multipliers, inf for an orthant
    origin: np.ndarray  # float64 (blocks,): multiplier of the origin
    open: np.ndarray  # int8 (blocks,): may the origin gain weight?
    gap: np.ndarray  # float64 (blocks,): block gap when last seen by the oracle
    start: np.ndarray  # int64 (planes,): first non-zero in the pool
    length: np.ndarray  # int32 (planes,)
    b: np.ndarray  # float64 (planes,)
    alpha: np.ndarray  # float64 (planes,)
    idle: np.ndarray  # int32 (planes,): visits since alpha was last positive; negative: so many are not counted
    iterate: np.ndarray  # int8 (planes,): 1 for a stored iterate (S^x), 0 for an extreme point (S^s)
    gram: np.ndarray  # float64 (planes, width): dot products within the block, by position
    columns: np.ndarray  # int32 (pool,)
    entries: np.ndarray  # float64 (pool,)
    free: np.ndarray  # int32 (planes,): stack of unused planes
    size: np.ndarray  # int64 (SIZES,): counters, below
    linear: np.ndarray  # float64 (1,): sum alpha b
    mean: np.ndarray  # float64 (columns,), or empty: running sum of u over the visits, less moment[TOTAL] u
    moment: np.ndarray  # float64 (MOMENTS,): bookkeeping of that sum, below


class Log(NamedTuple):
    """Which columns of u have changed since a log was begun, and what they were before."""

    seen: np.ndarray = np.empty(0, np.uint8)  # a bit for each column; empty: nothing is logged
    columns: np.ndarray = np.empty(0, np.int32)  # (columns,): the changed ones, in order of their first change
    before: np.ndarray = np.empty(0)  # (columns,)
    size: np.ndarray = np.empty(0, np.int64)  # (1,): how many


class Point(NamedTuple):
    """Where a run stands: u, the weights (the same array where R is ``1/2 |w|^2``), and what R* needs beside."""

    u: np.ndarray
    w: np.ndarray
    positive: np.ndarray = np.empty(0, np.int8)  # (columns,): which weights are >= 0; or empty
    starts: np.ndarray = np.empty(0, np.int64)  # (J + 1,): where each table begins; or empty, as all below
    table: np.ndarray = np.empty(0, np.int64)  # (weights,): table of each weight
    fixed: np.ndarray = np.empty(0)  # (weights,): s of the proximal divergence at u = 0
    curving: np.ndarray = np.empty(0)  # (weights,): its second derivative
    threshold: float = 0.0  # w is u less the threshold, towards 0,
    scale: float = 1.0  # times the scale, and cut off below 0 where positive; else how often u counts its changes
    log: Log = Log()


class Visit(NamedTuple):
    """How a block is visited, and scratch for it."""

    limit: int  # most extreme points a block keeps
    rule: int  # what happens when it is full
    keep_origin: int
    tau: float  # gradients may differ by this share of the block's largest cost
    max_steps: int
    patience: int  # visits that a plane without weight survives
    bits: int  # of the hash table; 0 when R is not quadratic: then no Gram entries are kept
    table: np.ndarray
    dense: np.ndarray  # zeros, as long as the weights
    g: np.ndarray
    change: np.ndarray


FREE, POOL_END, POOL_LIVE, WORSE, STEPS, DUPLICATES, MERGES, COMPACTIONS = range(8)
SIZES = 8
RULE, TOTAL, VISITS, LINEAR = range(4)  # rule of averaging, sum of its weights, visits so far, the sum for sum alpha b
MOMENTS = 4
NO_MEAN, UNIFORM, WEIGHTED = 0, 1, 2  # weight of a visit in the average: none, 1, or its number
ITERATE, MERGE = 0, 1  # what happens when a block is full
NO_LIMIT = 1 << 40
ANNOUNCED = 1 << 12  # entries of a block that are fetched ahead of its visit
HASHED = 1 << 15  # planes longer than this are compared through a dense vector instead of a hash table

_i1s, _i4s, _i8s, _f8s = types.int8[::1], types.int32[::1], types.int64[::1], types.float64[::1]
_i8, _f8 = types.int64, types.float64
STORE = record(
    Store, types.int32[:, ::1], _i4s, _f8s, _f8s, _i1s, _f8s, _i8s, _i4s, _f8s, _f8s, _i4s, _i1s,
    types.float64[:, ::1], _i4s, _f8s, _i4s, _i8s, _f8s, _f8s, _f8s,
)  # fmt: skip
LOG = record(Log, types.uint8[::1], _i4s, _f8s, _i8s)
POINT = record(Point, _f8s, _f8s, _i1s, _i8s, _i8s, _f8s, _f8s, _f8, _f8, LOG)
VISIT = record(Visit, _i8, _i8, _i8, _f8, _i8, _i8, _i8, _i4s, _f8s, _f8s, _f8s)
BLOCK_SIGNATURE = _f8(STORE, _i8, POINT, VISIT)  # solves a block from the gradients in visit.g; returns the gain
PASS_SIGNATURE = _f8(STORE, _i8s, POINT, VISIT, _i8)  # visits blocks with the planes they have; returns the gain
PASS_FUNCTION = types.FunctionType(PASS_SIGNATURE)
ROOM_SIGNATURE = _i8(STORE, _i8, _i8, _i8, _i8, _f8s, _f8s)  # restricts a block; returns whether its planes changed
ROOM_FUNCTION = types.FunctionType(ROOM_SIGNATURE)


@kernel(types.void(_f8s, _i4s, LOG), borrows=True)
def note(u, index, log):
    """Note the columns of a sparse vector that is about to be added to u, where a log is kept."""
    if len(log.seen) == 0:
        return
    n = log.size[0]
    for p in range(len(index)):
        c = index[p]
        bit = np.uint8(1 << (c & 7))
        if not log.seen[c >> 3] & bit:
            log.seen[c >> 3] |= bit
            log.columns[n], log.before[n] = c, u[c]
            n += 1
    log.size[0] = n


@kernel(types.void(STORE, _i8, _i8), borrows=True)
def remove(store, block, position):
    """Take a plane out of its block: the last plane moves into its place, in the slots and in the Gram rows."""
    last = store.held[block] - 1
    plane = store.slots[block, position]
    if position != last:
        moved = store.slots[block, last]
        store.slots[block, position] = moved
        for p in range(last):
            q = store.slots[block, p]
            store.gram[q, position] = store.gram[q, last]
        store.gram[moved, position] = store.gram[moved, last]
    store.held[block] = last
    store.size[POOL_LIVE] -= store.length[plane]
    store.free[store.size[FREE]] = plane
    store.size[FREE] += 1


@kernel(types.void(STORE), borrows=True)
def compact(store):
    """Close the holes that removed planes left in the pool, in one walk from its beginning to its end.

    To find planes in the order of the pool without sorting, the first column of each is exchanged for the plane's own
    number, below zero, and waits in ``start`` until the walk comes by (Jonkers 1979).
    """
    for block in range(len(store.held)):
        for p in range(store.held[block]):
            plane = store.slots[block, p]
            if store.length[plane] > 0:
                begin = store.start[plane]
                store.start[plane] = store.columns[begin]
                store.columns[begin] = -1 - plane
    at, end = 0, 0
    while at < store.size[POOL_END]:
        plane = -1 - store.columns[at]
        if plane < 0:
            at += 1
            continue
        store.columns[at], store.start[plane] = store.start[plane], end
        for _ in range(store.length[plane]):
            store.columns[end] = store.columns[at]
            store.entries[end] = store.entries[at]
            at += 1
            end += 1
    store.size[POOL_END] = end
    store.size[POOL_LIVE] = end
    store.size[COMPACTIONS] += 1


@kernel(_i8(STORE, _i8, _i8, _f8, _i8, _i8), borrows=True)
def place(store, block, length, b, iterate, plane):
    """Make ``plane`` (Gram row filled up to position held, entries at the end of the pool) the last of its block."""
    m = store.held[block]
    store.size[FREE] -= 1
    for q in range(m):
        store.gram[store.slots[block, q], m] = store.gram[plane, q]
    store.slots[block, m] = plane
    store.held[block] = m + 1
    store.start[plane], store.length[plane] = store.size[POOL_END], length
    store.size[POOL_END] += length
    store.size[POOL_LIVE] += length
    store.b[plane], store.alpha[plane], store.idle[plane], store.iterate[plane] = b, 0.0, 0, iterate
    return m


@register_jitable
def _slot(column, mask):
    """Where the search for a column in a hash table begins (Knuth's multiplicative hashing)."""
    return np.uint32((np.uint32(column) * np.uint32(2654435761)) >> np.uint32(7)) & mask


@kernel(types.void(STORE, _i8, _i4s, _f8s, _f8s, _i4s, _i8, _f8s), borrows=True)
def _gram_row(store, block, index, value, row, table, bits, dense):
    """Dot products of a new plane with those of its block, and with itself.

    They go through a small hash table of the new plane (it stays in cache), or through the vector ``dense`` (zeros, as
    long as the weights) when the plane is long.
    """
    m, nnz, mask = store.held[block], len(index), np.uint32((1 << bits) - 1)
    norm = 0.0
    for p in range(nnz):
        norm += value[p] * value[p]
    if m > 0 and nnz <= HASHED:
        for p in range(nnz):
            slot = _slot(index[p], mask)
            while table[slot] != 0:
                slot = (slot + np.uint32(1)) & mask
            table[slot] = p + 1
    elif m > 0:
        sparse_add(dense, index, value, 1.0)
    for q in range(m):
        other = store.slots[block, q]
        begin, end = store.start[other], store.start[other] + store.length[other]
        dot = 0.0
        if nnz <= HASHED:
            columns, entries = store.columns[begin:end], store.entries[begin:end]
            for p in range(end - begin):
                slot = _slot(columns[p], mask)
                held = table[slot]
                while held != 0:
                    at = np.uint32(held - 1)
                    if index[at] == columns[p]:
                        dot += entries[p] * value[at]
                        break
                    slot = (slot + np.uint32(1)) & mask
                    held = table[slot]
        else:
            dot = sparse_dot(dense, store.columns[begin:end], store.entries[begin:end])
        row[q] = dot
    if m > 0 and nnz <= HASHED:
        for p in range(nnz):
            slot = _slot(index[p], mask)
            while table[slot] != 0:
                table[slot] = 0
                slot = (slot + np.uint32(1)) & mask
    elif m > 0:
        for p in range(nnz):
            dense[index[p]] = 0.0
    row[m] = norm


@kernel(_i8(STORE, _i8, _i4s, _f8s, _f8, _i4s, _i8, _f8s), borrows=True)
def insert(store, block, index, value, b, table, bits, dense):
    """Add an extreme point to a block, with its Gram row unless ``bits`` is 0. The caller has made room.

    Returns the position, or -1 when the block has an equal plane already.
    """
    m, nnz = store.held[block], len(index)
    plane = store.free[store.size[FREE] - 1]
    for q in range(m):  # the same output gives the same entries in the same order
        other = store.slots[block, q]
        if store.length[other] == nnz and store.b[other] == b:
            begin, same = store.start[other], 0
            while (
                same < nnz and store.columns[begin + same] == index[same] and store.entries[begin + same] == value[same]
            ):
                same += 1
            if same == nnz:
                store.size[DUPLICATES] += 1
                return -1
    if bits > 0:
        _gram_row(store, block, index, value, store.gram[plane], table, bits, dense)
    begin = store.size[POOL_END]
    for p in range(nnz):
        store.columns[begin + p] = index[p]
        store.entries[begin + p] = value[p]
    return place(store, block, nnz, b, 0, plane)


@kernel(_i8(STORE, _i8, _f8s, _f8s), borrows=True)
def combine(store, block, share, dense):
    """Add the plane ``sum_p share[p] * plane_p`` to its block as a stored iterate; needs no dot products."""
    m = store.held[block]
    plane = store.free[store.size[FREE] - 1]
    row = store.gram[plane]
    b, norm = 0.0, 0.0
    for p in range(m):
        b += share[p] * store.b[store.slots[block, p]]
        row[p] = 0.0
        for q in range(m):
            row[p] += share[q] * store.gram[store.slots[block, q], p]
        norm += share[p] * row[p]
    row[m] = max(norm, 0.0)
    for p in range(m):
        if share[p] != 0.0:
            q = store.slots[block, p]
            begin, end = store.start[q], store.start[q] + store.length[q]
            sparse_add(dense, store.columns[begin:end], store.entries[begin:end], share[p])
    at = store.size[POOL_END]
    nnz = 0
    for p in range(m):
        if share[p] != 0.0:
            q = store.slots[block, p]
            for e in range(store.start[q], store.start[q] + store.length[q]):
                column = store.columns[e]
                if dense[column] != 0.0:
                    store.columns[at + nnz] = column
                    store.entries[at + nnz] = dense[column]
                    dense[column] = 0.0
                    nnz += 1
    store.size[MERGES] += 1
    return place(store, block, nnz, b, 1, plane)


@kernel(ROOM_SIGNATURE, borrows=True)
def make_room(store, block, limit, rule, keep_origin, share, dense):
    """Restrict a block to ``limit`` extreme points before another one comes in; the current point stays representable.

    ITERATE (Yu & Rousu 2007, after Hearn, Lawphongpanich, Ventura 1985): drop the extreme point of smallest weight and
    make the current point the one stored iterate, S^x = {sum_p alpha_p plane_p / total}, with all the weight.
    MERGE: join the extreme point of smallest weight with the stored iterate (or with the next smallest), weights
    summed; the other multipliers stay as they are. Returns whether anything changed.
    """
    m = store.held[block]
    extreme, lo, second, old = 0, -1, -1, -1
    weight = 0.0
    for p in range(m):
        plane = store.slots[block, p]
        weight += store.alpha[plane]
        if store.iterate[plane]:
            old = p
        else:
            extreme += 1
            if lo < 0 or store.alpha[plane] < store.alpha[store.slots[block, lo]]:
                lo, second = p, lo
            elif second < 0 or store.alpha[plane] < store.alpha[store.slots[block, second]]:
                second = p
    if extreme < limit:
        return 0
    if rule == MERGE:
        smallest = store.alpha[store.slots[block, lo]]
        partner = old if old >= 0 else second
        if smallest == 0.0 or partner < 0:
            if smallest == 0.0:
                remove(store, block, lo)
                return 1
            partner = -1
        joined = smallest + (store.alpha[store.slots[block, partner]] if partner >= 0 else 0.0)
        share[:m] = 0.0
        share[lo] = smallest / joined
        if partner >= 0:
            share[partner] = store.alpha[store.slots[block, partner]] / joined
        at = combine(store, block, share, dense)
        store.alpha[store.slots[block, at]] = joined
        remove(store, block, max(lo, partner))
        if partner >= 0:
            remove(store, block, min(lo, partner))
        return 1
    if weight == 0.0:  # the current point is the origin, which is there anyway
        remove(store, block, lo)
        return 1
    bounded = store.total[block] < np.inf
    whole = weight + store.origin[block] if bounded else 1.0
    for p in range(m):
        share[p] = store.alpha[store.slots[block, p]] / whole
    at = combine(store, block, share, dense)
    for p in range(m):
        store.alpha[store.slots[block, p]] = 0.0
    store.alpha[store.slots[block, at]] = whole
    if bounded:
        store.origin[block] = 0.0
        if not keep_origin:
            store.open[block] = 0
    remove(store, block, max(lo, old))
    if old >= 0:
        remove(store, block, min(lo, old))
    return 1


@kernel(ROOM_SIGNATURE, borrows=True)
def keep_all(store, block, limit, rule, keep_origin, share, dense):
    """What stands in for :func:`make_room` where a block may keep all its planes."""
    return 0


@kernel(types.void(STORE, _i8, _f8s, _f8s), borrows=True)
def gradients(store, block, w, g):
    """``g[p] = b_p - w . a_p`` for the planes of a block."""
    for p in range(store.held[block]):
        plane = store.slots[block, p]
        begin, end = store.start[plane], store.start[plane] + store.length[plane]
        g[p] = store.b[plane] - sparse_dot(w, store.columns[begin:end], store.entries[begin:end])


@register_jitable
def announce(store, block):
    """Let memory fetch what a visit of a block will read, while the one before is at work: planes and Gram rows.

    Blocks are visited in random order, and rows lie in order of arrival: without it, visits wait for most rows. Long
    planes come in a stream by themselves, and would push each other out of the cache.
    """
    held, width, asked = store.held[block], store.gram.shape[1], 0
    for p in range(held):
        plane = np.int64(store.slots[block, p])
        begin, end = store.start[plane], store.start[plane] + store.length[plane]
        asked += end - begin
        if asked > ANNOUNCED:
            return
        prefetch_much(store.columns, begin, end)
        prefetch_much(store.entries, begin, end)
        prefetch_much(store.gram, plane * width, plane * width + held)


@kernel(types.void(STORE, _i8, _i8), borrows=True)
def forget(store, block, patience):
    """Count idle visits and remove planes that have had no weight for more than ``patience`` of them."""
    for p in range(store.held[block] - 1, -1, -1):
        plane = store.slots[block, p]
        if store.alpha[plane] > 0.0:
            if store.idle[plane] > 0:  # else the line of memory stays where it is
                store.idle[plane] = 0
        else:
            store.idle[plane] += 1
            if store.idle[plane] > patience:
                remove(store, block, p)


@register_jitable
def let_in(moment, visits):
    """Let the present point into the average, once for each of the visits that have led to it."""
    if moment[RULE] != NO_MEAN:
        numbers = visits * moment[VISITS] + 0.5 * visits * (visits + 1.0)  # of these visits, added up
        moment[VISITS] += visits
        moment[TOTAL] += visits if moment[RULE] == UNIFORM else numbers


@kernel(types.void(STORE, _i8, _i8), borrows=True)
def end_visit(store, block, patience):
    """Let the present point into the average, and idle planes go."""
    let_in(store.moment, 1.0)
    forget(store, block, patience)


@kernel(types.void(STORE, _f8s), borrows=True)
def rebuild(store, u):
    """``u = sum_p alpha_p a_p`` from scratch, to shed rounding errors."""
    u[:] = 0.0
    linear = 0.0
    for block in range(len(store.held)):
        for p in range(store.held[block]):
            plane = store.slots[block, p]
            if store.alpha[plane] != 0.0:
                begin, end = store.start[plane], store.start[plane] + store.length[plane]
                sparse_add(u, store.columns[begin:end], store.entries[begin:end], store.alpha[plane])
                linear += store.alpha[plane] * store.b[plane]
    store.linear[0] = linear


@kernel(types.void(STORE, _i4s, types.float64[:, ::1]))
def scatter(store, planes, A):
    """Rows of A (m, k), zeros before, receive the entries of planes in the first k columns."""
    for i in range(len(planes)):
        for e in range(store.start[planes[i]], store.start[planes[i]] + store.length[planes[i]]):
            if store.columns[e] < A.shape[1]:
                A[i, store.columns[e]] = store.entries[e]
