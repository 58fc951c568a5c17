"""The compiled loops over examples at frozen weights: planes and sums. One loop serves every model and every search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import register_jitable

from maxmargin.kernel import kernel, record
from maxmargin.models.signature import PLANE_FUNCTION, SEARCH_FUNCTION
from maxmargin.oracles.rescaling_kernel import rescaled

_i8, _f8 = types.int64, types.float64
_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]


class Pack(NamedTuple):
    """The arrays of a question: the model's data, scratch, and how answers become planes."""

    meta: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    iwork: np.ndarray
    fwork: np.ndarray
    output: np.ndarray
    room: int  # the most non-zeros that the planes of one example can have, extra columns included
    rescaling: int
    cost_weight: float
    lift: np.ndarray  # entry of the extra column of squared slacks, by example; or empty
    counts: np.ndarray  # (2,): argmaxes asked, and answers whose bound is open; loops add to them


class Rows(NamedTuple):
    """Buffers that receive planes in CSR form; ``example`` receives the position of each plane's example."""

    example: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    b: np.ndarray
    bound: np.ndarray


PACK = record(Pack, _i8s, _i4s, _f8s, _i4s, _f8s, _i4s, _i8, _i8, _f8, _f8s, _i8s)
OPEN = 1e-9  # relative: a bound that is so much above its value is open
ROWS = record(Rows, _i8s, _i8s, _i4s, _f8s, _f8s, _f8s)
BATCH_SIGNATURE = _i8(SEARCH_FUNCTION, PLANE_FUNCTION, PACK, _f8s, _i8s, _i8, _i8, ROWS)
BATCH_FUNCTION = types.FunctionType(BATCH_SIGNATURE)


@register_jitable
def count(counts, made, result):
    """Note the argmaxes that a search has asked, and whether it has proven its answer."""
    counts[0] += np.int64(result[len(result) - 1])
    counts[1] += made >= 0 and result[1] > max(result[0], 0.0) + OPEN * max(1.0, abs(result[1]))


@kernel(BATCH_SIGNATURE)
def planes_batch(search, plane, pack, w, examples, begin, emit, rows):
    """Planes of ``examples[begin:]`` into ``rows``; stops before an example that may need more room than is left.

    ``emit`` is the most planes per example. Squared slacks add the entry ``lift[i]`` at column ``n_weights + i`` to
    every plane but the zero plane. ``rows.example`` receives the position in ``examples`` of each plane and, behind the
    last plane, -1. Returns the number of examples done.
    """
    lift, index, value = pack.lift, rows.indices, rows.values
    result = np.zeros(3 + 2 * emit)
    n_weights = len(w) - len(lift)
    m = 0
    rows.indptr[0] = 0
    for e in range(begin, len(examples)):
        start = rows.indptr[m]
        if start + pack.room > len(index) or m + emit >= len(rows.example):
            rows.example[m] = -1
            return e
        i = examples[e]
        result[len(result) - 1] = 1.0
        made = search(
            plane, pack.meta, pack.ints, pack.floats, w, i, pack.cost_weight, emit, pack.iwork, pack.fwork, pack.output,
            index[start:], value[start:], result,
        )  # fmt: skip
        count(pack.counts, made, result)
        if made < 0:  # no output is allowed: the zero plane
            made, result[1], result[2], result[3] = 1, 0.0, 0.0, 0.0
        if rescaled(pack.rescaling, pack.cost_weight, result[2])[0] == 0.0:
            made, result[3] = 1, 0.0
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
            scale, b = rescaled(pack.rescaling, pack.cost_weight, result[2 + 2 * p])
            rows.indptr[m + p + 1] = start + last + shift
            if len(lift) and (last > first or result[2 + 2 * p] > 0.0):
                index[start + last + shift - 1] = n_weights + i
                value[start + last + shift - 1] = lift[i]
                shift -= 1
            if shift > 0:
                for q in range(last - 1, first - 1, -1):
                    index[start + q + shift] = index[start + q]
                    value[start + q + shift] = value[start + q]
            if scale != 1.0:
                for q in range(start + first + shift, start + last + shift):
                    value[q] *= scale
            rows.example[m + p] = e
            rows.b[m + p] = b
            rows.bound[m + p] = result[1]
        m += made
    rows.example[m] = -1
    return len(examples)


@kernel(_f8(SEARCH_FUNCTION, PLANE_FUNCTION, PACK, _f8s, _i8s, _f8s, _f8s, _f8s))
def sum_batch(search, plane, pack, w, examples, scale, a, bound):
    """``a += sum_e scale[e] * a_e`` (dense) and return ``sum_e scale[e] * b_e``; ``bound`` receives the losses."""
    result = np.zeros(5)
    index, value = np.empty(pack.room, np.int32), np.empty(pack.room)
    total = 0.0
    for e in range(len(examples)):
        result[4] = 1.0
        made = search(
            plane, pack.meta, pack.ints, pack.floats, w, examples[e], pack.cost_weight, 1, pack.iwork, pack.fwork,
            pack.output, index, value, result,
        )  # fmt: skip
        count(pack.counts, made, result)
        bound[e] = result[1] if made > 0 else 0.0
        if made > 0 and result[0] >= 0.0:  # a search among wrong outputs may end below the true one
            own, b = rescaled(pack.rescaling, pack.cost_weight, result[2])
            total += scale[e] * b
            for p in range(np.int64(result[3])):
                a[index[p]] += scale[e] * own * value[p]
    return total
