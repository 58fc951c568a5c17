"""Compiled steps towards a guessed point: make it feasible, see where it leads, go there or part of the way."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.planes_kernel import sparse_add
from maxmargin.solvers.working_set_kernel import STORE

_f8, _f8s = types.float64, types.float64[::1]
ROUNDING = 1e-12


@register_jitable
def pull(store, target, block):
    """Pull the part of ``target`` (planes,) that belongs to a block into its simplex; whether it is anywhere else.

    Negative multipliers become 0 and a block that asks for more than its total is scaled down: a feasible point near
    the one guessed, not the nearest.
    """
    used, moves = 0.0, False
    for p in range(store.held[block]):
        plane = store.slots[block, p]
        moves = moves or target[plane] != store.alpha[plane]
        target[plane] = max(target[plane], 0.0)
        used += target[plane]
    if moves and used > store.total[block]:
        for p in range(store.held[block]):
            target[store.slots[block, p]] *= store.total[block] / used
    return moves


@kernel(_f8(STORE, _f8s, _f8s), borrows=True)
def aim(store, target, change):
    """Pull ``target`` into the simplexes and add ``sum (target - alpha) a`` to ``change``.

    Returns ``sum (target - alpha) b``. O(non-zeros of the planes that move).
    """
    linear = 0.0
    for block in range(len(store.held)):
        if not pull(store, target, block):
            continue
        for p in range(store.held[block]):
            plane = store.slots[block, p]
            step = target[plane] - store.alpha[plane]
            if step != 0.0:
                begin, end = store.start[plane], store.start[plane] + store.length[plane]
                sparse_add(change, store.columns[begin:end], store.entries[begin:end], step)
                linear += step * store.b[plane]
    return linear


@kernel(types.void(STORE, _f8s, _f8), borrows=True)
def advance(store, target, share):
    """Go ``share`` of the way from the multipliers to ``target``; the origins take or give what it needs."""
    for block in range(len(store.held)):
        more = 0.0
        for p in range(store.held[block]):
            plane = store.slots[block, p]
            step = share * (target[plane] - store.alpha[plane])
            store.alpha[plane] = target[plane] if share == 1.0 else store.alpha[plane] + step
            more += step
        if more != 0.0 and store.total[block] < np.inf:
            left = store.origin[block] - more
            store.origin[block] = left if left > ROUNDING * store.total[block] else 0.0
