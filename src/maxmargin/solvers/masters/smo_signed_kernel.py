"""Sequential minimal optimisation on one block where some weights must not be negative."""

from __future__ import annotations

import numpy as np
from numba import types

from maxmargin.kernel import kernel
from maxmargin.planes_kernel import sparse_add
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.smo_kernel import hand_over, steepest, tolerance, visit_blocks

_i1s, _i4s, _f8s = types.int8[::1], types.int32[::1], types.float64[::1]
_i8, _f8 = types.int64, types.float64


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


@kernel(wk.BLOCK_SIGNATURE)
def smo_signed(store, block, point, visit):
    """SMO where some weights are >= 0: ``w = u`` with the negative part of ``u`` cut off on ``positive``.

    The curvature along a pair changes where a weight meets zero, so each step is an exact search over those kinks and
    the gradients are computed anew. ``u``, ``w`` and the multipliers are updated. Returns the gain of the dual.
    O(nnz of the block) a step.
    """
    u, w, positive, g, dense = point.u, point.w, point.positive, visit.g, visit.dense
    tau, max_steps = tolerance(store, block, g, visit.tau), visit.max_steps
    m = store.held[block]
    gain = 0.0
    for _ in range(max_steps):
        hi, top = steepest(store, block, g)
        if top == -np.inf:
            break
        lo, worst = -2, top
        if store.origin[block] > 0.0 and hi >= 0 and top > 0.0:
            lo, worst = -1, 0.0
        for p in range(m):
            if store.alpha[store.slots[block, p]] > 0.0 and g[p] < worst:
                lo, worst = p, g[p]
        if lo == -2 or top - worst <= tau:
            break
        hi_plane = store.slots[block, hi] if hi >= 0 else -1
        lo_plane = store.slots[block, lo] if lo >= 0 else -1
        size = 0
        slope = 0.0
        if hi >= 0:
            begin, end = store.start[hi_plane], store.start[hi_plane] + store.length[hi_plane]
            sparse_add(dense, store.columns[begin:end], store.entries[begin:end], 1.0)
            size += end - begin
            slope += store.b[hi_plane]
        if lo >= 0:
            begin, end = store.start[lo_plane], store.start[lo_plane] + store.length[lo_plane]
            sparse_add(dense, store.columns[begin:end], store.entries[begin:end], -1.0)
            size += end - begin
            slope -= store.b[lo_plane]
        index = np.empty(size, np.int32)
        delta = np.empty(size)
        nnz = 0
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
        step = signed_step(u, positive, index, delta, nnz, slope, available)
        if step <= 0.0 or step == np.inf:
            break
        before, after = 0.0, 0.0
        for p in range(nnz):
            j = index[p]
            before += w[j] * w[j]
            u[j] += step * delta[p]
            w[j] = max(u[j], 0.0) if positive[j] else u[j]
            after += w[j] * w[j]
            if store.moment[wk.RULE] != wk.NO_MEAN:
                store.mean[j] -= store.moment[wk.TOTAL] * step * delta[p]
        gain += step * slope - 0.5 * (after - before)
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
