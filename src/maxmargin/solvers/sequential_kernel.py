"""The compiled loop of the sequential methods: decode a few examples, bring in their planes, solve, go on."""

from __future__ import annotations

from numba import types

from maxmargin.kernel import kernel
from maxmargin.models.signature import PLANE_FUNCTION
from maxmargin.oracles.batch_kernel import planes_batch
from maxmargin.solvers.visit_kernel import absorb
from maxmargin.solvers.working_set_kernel import STORE

_i1s, _i4s, _i8s, _f8s = types.int8[::1], types.int32[::1], types.int64[::1], types.float64[::1]
_i8, _f8 = types.int64, types.float64


@kernel(
    _i8(
        PLANE_FUNCTION, _i8s, _i4s, _f8s, _f8, _i8s, _i8, _i8, _i8, _f8s, _i4s, _f8s, _i4s, _i8,
        _i8s, _i8s, _i4s, _f8s, _f8s, _f8s,
        STORE, _f8s, _f8s, _f8s, _i1s, _i8, _i8, _i8, _f8, _i8, _i8, _i4s, _i8, _f8s, _f8s, _f8s, _f8s,
    )
)  # fmt: skip
def sequential_pass(
    plane, meta, ints, floats, cost_weight, examples, begin, batch, emit, lift, iwork, fwork, output, room,
    rows, indptr, index, value, b, bound,
    store, weight, u, w, positive, limit, rule, keep_origin, tau, max_steps, patience, table, bits, dense, g, change,
    gain,
):  # fmt: skip
    """Visit ``examples[begin:]``, ``batch`` at a time: their argmax at the same weights, then exact block solves.

    Every example is a block of its own. Returns the number of examples done; less than all means that the store has
    to grow, and the examples of the batch at hand are asked again then (blocks already solved lose nothing by it).
    """
    n = len(examples)
    while begin < n:
        part = examples[begin : min(begin + batch, n)]
        planes_batch(
            plane, meta, ints, floats, w, part, cost_weight, emit, lift, iwork, fwork, output, room, 0,
            rows, indptr, index, value, b, bound,
        )  # fmt: skip
        m = 0
        while rows[m] >= 0:
            rows[m] = part[rows[m]]
            m += 1
        done = absorb(
            store, rows[:m], 0, indptr, index, value, b, bound, weight, lift, u, w, positive,
            limit, rule, keep_origin, tau, max_steps, patience, table, bits, dense, g, change, gain,
        )  # fmt: skip
        if done < m:
            return begin
        begin += len(part)
    return n
