"""The compiled loop that decodes examples at frozen weights; one loop serves every model kernel."""

from __future__ import annotations

import numpy as np
from numba import types

from maxmargin.kernel import kernel
from maxmargin.models.signature import PLANE_FUNCTION

_i8, _f8 = types.int64, types.float64
_i4s, _i8s, _f8s = types.int32[::1], types.int64[::1], types.float64[::1]


@kernel(_i8(PLANE_FUNCTION, _i8s, _i4s, _f8s, _f8s, _i8s, _f8, _i4s, _f8s, _i4s, _i8s, _i4s, _f8s, _f8s, _f8s))
def decode_batch(
    plane, meta, ints, floats, w, examples, cost_weight, iwork, fwork, output, at, outputs, cost, value, bound
):  # fmt: skip
    """Decoded outputs of ``examples``, that of example ``e`` written from ``outputs[at[e]]`` to ``at[e + 1]``.

    Returns -1, or the position of the first example that allows no output.
    """
    result = np.zeros(4)
    index, entries = np.empty(0, np.int32), np.empty(0)
    for e in range(len(examples)):
        found = plane(meta, ints, floats, w, examples[e], cost_weight, 0, iwork, fwork, output, index, entries, result)
        if found < 0:
            return e
        value[e], bound[e], cost[e] = result[0], result[1], result[2]
        outputs[at[e] : at[e + 1]] = output[: at[e + 1] - at[e]]
    return -1
