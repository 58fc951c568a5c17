"""The sequential loop: decode a few examples, update their blocks, go on. The same code serves every model kernel."""

from __future__ import annotations

from numba import types

from maxmargin.kernel import kernel
from maxmargin.models.signature import PLANE_FUNCTION, SEARCH_FUNCTION
from maxmargin.oracles.batch_kernel import BATCH_FUNCTION, PACK, ROWS
from maxmargin.solvers.visit_kernel import ABSORB_FUNCTION
from maxmargin.solvers.working_set_kernel import PASS_FUNCTION, POINT, ROOM_FUNCTION, STORE, VISIT

_i8s, _f8s, _i8 = types.int64[::1], types.float64[::1], types.int64


@kernel(
    _i8(
        BATCH_FUNCTION, SEARCH_FUNCTION, PLANE_FUNCTION, PACK, ABSORB_FUNCTION, ROOM_FUNCTION, PASS_FUNCTION, STORE,
        POINT, VISIT, _i8s, _i8, _i8, _i8, _i8, ROWS, _f8s, _f8s,
    ),
    borrows=True,
)  # fmt: skip
def sequential_pass(
    planes_batch, search, plane, pack, absorb, make_room, solve, store, point, visit, examples, first, begin, batch,
    emit, rows, weight, gain,
):  # fmt: skip
    """Visit ``examples[begin:]``, ``batch`` at a time: their argmax at the same weights, then exact block solves.

    Every example is a block of its own, example ``first`` being block 0. Returns the number of examples done; less than
    all means that the store has to grow, and the examples of the batch at hand are asked again then (blocks already
    solved lose nothing by it).
    """
    n = len(examples)
    while begin < n:
        part = examples[begin : min(begin + batch, n)]
        planes_batch(search, plane, pack, point.w, part, 0, emit, rows)
        m = 0
        while rows.example[m] >= 0:
            rows.example[m] = part[rows.example[m]] - first
            m += 1
        done = absorb(make_room, solve, store, rows.example[:m], 0, rows, weight, pack.lift[first:], point, visit, gain)
        if done < m:
            return begin
        begin += len(part)
    return n
