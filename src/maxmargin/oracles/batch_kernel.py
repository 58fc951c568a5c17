"""The compiled loops over examples at frozen weights: planes, sums, decodes. One loop serves every model kernel."""

from __future__ import annotations

import numpy as np
from numba import types

from maxmargin.kernel import kernel
from maxmargin.models.signature import PLANE_FUNCTION

_i8, _f8 = types.int64, types.float64
_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]
_PACK = (PLANE_FUNCTION, _i8s, _i4s, _f8s)
_WORK = (_i4s, _f8s, _i4s)


@kernel(_i8(*_PACK, _f8s, _i8s, _f8, _i8, _f8s, *_WORK, _i8, _i8, _i8s, _i8s, _i4s, _f8s, _f8s, _f8s))
def planes_batch(
    plane, meta, ints, floats, w, examples, cost_weight, emit, lift, iwork, fwork, output, room, begin,
    rows, indptr, index, value, b, bound,
):  # fmt: skip
    """Planes of ``examples[begin:]`` into CSR buffers; stops before an example that may need more than what is left.

    The offset of a plane is ``cost_weight`` times the cost of its output.
    ``lift`` (empty, or one entry per example) appends the extra column of squared slacks: entry ``lift[i]`` at
    ``n_weights + i`` for every plane but the zero plane. ``room`` is the most non-zeros the planes of one example can
    have. ``rows`` receives the position in ``examples`` of each plane and, behind the last plane, -1.
    Returns the number of examples done.
    """
    result = np.zeros(2 + 2 * emit)
    n_weights = len(w) - len(lift)
    m = 0
    indptr[0] = 0
    for e in range(begin, len(examples)):
        start = indptr[m]
        if start + room > len(index) or m + emit >= len(rows):
            rows[m] = -1
            return e
        i = examples[e]
        made = plane(
            meta, ints, floats, w, i, cost_weight, emit, iwork, fwork, output, index[start:], value[start:], result
        )
        if made < 0:  # no output is allowed: the zero plane
            made, result[1], result[2], result[3] = 1, 0.0, 0.0, 0.0
        # planes move up by one entry for each lift written before them, so go from the last to the first
        lifted = 0
        if len(lift):
            for p in range(made):
                first = 0 if p == 0 else np.int64(result[1 + 2 * p])
                lifted += np.int64(result[3 + 2 * p]) > first or result[2 + 2 * p] > 0.0
        shift = lifted
        for p in range(made - 1, -1, -1):
            first = 0 if p == 0 else np.int64(result[1 + 2 * p])
            last = np.int64(result[3 + 2 * p])
            indptr[m + p + 1] = start + last + shift
            if len(lift) and (last > first or result[2 + 2 * p] > 0.0):
                index[start + last + shift - 1] = n_weights + i
                value[start + last + shift - 1] = lift[i]
                shift -= 1
            if shift > 0:
                for q in range(last - 1, first - 1, -1):
                    index[start + q + shift] = index[start + q]
                    value[start + q + shift] = value[start + q]
            rows[m + p] = e
            b[m + p] = cost_weight * result[2 + 2 * p]
            bound[m + p] = result[1]
        m += made
    rows[m] = -1
    return len(examples)


@kernel(_f8(*_PACK, _f8s, _i8s, _f8, *_WORK, _i8, _f8s, _f8s, _f8s))
def sum_batch(plane, meta, ints, floats, w, examples, cost_weight, iwork, fwork, output, room, scale, a, bound):
    """``a += sum_e scale[e] * a_e`` (dense) and return ``sum_e scale[e] * b_e``; ``bound`` receives the losses."""
    result = np.zeros(4)
    index = np.empty(room, np.int32)
    value = np.empty(room)
    total = 0.0
    for e in range(len(examples)):
        made = plane(meta, ints, floats, w, examples[e], cost_weight, 1, iwork, fwork, output, index, value, result)
        bound[e] = 0.0
        if made > 0:
            bound[e] = result[1]
            total += scale[e] * cost_weight * result[2]
            for p in range(np.int64(result[3])):
                a[index[p]] += scale[e] * value[p]
    return total


@kernel(_i8(*_PACK, _f8s, _i8s, _f8, *_WORK, _i8s, _i4s, _f8s, _f8s))
def decode_batch(plane, meta, ints, floats, w, examples, cost_weight, iwork, fwork, output, at, outputs, cost, bound):
    """Decoded outputs of ``examples``, that of example ``e`` written from ``outputs[at[e]]`` to ``at[e + 1]``.

    Returns -1, or the position of the first example that allows no output.
    """
    result = np.zeros(4)
    index = np.empty(0, np.int32)
    value = np.empty(0)
    for e in range(len(examples)):
        found = plane(meta, ints, floats, w, examples[e], cost_weight, 0, iwork, fwork, output, index, value, result)
        if found < 0:
            return e
        cost[e] = result[2]
        bound[e] = result[1]
        for t in range(at[e + 1] - at[e]):
            outputs[at[e] + t] = output[t]
    return -1
