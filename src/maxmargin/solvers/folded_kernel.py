"""Compiled visits of folded blocks (:mod:`~maxmargin.solvers.folds_kernel`), at the columns of u that are in use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.prefetch_kernel import prefetch_much
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.folds_kernel import (
    APART,
    BEGIN,
    COLUMNS,
    ENTRIES,
    FLOATS,
    FOLDED,
    FOLDS,
    PLANES,
)
from maxmargin.solvers.masters.extrapolation_kernel import pull
from maxmargin.solvers.masters.smo_kernel import move_pairs


class Sums(NamedTuple):
    """Scratch of visits, a row for each strand, and what they have gained."""

    fold: np.ndarray  # float64 (strands, room): sums of u over folds, or by how much their columns change
    g: np.ndarray  # float64 (strands, width)
    change: np.ndarray  # float64 (strands, width)
    position: np.ndarray  # int32 (1, width): 0, 1, 2, ...
    gain: np.ndarray  # float64 (strands, APART): GAIN and LINEAR
    size: np.ndarray  # int64 (strands, APART): as those of the store


GAIN, LINEAR = range(2)

_i8, _f8 = types.int64, types.float64
_i8s, _f8s = types.int64[::1], types.float64[::1]
_i4ss, _i8ss, _f8ss = types.int32[:, ::1], types.int64[:, ::1], types.float64[:, ::1]
SUMS = record(Sums, _f8ss, _f8ss, _f8ss, _i4ss, _f8ss, _i8ss)


def sums(strands: int, room: int, width: int) -> Sums:
    """For blocks of so many entries and planes."""
    position = np.arange(width, dtype=np.int32)[None]
    wide, apart = np.empty((strands, width)), (strands, APART)
    return Sums(np.empty((strands, room)), wide, wide.copy(), position, np.zeros(apart), np.zeros(apart, np.int64))


@kernel(types.void(wk.STORE, _i8, FOLDED, _f8s, SUMS, _i8, _f8s), borrows=True)
def folded_gradients(store, block, folds, u, sums, s, g):
    """``g[p] = b_p - u . a_p`` for the planes of a folded block."""
    _gradients(folds.block[block], folds.ints[s], folds.floats[s], u, sums.fold[s], g)


@register_jitable
def _gradients(own, ints, floats, u, by_fold, g):
    planes, n_folds, columns = own[PLANES], own[FOLDS], own[BEGIN]
    fold_ends = columns + own[COLUMNS]
    ends, b = fold_ends + n_folds, own[FLOATS] + 2
    ids, values = ends + planes, b + planes * (planes + 3)
    c = columns
    for f in range(n_folds):
        total, end = 0.0, columns + ints[fold_ends + f]
        while c < end:
            total += u[np.uint32(ints[c])]
            c += 1
        by_fold[f] = total
    e = 0
    for p in range(planes):
        total, end = 0.0, ints[ends + p]
        while e < end:
            total += floats[values + e] * by_fold[ints[ids + e]]
            e += 1
        g[p] = floats[b + p] - total


@register_jitable
def load(store, block, folds, s):
    """Take the multipliers of a folded block over from the store."""
    own, floats = folds.block[block], folds.floats[s]
    begin, planes = own[FLOATS], own[PLANES]
    floats[begin] = store.origin[block]
    for p in range(planes):
        floats[begin + 2 + planes + p] = store.alpha[store.slots[block, p]]


@register_jitable
def unload(store, block, folds, s):
    """Give them back."""
    own, floats = folds.block[block], folds.floats[s]
    begin, planes = own[FLOATS], own[PLANES]
    store.origin[block] = floats[begin]
    for p in range(planes):
        store.alpha[store.slots[block, p]] = floats[begin + 2 + planes + p]


@register_jitable
def _local(store, block, own, floats, sums, s):
    """A folded block as a working set of one block."""
    planes, begin = own[PLANES], own[FLOATS]
    b = begin + 2
    gram = floats[b + 3 * planes : b + 3 * planes + planes * planes].reshape((planes, planes))
    return wk.Store(
        sums.position, store.held[block : block + 1], store.total[block : block + 1], floats[begin : begin + 1],
        store.open[block : block + 1], store.gap, store.start, store.length, floats[b : b + planes],
        floats[b + planes : b + 2 * planes], store.idle, store.iterate, gram, store.columns, store.entries, store.free,
        sums.size[s], sums.gain[s, LINEAR:], store.mean, store.moment,
    )  # fmt: skip


@register_jitable
def announce(folds, block, s):
    """Let memory fetch a block that will be visited soon."""
    own = folds.block[block]
    planes, begin, floats = own[PLANES], own[BEGIN], own[FLOATS]
    if own[COLUMNS] + own[ENTRIES] > wk.ANNOUNCED or planes <= 0:
        return
    prefetch_much(folds.ints[s], begin, begin + planes + own[COLUMNS] + own[FOLDS] + own[ENTRIES])
    prefetch_much(folds.floats[s], floats, floats + 2 + planes * (planes + 3) + own[ENTRIES])


@kernel(types.void(wk.STORE, _i8s, FOLDED, _f8s, wk.VISIT, SUMS, _i8), borrows=True)
def visit_folded(store, blocks, folds, u, visit, sums, s):
    """Solve folded blocks in turn at u, which follows. ``sums.gain`` receives what the dual and ``sum alpha b`` gain.

    O(columns + planes x folds + steps x planes) for each block.
    """
    g, change = sums.g[s], sums.change[s]
    ints, floats, n = folds.ints[s], folds.floats[s], len(blocks)
    for i in range(n):
        if i + 2 < n:
            announce(folds, blocks[i + 2], s)
        block = blocks[i]
        own = folds.block[block]
        _gradients(own, ints, floats, u, sums.fold[s], g)
        planes, begin = own[PLANES], own[FLOATS]
        b = begin + 2
        for p in range(planes):
            floats[b + 2 * planes + p] = floats[b + planes + p]
        floats[begin + 1] = floats[begin]
        local = _local(store, block, own, floats, sums, s)
        gain = move_pairs(local, 0, g, change, visit.tau, visit.max_steps, 1.0)
        if gain == 0.0:
            continue
        sums.gain[s, GAIN] += gain
        for p in range(planes):
            sums.gain[s, LINEAR] += change[p] * floats[begin + 2 + p]
        follow(own, ints, floats, change, sums.fold[s], u)


@register_jitable
def follow(own, ints, floats, change, by_fold, u):
    """``u += sum_p change_p a_p`` for the planes of a folded block."""
    planes, n_folds, columns = own[PLANES], own[FOLDS], own[BEGIN]
    fold_ends = columns + own[COLUMNS]
    ends, values = fold_ends + n_folds, own[FLOATS] + 2 + planes * (planes + 3)
    ids = ends + planes
    for f in range(n_folds):
        by_fold[f] = 0.0
    e = 0
    for p in range(planes):
        end, step = np.int64(ints[ends + p]), change[p]
        if step != 0.0:
            while e < end:
                by_fold[ints[ids + e]] += floats[values + e] * step
                e += 1
        e = end
    c = columns
    for f in range(n_folds):
        end, step = columns + ints[fold_ends + f], by_fold[f]
        if step != 0.0:
            while c < end:
                u[np.uint32(ints[c])] += step
                c += 1
        c = end


@kernel(types.void(_i8s, FOLDED, SUMS, _i8, _f8s), borrows=True)
def add_changes(blocks, folds, sums, s, total):
    """Add to ``total``, by number, what the last visits of some blocks have changed in u."""
    ints, floats, change = folds.ints[s], folds.floats[s], sums.change[s]
    for i in range(len(blocks)):
        own = folds.block[blocks[i]]
        planes, b = own[PLANES], own[FLOATS] + 2
        for p in range(planes):
            change[p] = floats[b + planes + p] - floats[b + 2 * planes + p]
        follow(own, ints, floats, change, sums.fold[s], total)


@kernel(_f8(wk.STORE, _i8, FOLDED, SUMS, _i8, _f8s, _f8s), borrows=True)
def aim_folded(store, block, folds, sums, s, target, total):
    """As :func:`~maxmargin.solvers.masters.extrapolation_kernel.aim` for a folded block; ``total`` is by number."""
    if not pull(store, target, block):
        return 0.0
    own, change, linear = folds.block[block], sums.change[s], 0.0
    for p in range(own[PLANES]):
        plane = store.slots[block, p]
        change[p] = target[plane] - store.alpha[plane]
        linear += change[p] * store.b[plane]
    follow(own, folds.ints[s], folds.floats[s], change, sums.fold[s], total)
    return linear


@kernel(_f8(wk.STORE, _i8s, FOLDED, _i8, _f8), borrows=True)
def take_back(store, blocks, folds, s, share):
    """Keep a share of what the last visits have changed; returns by how much ``sum alpha b`` falls."""
    floats, linear = folds.floats[s], 0.0
    for i in range(len(blocks)):
        own = folds.block[blocks[i]]
        planes, begin = own[PLANES], own[FLOATS]
        alpha, before = begin + 2 + planes, begin + 2 + 2 * planes
        for p in range(planes):
            old, new = floats[before + p], floats[alpha + p]
            floats[alpha + p] = old + share * (new - old)
            linear += (new - floats[alpha + p]) * floats[begin + 2 + p]
        if store.total[blocks[i]] < np.inf:
            floats[begin] = floats[begin + 1] + share * (floats[begin] - floats[begin + 1])
    return linear
