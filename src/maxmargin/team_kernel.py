"""Threads in compiled code that wait for each other: what one has written before a wait, the others see behind it."""

from __future__ import annotations

import os

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

PATIENT = 2000  # looks before a thread lets others have its core


@register_jitable
def wait_for_all(arrived, waits, threads):
    """Wait until so many threads have come here ``waits`` times; ``arrived[0]`` counts them all, from 0 on.

    Whoever writes a huge number there lets all go.
    """
    if threads > 1:
        _arrive(arrived)
        looks = 0
        while _look(arrived) < waits * threads:
            looks += 1
            if looks > PATIENT:
                _let_others_run()


def _on_first(make):
    """An instruction on the first entry of an array of int64, which ``make`` writes from a builder and its address."""

    def typed(context, array):
        def generate(target, builder, signature, arguments):
            return make(builder, target.make_array(signature.args[0])(target, builder, arguments[0]).data)

        return types.int64(array), generate

    return intrinsic(typed)


def _call_of(name):
    """A call of a function of the system that takes nothing and returns an int."""

    def typed(context):
        def generate(target, builder, signature, arguments):
            known, form = builder.module.globals, ir.FunctionType(ir.IntType(32), [])
            return builder.call(known[name] if name in known else ir.Function(builder.module, form, name), [])

        return types.int32(), generate

    return intrinsic(typed)


_arrive = _on_first(lambda builder, place: builder.atomic_rmw("add", place, ir.IntType(64)(1), "seq_cst"))
_look = _on_first(lambda builder, place: builder.load_atomic(place, "seq_cst", 8))
_let_others_run = _call_of("sched_yield" if os.name == "posix" else "SwitchToThread")
