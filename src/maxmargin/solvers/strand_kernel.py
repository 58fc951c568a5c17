"""Compiled rounds of strands: several visits at the same weights, whose changes are then put together exactly.

A round takes some blocks for each strand. Strands solve them at the weights that the round began with and note what
they change; then u follows all of them together, with one exact line search. Strands are what one worker does at a
time; any number of workers does the same sums in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.models.signature import PLANE_FUNCTION, SEARCH_FUNCTION
from maxmargin.oracles.batch_kernel import BATCH_FUNCTION, PACK, Pack, Rows
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.sequential_kernel import sequential_pass
from maxmargin.solvers.visit_kernel import ABSORB_FUNCTION
from maxmargin.team_kernel import wait_for_all

ENOUGH = 0.9  # all of a round's changes stay when that gains this share of what the best share of them would
APART = 8  # numbers that different strands write are so far apart


class Strands(NamedTuple):
    """Scratch, a row for each strand, and what they share."""

    planes: np.ndarray  # int32 (strands, room): as wk.Steps
    blocks: np.ndarray  # int32 (strands, room)
    sizes: np.ndarray  # float64 (strands, room)
    made: np.ndarray  # int64 (strands, APART)
    slope: np.ndarray  # float64 (strands, APART): of even and odd rounds, since a worker may be a round ahead
    linear: np.ndarray  # float64 (strands, APART): sum alpha b of what the strand has changed
    told: np.ndarray  # float64 (strands, APART): by how much that changes in even and odd rounds
    grown: np.ndarray  # float64 (classes, APART): by how much |u|^2 grows, in even and odd rounds
    free: np.ndarray  # int32 (strands, planes): unused planes of each
    size: np.ndarray  # int64 (strands, SIZES)
    ends: np.ndarray  # int64 (strands,): where the part of the pool ends that a strand may fill
    g: np.ndarray  # float64 (strands, width + 1)
    change: np.ndarray  # float64 (strands, width + 1)
    table: np.ndarray  # int32 (strands, 2^bits)
    dense: np.ndarray  # float64 (strands, columns), or one row for all where planes are short
    arrived: np.ndarray  # int64 (APART,): see wait_for_all
    retreats: np.ndarray  # int64 (strands, APART): rounds whose changes did not stay whole


class Asking(NamedTuple):
    """What strands need beside to ask the oracle: as Pack and Rows, a row for each strand."""

    iwork: np.ndarray  # int32 (strands, size)
    fwork: np.ndarray  # float64 (strands, size)
    output: np.ndarray  # int32 (strands, size)
    counts: np.ndarray  # int64 (strands, APART)
    example: np.ndarray  # int64 (strands, rows)
    indptr: np.ndarray  # int64 (strands, rows)
    indices: np.ndarray  # int32 (strands, entries)
    values: np.ndarray  # float64 (strands, entries)
    b: np.ndarray  # float64 (strands, rows)
    bound: np.ndarray  # float64 (strands, rows)
    full: np.ndarray  # int64 (strands, APART): whether a strand had no room left, in even and odd rounds
    gain: np.ndarray  # float64 (strands, APART): of its own steps, which may be more than they gain together


_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]
_i4ss, _i8ss, _f8ss = types.int32[:, ::1], types.int64[:, ::1], types.float64[:, ::1]
_i8, _f8 = types.int64, types.float64
STRANDS = record(
    Strands, _i4ss, _i4ss, _f8ss, _i8ss, _f8ss, _f8ss, _f8ss, _f8ss, _i4ss, _i8ss, _i8s, _f8ss, _f8ss, _i4ss, _f8ss,
    _i8s, _i8ss,
)  # fmt: skip
ASKING = record(Asking, _i4ss, _f8ss, _i4ss, _i8ss, _i8ss, _i8ss, _i4ss, _f8ss, _f8ss, _f8ss, _i8ss, _f8ss)


@register_jitable
def own_store(store, strands, s):
    """The working set as strand s sees it: with unused planes, pool and sums of its own."""
    end = strands.ends[s]
    return wk.Store(
        store.slots, store.held, store.total, store.origin, store.open, store.gap, store.start, store.length, store.b,
        store.alpha, store.idle, store.iterate, store.gram, store.columns[:end], store.entries[:end], strands.free[s],
        strands.size[s], strands.linear[s], store.mean, store.moment,
    )  # fmt: skip


@register_jitable
def own_point(point, strands, s, odd):
    slope = strands.slope[s, odd:]
    steps = wk.Steps(strands.planes[s], strands.blocks[s], strands.sizes[s], strands.made[s], slope)
    return wk.Point(
        point.u, point.w, point.positive, point.starts, point.table, point.fixed, point.curving, point.threshold,
        point.scale, point.log, steps,
    )  # fmt: skip


@register_jitable
def own_visit(visit, strands, s):
    dense = strands.dense[min(s, len(strands.dense) - 1)]
    return wk.Visit(
        visit.limit, visit.rule, visit.keep_origin, visit.tau, visit.max_steps, visit.patience, visit.bits,
        strands.table[s], dense, strands.g[s], strands.change[s], visit.classes,
    )  # fmt: skip


@register_jitable
def first_of_class(columns, k, classes):
    """Where the entries of class k begin, in a plane whose entries are sorted by class."""
    low, high = 0, len(columns)
    while low < high:
        middle = (low + high) >> 1
        if wk.class_of(columns[middle], classes) < k:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(types.void(_f8s, _i4s, _f8s, _f8, _f8ss, _i8, _i8, _i8), borrows=True)
def follow(u, index, value, step, grown, odd, worker, workers):
    """``u += step * a`` in the classes of a worker; ``grown`` receives by how much |u|^2 grows, by class."""
    classes = len(grown)
    k, last = worker * classes // workers, (worker + 1) * classes // workers
    e = first_of_class(index, k, classes) if worker > 0 else 0
    end = first_of_class(index, last, classes) if worker + 1 < workers else len(index)
    while e < end:
        k = wk.class_of(index[e], classes)
        more = 0.0
        while e < end:
            c = np.uint32(index[e])
            if wk.class_of(c, classes) != k:
                break
            x, d = u[c], step * value[e]
            u[c] = x + d
            more += d * (2.0 * x + d)
            e += 1
        grown[k, odd] += more


@register_jitable
def follow_all(store, point, strands, share, odd, worker, workers):
    """Let u follow a share of the steps of all strands, in their order."""
    for s in range(len(strands.made)):
        for i in range(strands.made[s, 0]):
            plane, step = strands.planes[s, i], share * strands.sizes[s, i]
            begin, end = store.start[plane], store.start[plane] + store.length[plane]
            columns, entries = store.columns[begin:end], store.entries[begin:end]
            follow(point.u, columns, entries, step, strands.grown, odd, worker, workers)


@register_jitable
def put_together(store, point, strands, odd, worker, workers, waits):
    """Let u follow the steps of all strands as far as that gains; returns the gain of the dual and the waits so far."""
    classes = len(strands.grown)
    for k in range(worker * classes // workers, (worker + 1) * classes // workers):
        strands.grown[k, odd] = 0.0
    waits += 1
    wait_for_all(strands.arrived, waits, workers)
    follow_all(store, point, strands, 1.0, odd, worker, workers)
    waits += 1
    wait_for_all(strands.arrived, waits, workers)
    slope, linear, grown = 0.0, 0.0, 0.0
    for s in range(len(strands.made)):
        slope += strands.slope[s, odd]
        linear += strands.told[s, odd]
    for k in range(classes):
        grown += strands.grown[k, odd]
    gain = linear - 0.5 * grown
    norm = 2.0 * (slope - gain)
    share = slope / norm if norm > slope else 1.0
    best = share * slope - 0.5 * share * share * norm
    if share >= 1.0 or gain >= ENOUGH * best:
        return gain, waits
    share = max(share, 0.0)
    waits += 1
    wait_for_all(strands.arrived, waits, workers)
    follow_all(store, point, strands, share - 1.0, odd, worker, workers)
    for s in range(worker, len(strands.made), workers):
        strands.retreats[s, 0] += 1
        strands.linear[s, 0] -= (1.0 - share) * strands.told[s, odd]
        for i in range(strands.made[s, 0]):
            back, block, plane = (1.0 - share) * strands.sizes[s, i], strands.blocks[s, i], strands.planes[s, i]
            store.alpha[plane] = max(store.alpha[plane] - back, 0.0)
            store.idle[plane] = min(
                store.idle[plane], 0
            )  # a plane that has weight again must not go with the next step
            if store.total[block] < np.inf:
                store.origin[block] += back
        for i in range(strands.made[s, 0]):  # rounding
            store.origin[strands.blocks[s, i]] = max(store.origin[strands.blocks[s, i]], 0.0)
    waits += 1
    wait_for_all(strands.arrived, waits, workers)
    return best, waits


@kernel(_f8(wk.PASS_FUNCTION, wk.STORE, _i8s, wk.POINT, wk.VISIT, STRANDS, _i8, _i8, _i8), borrows=True)
def revisit_rounds(solve, store, blocks, point, visit, strands, at_once, worker, workers):
    """Visit blocks with the planes they have, ``at_once`` of each strand in a round; the gain of the dual."""
    count, n = len(strands.made), len(blocks)
    gain, waits, begin, odd = 0.0, 0, 0, 0
    while begin < n:
        m = min(count * at_once, n - begin)
        for s in range(worker, count, workers):
            part = blocks[begin + s * m // count : begin + (s + 1) * m // count]
            strands.made[s, 0], strands.slope[s, odd], before = 0, 0.0, strands.linear[s, 0]
            solve(
                own_store(store, strands, s), part, own_point(point, strands, s, odd), own_visit(visit, strands, s), 0
            )
            strands.told[s, odd] = strands.linear[s, 0] - before
            after = begin + m + s * min(m, n - begin - m) // count
            if after < n:
                wk.announce(store, blocks[after])
        more, waits = put_together(store, point, strands, odd, worker, workers, waits)
        gain += more
        begin += m
        odd = 1 - odd
    return gain


@register_jitable
def own_pack(pack, asking, s):
    return Pack(
        pack.meta, pack.ints, pack.floats, asking.iwork[s], asking.fwork[s], asking.output[s], pack.room,
        pack.rescaling, pack.cost_weight, pack.lift, asking.counts[s],
    )  # fmt: skip


@register_jitable
def own_rows(asking, s):
    return Rows(asking.example[s], asking.indptr[s], asking.indices[s], asking.values[s], asking.b[s], asking.bound[s])


@kernel(
    _i8(
        BATCH_FUNCTION, SEARCH_FUNCTION, PLANE_FUNCTION, PACK, ABSORB_FUNCTION, wk.ROOM_FUNCTION, wk.PASS_FUNCTION,
        wk.STORE, wk.POINT, wk.VISIT, _i8s, _i8, _i8, _f8s, STRANDS, ASKING, _i8, _f8s, _i8, _i8,
    ),
    borrows=True,
)  # fmt: skip
def visit_rounds(
    planes_batch, search, plane, pack, absorb, make_room, solve, store, point, visit, examples, first, emit, weight,
    strands, asking, at_once, gain, worker, workers,
):  # fmt: skip
    """Visit examples with new planes, ``at_once`` of each strand in a round; arguments as those of sequential_pass.

    Returns how many are done; less than all means that the store has to grow. ``gain[0]`` receives the gain.
    """
    count, n = len(strands.made), len(examples)
    waits, begin, odd, total = 0, 0, 0, 0.0
    while begin < n:
        m = min(count * at_once, n - begin)
        for s in range(worker, count, workers):
            part = examples[begin + s * m // count : begin + (s + 1) * m // count]
            strands.made[s, 0], strands.slope[s, odd], before = 0, 0.0, strands.linear[s, 0]
            done = sequential_pass(
                planes_batch, search, plane, own_pack(pack, asking, s), absorb, make_room, solve,
                own_store(store, strands, s), own_point(point, strands, s, odd), own_visit(visit, strands, s), part,
                first, 0, at_once, emit, own_rows(asking, s), weight, asking.gain[s],
            )  # fmt: skip
            strands.told[s, odd] = strands.linear[s, 0] - before
            asking.full[s, odd] = done < len(part)
        more, waits = put_together(store, point, strands, odd, worker, workers, waits)
        total += more
        full = 0
        for s in range(count):
            full += asking.full[s, odd]
        if full:
            break
        begin += m
        odd = 1 - odd
    if worker == 0:
        gain[0] += total
    return begin
