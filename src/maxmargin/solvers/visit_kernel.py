"""Compiled visits of blocks with new planes from the oracle.

How blocks are solved is a function of ``PASS_SIGNATURE`` that each visit is given
(:mod:`~maxmargin.solvers.masters.smo_kernel`), and how a full block makes room one of ``ROOM_SIGNATURE``: what a run
does not need is not compiled for it.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel
from maxmargin.oracles.batch_kernel import ROWS
from maxmargin.planes_kernel import sparse_dot
from maxmargin.solvers import working_set_kernel as wk

_i8s, _f8s = types.int64[::1], types.float64[::1]
_i8, _f8 = types.int64, types.float64


ABSORB_SIGNATURE = _i8(
    wk.ROOM_FUNCTION, wk.PASS_FUNCTION, wk.STORE, _i8s, _i8, ROWS, _f8s, _f8s, wk.POINT, wk.VISIT, _f8s
)
ABSORB_FUNCTION = types.FunctionType(ABSORB_SIGNATURE)


@register_jitable
def look(store, block, row, rows, weight, lift, w, g):
    """Note the gap of a block whose new planes begin at ``row``, given the gradients of its planes.

    Returns the violation of the first new plane, the largest gradient, and the size of both.
    """
    indptr, b = rows.indptr, rows.b
    inner, best = 0.0, 0.0 if store.open[block] else -np.inf
    for p in range(store.held[block]):
        best = max(best, g[p])
        alpha = store.alpha[store.slots[block, p]]
        if alpha > 0.0:
            inner += alpha * g[p]
    first, last = indptr[row], indptr[row + 1]
    violation = b[row] - sparse_dot(w, rows.indices[first:last], rows.values[first:last])
    loss = max(rows.bound[row], 0.0)
    if len(lift):
        extra = w[len(w) - len(lift) + block]
        store.gap[block] = max(0.5 * weight[block] * loss * loss - 0.5 * extra * extra - inner, 0.0)
    else:
        store.gap[block] = max(weight[block] * loss - inner, 0.0)
    scale = abs(b[row])  # planes of one block for all examples carry C, which may be tiny
    for p in range(store.held[block]):
        scale = max(scale, abs(store.b[store.slots[block, p]]))
    return violation, best, scale


@register_jitable
def is_wanted(violation, best, scale):
    """Whether a plane is above all of its block."""
    return violation > best + 1e-12 * scale or best == -np.inf


@kernel(ABSORB_SIGNATURE, borrows=True)
def absorb(make_room, solve, store, blocks, row, rows, weight, lift, point, visit, gain):
    """Bring new planes into their blocks and solve each block, in turn, from row ``row`` on.

    ``blocks`` (m,) names the block of each plane; consecutive planes of one block come in together, the plane of the
    argmax first. A plane that is not above all planes of its block at the current weights cannot help: it is left
    out, unless R is not quadratic and a joint master follows. The block gap ``weight * loss - sum_p alpha_p g_p``
    (squared slacks: the cone's form) is noted on the way.

    Returns the number of rows absorbed; less than all of them means that the store has to grow first. ``gain[0]``
    receives the gain of the dual.
    """
    m, w, g, limit = len(blocks), point.w, visit.g, visit.limit
    indptr, index, value, b = rows.indptr, rows.indices, rows.values, rows.b
    while row < m:
        block = blocks[row]
        end = row + 1
        while end < m and blocks[end] == block:
            end += 1
        if end < m:
            wk.announce(store, blocks[end])
        need = indptr[end] - indptr[row]
        width = store.held[block] + end - row
        if limit < wk.NO_LIMIT:  # room for merged planes too, and never more than the limit, the iterate and a newcomer
            width = min(width, max(store.held[block], limit + 1))
            for p in range(store.held[block]):
                need += (end - row) * store.length[store.slots[block, p]]
            need += (end - row) * (indptr[end] - indptr[row])
        if store.size[wk.FREE] < end - row + 1 or width + 1 > store.slots.shape[1]:
            return row
        if store.size[wk.POOL_END] + need > len(store.columns):
            if store.size[wk.POOL_LIVE] + need > 0.75 * len(store.columns):
                return row
            wk.compact(store)
        wk.gradients(store, block, w, g)
        violation, best, scale = look(store, block, row, rows, weight, lift, w, g)
        wanted = is_wanted(violation, best, scale)
        jointly = visit.bits == 0 and visit.max_steps == 0  # the master problem that follows does it all
        first, last = indptr[row], indptr[row + 1]
        if wanted or (jointly and (last > first or b[row] != 0.0)):
            moved = 0
            for new in range(row, end):
                if limit < wk.NO_LIMIT:
                    moved |= make_room(store, block, limit, visit.rule, visit.keep_origin, visit.change, visit.dense)
                first, last = indptr[new], indptr[new + 1]
                at = wk.insert(
                    store, block, index[first:last], value[first:last], b[new], visit.table, visit.bits, visit.dense
                )
                if at >= 0:
                    g[at] = b[new] - sparse_dot(w, index[first:last], value[first:last])
            if moved:
                wk.gradients(store, block, w, g)
        elif violation < best - 1e-9 * scale:
            store.size[wk.WORSE] += 1
        if not jointly:
            gain[0] += solve(store, blocks[row : row + 1], point, visit, 1)
        row = end
    return row
