"""Compiled work of a shard between two synchronisations: what its visits have changed, and how much of it stays."""

from __future__ import annotations

import numpy as np
from numba import types

from maxmargin.kernel import kernel
from maxmargin.planes_kernel import sparse_add, sparse_dot
from maxmargin.solvers import working_set_kernel as wk

_i1s, _i4s, _i8s, _f8s = types.int8[::1], types.int32[::1], types.int64[::1], types.float64[::1]
_f8ss = types.float64[:, ::1]
_i8, _f8 = types.int64, types.float64
EXCESS, NORM = range(2)


@kernel(types.void(wk.STORE, _i8s, _i4s, _f8ss, _f8s), borrows=True)
def remember(store, blocks, held, alpha, origin):
    """Note the planes of blocks, their multipliers and those of the origins, before the blocks are visited."""
    for k in range(len(blocks)):
        block = blocks[k]
        held[k], origin[k] = store.held[block], store.origin[block]
        for p in range(held[k]):
            alpha[k, p] = store.alpha[store.slots[block, p]]


@kernel(types.void(wk.LOG, _f8s, _i1s, _f8s, _f8s), borrows=True)
def collect(log, u, positive, values, sums):
    """End a log: ``values`` receives the change of u in its columns, which are no longer marked as seen.

    ``sums`` receives by how much R* has grown beyond its first order, ``R*(u + d) - R*(u) - w . d``, added up from
    terms that are not negative, and the squared length of the change d. Weights are cut off below 0 where ``positive``,
    if that is not empty; elsewhere the former is half the latter.
    """
    excess, norm = 0.0, 0.0
    for e in range(len(values)):
        c = log.columns[e]
        log.seen[c >> 3] = 0
        before = log.before[e]
        values[e] = u[c] - before
        square = values[e] * values[e]
        norm += square
        if len(positive) and positive[c]:
            if before <= 0.0:
                square = max(u[c], 0.0) ** 2
            elif u[c] < 0.0:
                square = before * before - 2.0 * before * u[c]
        excess += 0.5 * square
    sums[EXCESS], sums[NORM] = excess, norm
    log.size[0] = 0


@kernel(types.void(_i8s, _i4s, _f8s, _f8s, _f8ss), borrows=True)
def products(ends, columns, values, dense, gram):
    """The inner products of changes, one behind the other in ``columns`` and ``values``; the diagonal stays.

    O(K m) for K changes with m entries in all. ``dense`` is zero before and after, and as long as u.
    """
    K = len(ends)
    for s in range(K - 1):
        first = ends[s - 1] if s else 0
        for e in range(first, ends[s]):
            dense[columns[e]] = values[e]
        for t in range(s + 1, K):
            at = slice(ends[t - 1], ends[t])
            gram[s, t] = gram[t, s] = sparse_dot(dense, columns[at], values[at])
        for e in range(first, ends[s]):
            dense[columns[e]] = 0.0


@kernel(types.void(_f8s, _f8s, _i8s, _i4s, _f8s, _f8s, _f8s, _f8, _i8s, _i8), borrows=True)
def average(mean, moment, ends, columns, values, linear, shares, visits, last, stamp):
    """Let the point that a round has led to into the average, once for each of its visits.

    The changes of u are one behind the other in ``columns`` and ``values``; those of ``sum alpha b`` are ``linear``. A
    share of each stays. The sum of all points before, ``mean + TOTAL u``, is what it was. That the round is in the
    average is noted in ``last`` here, where no interrupt can come between the two.
    """
    first = 0
    for s in range(len(ends)):
        amount = moment[wk.TOTAL] * shares[s]
        sparse_add(mean, columns[first : ends[s]], values[first : ends[s]], -amount)
        moment[wk.LINEAR] -= amount * linear[s]
        first = ends[s]
    wk.let_in(moment, visits)
    last[0] = stamp


@kernel(types.void(_i4s, _f8s, _f8, _f8s, _f8s, _i1s), borrows=True)
def advance(columns, values, share, u, w, positive):
    """``u += share * change``, and the weights w (the same array where none must be positive) follow."""
    for e in range(len(columns)):
        c = columns[e]
        u[c] += share * values[e]
        if len(positive):
            w[c] = max(u[c], 0.0) if positive[c] else u[c]


@kernel(types.void(wk.STORE, _i8s, _i4s, _f8ss, _f8s, _f8), borrows=True)
def retreat(store, blocks, held, alpha, origin, share):
    """Keep only a share of the change of the multipliers since :func:`remember`."""
    linear = 0.0
    for k in range(len(blocks)):
        block = blocks[k]
        if store.total[block] < np.inf:
            store.origin[block] = (1.0 - share) * origin[k] + share * store.origin[block]
        for p in range(store.held[block]):
            plane = store.slots[block, p]
            before = alpha[k, p] if p < held[k] else 0.0
            if store.alpha[plane] != before:
                kept = (1.0 - share) * before + share * store.alpha[plane]
                linear += (kept - store.alpha[plane]) * store.b[plane]
                store.alpha[plane] = kept
    store.linear[0] += linear


@kernel(types.void(wk.STORE, _i8s, _i8), borrows=True)
def drop_idle(store, blocks, patience):
    """Remove the planes of blocks that have had no weight for more than ``patience`` visits."""
    for k in range(len(blocks)):
        for p in range(store.held[blocks[k]] - 1, -1, -1):
            plane = store.slots[blocks[k], p]
            if store.alpha[plane] == 0.0 and store.idle[plane] > patience:
                wk.remove(store, blocks[k], p)


@kernel(types.int64(_f8s, _f8ss, _f8s), borrows=True)
def best_shares(slope, gram, shares):
    """Maximise ``slope . x - 1/2 x' gram x`` over the box [0, 1]^K by coordinate ascent from ``shares``.

    Each move is exact, so the value never falls. O(K^2) for a sweep over the coordinates; returns how many it took
    until none moved by more than 1e-12.
    """
    K = len(slope)
    for sweep in range(1000):
        moved = 0.0
        for s in range(K):
            gradient = slope[s]
            for t in range(K):
                gradient -= gram[s, t] * shares[t]
            if gram[s, s] > 0.0:
                to = min(max(shares[s] + gradient / gram[s, s], 0.0), 1.0)
            else:
                to = 1.0 if gradient > 0.0 else shares[s]
            moved = max(moved, abs(to - shares[s]))
            shares[s] = to
        if moved <= 1e-12:
            return sweep + 1
    return 1000
