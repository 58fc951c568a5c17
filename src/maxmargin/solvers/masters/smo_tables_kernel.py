"""Sequential minimal optimisation on one block where weights are tables of log-probabilities."""

from __future__ import annotations

import math

import numpy as np
from numba import types

from maxmargin.formulations.generative_kernel import follow_table
from maxmargin.kernel import kernel
from maxmargin.planes_kernel import sparse_add
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.smo_kernel import NOBODY, hand_over, tolerance, visit_blocks, widest_pair

_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]
_i8, _f8 = types.int64, types.float64
TINY = 1e-300
BINDING = 1e-12  # lambda below this share of gamma is rounding
TRIALS, FLAT = 20, 0.3  # of a line search; it ends where this share of the slope is left


@kernel(_f8(wk.POINT, _i8, _f8s), borrows=True)
def table_curvature(point, j, dense):
    """The second derivative of R* along ``dense``, the part of table j: as Proximal.curvature has it."""
    starts, w = point.starts, point.w
    begin, end = starts[j], starts[j + 1]
    lam = 0.0
    for q in range(begin, end):
        lam += point.fixed[q] + point.u[q] - point.curving[q] * w[q]
    lam = max(lam, 0.0)
    plain, inner, mass = 0.0, 0.0, 0.0
    for q in range(begin, end):
        p = math.exp(w[q])
        D = 1.0 / (lam * p + point.curving[q])
        plain += dense[q] * dense[q] * D
        inner += dense[q] * D * p
        mass += p * D * p
    return max(plain - inner * inner / max(mass, TINY), 0.0) if lam > BINDING * point.curving[begin] else plain


@kernel(_i8(_i8s, _i4s, _i8, _i8s, _i8))
def touched_tables(table, index, nnz, found, d):
    """The tables of the columns ``index[:nnz]``, each once, into ``found``; returns their number."""
    m = 0
    for p in range(nnz):
        if index[p] < d:
            found[m] = table[index[p]]
            m += 1
    found[:m].sort()
    count = 0
    for p in range(m):
        if p == 0 or found[p] != found[p - 1]:
            found[count] = found[p]
            count += 1
    return count


@kernel(_f8(wk.POINT, _i8s, _i8, _f8s, _f8, _f8s, _f8s), fast=False, borrows=True)
def slope_along(point, found, count, dense, t, theta, scratch):
    """``dense . theta(u + t dense)`` over the tables ``found[:count]``, whose theta is written one behind the other."""
    starts, at, slope = point.starts, 0, 0.0
    for k in range(count):
        begin, end = starts[found[k]], starts[found[k] + 1]
        n, lam = end - begin, 0.0
        for q in range(begin, end):
            s = point.fixed[q] + point.u[q]
            lam += s - point.curving[q] * point.w[q]
            scratch[q - begin] = s + t * dense[q]
            theta[at + q - begin] = point.w[q]
        if lam <= BINDING * point.curving[begin]:
            lam = 0.0
        follow_table(scratch[:n], point.curving[begin:end], lam, theta[at : at + n], scratch[n : 2 * n])
        for q in range(begin, end):
            slope += dense[q] * theta[at + q - begin]
        at += n
    return slope


@kernel(wk.BLOCK_SIGNATURE)
def smo_tables(store, block, point, visit):
    """SMO where R* is that of :class:`~maxmargin.formulations.divergence.Proximal`.

    R* is smooth and separates into tables, so a step from one plane to another is a search for the root of a falling
    slope: Newton steps inside a bracket, from the curvature at the present point. It ends where the slope is a share
    of the first one and not below 0, so the dual never falls. ``u``, ``w`` and the multipliers are updated. Returns
    the gain of the dual, from below. O(entries of the tables that the two planes touch) a trial.
    """
    u, w, g, dense, d = point.u, point.w, visit.g, visit.dense, len(point.table)
    tau, max_steps = tolerance(store, block, g, visit.tau), visit.max_steps
    gain = 0.0
    for _ in range(max_steps):
        hi, lo, difference = widest_pair(store, block, g, tau)
        if lo == NOBODY:
            break
        hi_plane = store.slots[block, hi] if hi >= 0 else -1
        lo_plane = store.slots[block, lo] if lo >= 0 else -1
        size, offset = 0, 0.0
        for side in range(2):
            plane = hi_plane if side == 0 else lo_plane
            if plane >= 0:
                sign = 1.0 - 2.0 * side
                begin, end = store.start[plane], store.start[plane] + store.length[plane]
                sparse_add(dense, store.columns[begin:end], store.entries[begin:end], sign)
                size += end - begin
                offset += sign * store.b[plane]
        index, found, delta = np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size)
        nnz = 0
        for side in range(2):
            plane = hi_plane if side == 0 else lo_plane
            if plane >= 0:
                for e in range(store.start[plane], store.start[plane] + store.length[plane]):
                    j = store.columns[e]
                    if dense[j] != 0.0:
                        index[nnz], delta[nnz] = j, dense[j]
                        dense[j] = 0.0
                        nnz += 1
        count = touched_tables(point.table, index, nnz, found, d)
        room, largest = 0, 0
        for k in range(count):
            n = point.starts[found[k] + 1] - point.starts[found[k]]
            room, largest = room + n, max(largest, n)
        theta, scratch = np.empty(room), np.empty(2 * largest)
        fixed, curvature = offset, 0.0  # slope along columns of squared slacks, where R* is quadratic, and along b
        for p in range(nnz):
            if index[p] >= d:
                fixed -= delta[p] * u[index[p]]
                curvature += delta[p] * delta[p]
            dense[index[p]] = delta[p]
        behind = curvature
        for k in range(count):
            curvature += table_curvature(point, found[k], dense)
        available = store.alpha[lo_plane] if lo >= 0 else store.origin[block]
        slope, low, high, above, below = difference, 0.0, np.inf, difference, 0.0
        step, here = min(available, slope / max(curvature, TINY)), slope
        for _ in range(TRIALS):
            if step == np.inf or step <= 0.0:
                break
            before, here = here, fixed - step * behind - slope_along(point, found, count, dense, step, theta, scratch)
            if here >= 0.0:
                last, low, above = low, step, here
                if here <= FLAT * slope or step == available:
                    break
            else:
                last, high, below = high, step, here
            if high < np.inf:  # where the secant meets 0, not too close to the ends of the bracket
                step = low + (high - low) * min(max(above / max(above - below, TINY), 0.05), 0.9)
            else:
                further = (before - here) / max(step - last, TINY)
                step = min(available, low + max(here / max(further, TINY), low))
        if step != low:
            step = low
            here = fixed - step * behind - slope_along(point, found, count, dense, step, theta, scratch)
        for p in range(nnz):
            u[index[p]] += step * delta[p]
            dense[index[p]] = 0.0
            if index[p] >= d:
                w[index[p]] = u[index[p]]
        if step <= 0.0:
            break
        at = 0
        for k in range(count):
            for q in range(point.starts[found[k]], point.starts[found[k] + 1]):
                w[q] = theta[at]
                at += 1
        gain += 0.5 * step * (slope + max(here, 0.0))
        store.linear[0] += step * offset
        hand_over(store, block, hi_plane, lo_plane, step, available)
        wk.gradients(store, block, w, g)
        store.size[wk.STEPS] += 1
    return gain


@kernel(wk.PASS_SIGNATURE, borrows=True)
def smo_tables_pass(store, blocks, point, visit, known):
    """As :func:`~maxmargin.solvers.masters.smo_kernel.smo_pass`, for tables."""
    return visit_blocks(smo_tables, store, blocks, point, visit, known)
