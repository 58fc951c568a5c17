"""Compiled code: the plane of a given output of a chain."""

from __future__ import annotations

from maxmargin.kernel import kernel
from maxmargin.models import chain_kernel as ck

_SIGNATURE = (
    "int64(int64[::1], int32[::1], float64[::1], int64, int32[::1], int32[::1], int32[::1], float64[::1], float64[::1])"
)


@kernel(_SIGNATURE)
def chain_output(meta, ints, floats, example, output, iwork, index, value, result):
    """``psi = phi(truth) - phi(output)`` and the cost of an output, as a kernel of a model writes them."""
    return ck.chain_planes(meta, ints, floats, example, 1, output, iwork, index, value, result)
