"""Asking memory for what a compiled loop will need a little later, so that it does not wait for it then."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

LINE = 64  # bytes that come from memory at a time


@register_jitable
def prefetch(array, begin, end):
    """Ask for ``array[begin:end]`` without waiting. There is no other effect, also where nothing is at an address."""
    for index in range(begin, end, LINE // array.itemsize):
        _prefetch(array, index)  # type: ignore[call-arg]
    _prefetch(array, end - 1)  # type: ignore[call-arg]


@intrinsic
def _prefetch(context, array, index):
    """The instruction of the processor: ask for the line that entry ``index`` is in."""

    def generate(target, builder, signature, arguments):
        found = target.make_array(signature.args[0])(target, builder, arguments[0])
        place = builder.bitcast(builder.gep(found.data, [arguments[1]]), ir.IntType(8).as_pointer())
        whole = ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [place.type, whole, whole, whole])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], form)
        builder.call(function, [place, whole(0), whole(3), whole(1)])  # to read, to be kept, data
        return target.get_dummy_value()

    return types.void(array, types.int64), generate
