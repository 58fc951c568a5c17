"""Asking memory for what a compiled loop will need a little later, so that it does not wait for it then."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

LINE = 64  # bytes that come from memory at a time


@register_jitable
def prefetch(array, begin, end):
    """Ask for ``array[begin:end]`` without waiting. There is no other effect, also where nothing is at an address."""
    at = begin
    while at < end:  # a range would work out its length first, which takes longer than to ask for a short row
        _nearest(array, at)
        at += LINE // array.itemsize
    _nearest(array, end - 1)


@register_jitable
def prefetch_much(array, begin, end):
    """As :func:`prefetch`, into the second cache: for more than the first one should give up for it."""
    at = begin
    while at < end:  # a range would work out its length first, which takes longer than to ask for a short row
        _second(array, at)
        at += LINE // array.itemsize
    _second(array, end - 1)


@register_jitable
def prefetch_entry(array, at):
    """The same for one entry, ``array[at]``."""
    _nearest(array, at)


def _instruction(locality):
    """The instruction of the processor: ask for the line that an entry of an array is in."""

    def typed(context, array, index):
        def generate(target, builder, signature, arguments):
            found = target.make_array(signature.args[0])(target, builder, arguments[0])
            place = builder.bitcast(builder.gep(found.data, [arguments[1]]), ir.IntType(8).as_pointer())
            whole = ir.IntType(32)
            form = ir.FunctionType(ir.VoidType(), [place.type, whole, whole, whole])
            function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], form)
            builder.call(function, [place, whole(0), whole(locality), whole(1)])  # to read, to be kept where, data
            return target.get_dummy_value()

        return types.void(array, types.int64), generate

    return intrinsic(typed)


_nearest, _second = _instruction(3), _instruction(2)
