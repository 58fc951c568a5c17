"""Sequential minimal optimisation on one block of the working set."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.planes_kernel import sparse_add
from maxmargin.solvers import working_set_kernel as wk

_f8s, _i8, _f8 = types.float64[::1], types.int64, types.float64
TINY = 1e-300
NOBODY = -2  # in place of a plane; -1 is the origin


@kernel(_f8(wk.STORE, _i8, _f8s, _f8), borrows=True)
def tolerance(store, block, g, tau):
    """``tau`` times the largest cost of a block, or times the largest gradient when no plane asks for a margin."""
    scale = 0.0
    for p in range(store.held[block]):
        scale = max(scale, abs(store.b[store.slots[block, p]]))
    if scale == 0.0:
        for p in range(store.held[block]):
            scale = max(scale, abs(g[p]))
    return tau * scale


@register_jitable
def steepest(store, block, g):
    """The plane of largest gradient (-1: the origin, where it takes part), and that gradient; -inf for none."""
    hi, top = -1, 0.0 if store.open[block] else -np.inf
    for p in range(store.held[block]):
        if g[p] > top:
            hi, top = p, g[p]
    return hi, top


@register_jitable
def widest_pair(store, block, g, tau):
    """The planes (-1: the origin) of the largest gradient and of the smallest one among those with weight, and by how
    much these differ; the second is NOBODY when that is no more than ``tau``."""
    hi, top = steepest(store, block, g)
    if top == -np.inf:
        return hi, NOBODY, 0.0
    lo, worst = NOBODY, top
    if store.origin[block] > 0.0 and hi >= 0 and top > 0.0:
        lo, worst = -1, 0.0
    for p in range(store.held[block]):
        if store.alpha[store.slots[block, p]] > 0.0 and g[p] < worst:
            lo, worst = p, g[p]
    return hi, lo if top - worst > tau else NOBODY, top - worst


@register_jitable
def hand_over(store, block, hi_plane, lo_plane, step, available):
    """Move so much weight from one plane, or the origin (-1), to another."""
    left = 0.0 if step == available else available - step
    if lo_plane >= 0:
        store.alpha[lo_plane] = left
    else:
        store.origin[block] = left
    if hi_plane >= 0:
        store.alpha[hi_plane] += step
    else:
        store.origin[block] += step


@kernel(_f8(wk.STORE, _i8, _f8s, _f8s, _f8, _i8, _f8), borrows=True)
def move_pairs(store, block, g, change, tau, max_steps, scale):
    """Solve a block in the space of its Gram matrix K; u has to follow.

    Each step moves weight to the plane of largest gradient from the plane that gains most by giving, exactly:

        step = min(alpha_lo, (g_hi - g_lo) / (K_hh - 2 K_hl + K_ll)),      g -= step (K[:, hi] - K[:, lo])

    and the end is ``g_hi - g_lo <= tau``. The origin takes part with gradient 0 and products 0. The gradients ``g`` are
    kept up to date, and ``change`` receives the changes of the multipliers. Products count ``scale`` times, as if u
    changed by so much more than it will. Returns the gain of the dual. O(m) per step. Platt 1998; pairs chosen by
    second-order gain as in Fan, Chen, Lin 2005.
    """
    tau = tolerance(store, block, g, tau)
    m = store.held[block]
    gain = 0.0
    for p in range(m):
        change[p] = 0.0
    for _ in range(max_steps):
        hi, top = steepest(store, block, g)
        if top == -np.inf:
            break
        hi_plane = store.slots[block, hi] if hi >= 0 else -1
        hi_norm = store.gram[hi_plane, hi] if hi >= 0 else 0.0
        lo, best, worst = -2, 0.0, top
        if store.origin[block] > 0.0 and hi >= 0 and top > 0.0:
            lo, worst = -1, 0.0
            best = top * top / max(scale * hi_norm, TINY)
        for p in range(m):
            plane = store.slots[block, p]
            if store.alpha[plane] > 0.0 and g[p] < top:
                worst = min(worst, g[p])
                d = store.gram[plane, p] + hi_norm
                if hi >= 0:
                    d -= 2.0 * store.gram[hi_plane, p]
                score = (top - g[p]) * (top - g[p]) / max(scale * d, TINY)
                if score > best:
                    lo, best = p, score
        if lo == -2 or top - worst <= tau:
            break
        lo_plane = store.slots[block, lo] if lo >= 0 else -1
        difference = top - (g[lo] if lo >= 0 else 0.0)
        d = hi_norm
        if lo >= 0:
            d += store.gram[lo_plane, lo]
            if hi >= 0:
                d -= 2.0 * store.gram[hi_plane, lo]
        d *= scale
        available = store.alpha[lo_plane] if lo >= 0 else store.origin[block]
        step = available
        if d > TINY and difference < available * d:
            step = difference / d
        if step == np.inf:  # an orthant and a plane of no length: nothing bounds the step
            break
        hand_over(store, block, hi_plane, lo_plane, step, available)
        if lo >= 0:
            change[lo] -= step
        if hi >= 0:
            change[hi] += step
        gain += step * (difference - 0.5 * step * max(d, 0.0))
        if hi >= 0:
            for p in range(m):
                g[p] -= scale * step * store.gram[hi_plane, p]
        if lo >= 0:
            for p in range(m):
                g[p] += scale * step * store.gram[lo_plane, p]
        store.size[wk.STEPS] += 1
    return gain


@kernel(wk.BLOCK_SIGNATURE, borrows=True)
def smo(store, block, point, visit):
    """Solve a block by :func:`move_pairs`, and let u follow: O(non-zeros of the planes that have moved).

    The average of u over the visits is kept lazily: with weights rho_k and TOTAL = sum rho_k the sum of rho_k u_k is
    ``mean + TOTAL u``, so a change d of u costs ``mean -= TOTAL d`` and nothing else (Collins 2002).
    """
    change, scale = visit.change, point.scale
    gain = move_pairs(store, block, visit.g, change, visit.tau, visit.max_steps, scale)
    for p in range(store.held[block]):
        if change[p] != 0.0:
            plane = store.slots[block, p]
            begin, end = store.start[plane], store.start[plane] + store.length[plane]
            wk.note(point.u, store.columns[begin:end], point.log)
            sparse_add(point.w, store.columns[begin:end], store.entries[begin:end], scale * change[p])
            store.linear[0] += change[p] * store.b[plane]
            if store.moment[wk.RULE] != wk.NO_MEAN:
                store.moment[wk.LINEAR] -= store.moment[wk.TOTAL] * change[p] * store.b[plane]
                late = -store.moment[wk.TOTAL] * change[p]
                sparse_add(store.mean, store.columns[begin:end], store.entries[begin:end], late)
    return gain


@register_jitable(inline="always")  # functions passed to a kernel in another way could not be cached
def visit_blocks(solve, store, blocks, point, visit, known):
    """Solve blocks in turn with the planes they have; the gain of the dual."""
    total = 0.0
    for k in range(len(blocks)):
        block = blocks[k]
        if k + 1 < len(blocks):
            wk.announce(store, blocks[k + 1])
        if not known:
            if store.held[block] == 0:
                continue
            wk.gradients(store, block, point.w, visit.g)
        total += solve(store, block, point, visit)
        wk.end_visit(store, block, visit.patience)
    return total


@kernel(wk.PASS_SIGNATURE, borrows=True)
def smo_pass(store, blocks, point, visit, known):
    """Visit blocks in turn with the planes they have; returns the gain of the dual.

    ``known`` means that there is one block, and that ``visit.g`` holds its gradients already.
    """
    return visit_blocks(smo, store, blocks, point, visit, known)
