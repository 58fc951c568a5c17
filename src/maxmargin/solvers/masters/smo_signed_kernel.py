"""Sequential minimal optimisation on one block where some weights must not be negative."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.planes_kernel import sparse_add
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.smo_kernel import NOBODY, hand_over, tolerance, visit_blocks, widest_pair

_i1s, _i4s, _f8s = types.int8[::1], types.int32[::1], types.float64[::1]
_i8, _f8 = types.int64, types.float64
FEW = 64  # kinks that are sorted by insertion


@kernel(_f8(_f8s, _i1s, _i4s, _f8s, _i8, _f8, _f8))
def signed_step(u, positive, index, delta, nnz, slope, available):
    """Exact line search on the piecewise quadratic dual of sign-constrained weights.

    Maximises ``slope * t - 1/2 |max(u + t delta, 0 on positive)|^2`` over 0 <= t <= available. The derivative is
    piecewise linear and decreasing; its kinks are where a constrained coordinate crosses zero. O(nnz log nnz).
    """
    kinks = np.empty(nnz)
    where = np.empty(nnz, np.int64)
    m = 0
    derivative, curvature = slope, 0.0
    for p in range(nnz):
        j = index[p]
        constrained = positive[j] != 0
        if not constrained or u[j] > 0.0 or (u[j] == 0.0 and delta[p] > 0.0):
            derivative -= delta[p] * u[j]
            curvature += delta[p] * delta[p]
        if constrained and ((u[j] > 0.0 and delta[p] < 0.0) or (u[j] < 0.0 and delta[p] > 0.0)):
            kinks[m] = -u[j] / delta[p]
            where[m] = p
            m += 1
    if derivative <= 0.0:
        return 0.0
    t = 0.0
    order = np.argsort(kinks[:m])
    for o in range(m + 1):
        until = available if o == m else min(kinks[order[o]], available)
        if curvature > 0.0 and derivative < curvature * (until - t):
            return t + derivative / curvature
        if until == np.inf:
            return np.inf
        derivative -= curvature * (until - t)
        t = until
        if t >= available:
            return available
        p = where[order[o]]
        if delta[p] > 0.0:
            curvature += delta[p] * delta[p]
        else:
            curvature = max(curvature - delta[p] * delta[p], 0.0)
    return available


@register_jitable
def _sort(keys, values, m):
    """Both arrays by increasing key, up to m, in place; short ones by insertion."""
    if m > FEW:
        order = np.argsort(keys[:m])
        keys[:m], values[:m] = keys[:m][order], values[:m][order]
        return
    for i in range(1, m):
        key, value, at = keys[i], values[i], i
        while at > 0 and keys[at - 1] > key:
            keys[at], values[at] = keys[at - 1], values[at - 1]
            at -= 1
        keys[at], values[at] = key, value


@kernel(_f8(wk.POINT, _i4s, _f8s, _i8, _f8, _f8, _f8s, _f8s))
def soft_step(point, index, delta, nnz, slope, available, kinks, bends):
    """The same where weights are thresholded, as :class:`~maxmargin.solvers.working_set_kernel.Point` says.

    Maximises ``slope * t - |w(u + t delta)|^2 / (2 scale)``; the kinks are where a coordinate crosses a threshold.
    ``kinks`` and ``bends`` (2 nnz,) are scratch.
    """
    u, positive, threshold = point.u, point.positive, point.threshold
    m = 0
    derivative, curvature = slope / point.scale, 0.0  # both divided by the scale
    for p in range(nnz):
        x, d = u[index[p]], delta[p]
        if d == 0.0:
            continue
        square = d * d
        free = positive[index[p]] == 0
        if x > threshold or (x == threshold and d > 0.0):
            derivative -= d * (x - threshold)
            curvature += square
        elif free and (x < -threshold or (x == -threshold and d < 0.0)):
            derivative -= d * (x + threshold)
            curvature += square
        upper, lower = (threshold - x) / d, (-threshold - x) / d
        if 0.0 < upper < available:
            kinks[m], bends[m] = upper, square if d > 0.0 else -square
            m += 1
        if free and 0.0 < lower < available:
            kinks[m], bends[m] = lower, square if d < 0.0 else -square
            m += 1
    if derivative <= 0.0:
        return 0.0
    _sort(kinks, bends, m)
    t = 0.0
    for o in range(m + 1):
        until = available if o == m else kinks[o]
        if curvature > 0.0 and derivative < curvature * (until - t):
            return t + derivative / curvature
        if until == np.inf:
            return np.inf
        derivative -= curvature * (until - t)
        t = until
        if o < m:
            curvature = max(curvature + bends[o], 0.0)
    return available


@kernel(wk.BLOCK_SIGNATURE)
def smo_signed(store, block, point, visit):
    """SMO where weights are cut off or thresholded: w is that of :class:`~maxmargin.solvers.working_set_kernel.Point`.

    The curvature along a pair changes where a weight meets zero, so each step is an exact search over those kinks and
    the gradients are computed anew. ``u``, ``w`` and the multipliers are updated. Returns the gain of the dual.
    O(nnz of the block) a step.
    """
    u, w, positive, g, dense = point.u, point.w, point.positive, visit.g, visit.dense
    threshold, scale = point.threshold, point.scale
    tau = tolerance(store, block, g, visit.tau)
    m = store.held[block]
    longest = 0
    for p in range(m):
        longest = max(longest, store.length[store.slots[block, p]])
    index, delta = np.empty(2 * longest, np.int32), np.empty(2 * longest)
    kinks, bends = np.empty(4 * longest), np.empty(4 * longest)
    gain = 0.0
    for _ in range(visit.max_steps):
        hi, lo, _ = widest_pair(store, block, g, tau)
        if lo == NOBODY:
            break
        hi_plane = store.slots[block, hi] if hi >= 0 else -1
        lo_plane = store.slots[block, lo] if lo >= 0 else -1
        slope, nnz = 0.0, 0
        if hi >= 0:
            begin, end = store.start[hi_plane], store.start[hi_plane] + store.length[hi_plane]
            sparse_add(dense, store.columns[begin:end], store.entries[begin:end], 1.0)
            slope += store.b[hi_plane]
        if lo >= 0:
            begin, end = store.start[lo_plane], store.start[lo_plane] + store.length[lo_plane]
            sparse_add(dense, store.columns[begin:end], store.entries[begin:end], -1.0)
            slope -= store.b[lo_plane]
        for side in range(2):
            plane = hi_plane if side == 0 else lo_plane
            if plane >= 0:
                for e in range(store.start[plane], store.start[plane] + store.length[plane]):
                    j = store.columns[e]
                    if dense[j] != 0.0:
                        index[nnz] = j
                        delta[nnz] = dense[j]
                        dense[j] = 0.0
                        nnz += 1
        available = store.alpha[lo_plane] if lo >= 0 else store.origin[block]
        if threshold == 0.0:
            step = signed_step(u, positive, index, delta, nnz, slope, available)
        else:
            step = soft_step(point, index, delta, nnz, slope, available, kinks, bends)
        if step <= 0.0 or step == np.inf:
            break
        wk.note(u, index[:nnz], point.log)
        before, after = 0.0, 0.0
        for p in range(nnz):
            j = index[p]
            before += w[j] * w[j]
            u[j] += step * delta[p]
            w[j] = scale * max(u[j] - threshold, 0.0)
            if positive[j] == 0 and u[j] < -threshold:
                w[j] = scale * (u[j] + threshold)
            after += w[j] * w[j]
            if store.moment[wk.RULE] != wk.NO_MEAN:
                store.mean[j] -= store.moment[wk.TOTAL] * step * delta[p]
        gain += step * slope - 0.5 * (after - before) / scale
        store.linear[0] += step * slope
        store.moment[wk.LINEAR] -= store.moment[wk.TOTAL] * step * slope
        hand_over(store, block, hi_plane, lo_plane, step, available)
        wk.gradients(store, block, w, g)
        store.size[wk.STEPS] += 1
    return gain


@kernel(wk.PASS_SIGNATURE, borrows=True)
def smo_signed_pass(store, blocks, point, visit, known):
    """As :func:`~maxmargin.solvers.masters.smo_kernel.smo_pass`, with sign constraints."""
    return visit_blocks(smo_signed, store, blocks, point, visit, known)
