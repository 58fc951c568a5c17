"""Threads in compiled code that wait for each other: what one has written before a wait, the others see behind it."""

from __future__ import annotations

import os

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

PATIENT = 2000  # looks before a thread lets others have its core
YIELD = "sched_yield" if os.name == "posix" else "SwitchToThread"


@register_jitable
def wait_for_all(arrived, waits, threads):
    """Wait until so many threads have come here ``waits`` times; ``arrived[0]`` counts them all, from 0 on."""
    if threads > 1:
        _arrive(arrived)
        looks = 0
        while _look(arrived) < waits * threads:
            looks += 1
            if looks > PATIENT:
                _let_others_run()


@intrinsic
def _arrive(context, array):
    def generate(target, builder, signature, arguments):
        found = target.make_array(signature.args[0])(target, builder, arguments[0])
        return builder.atomic_rmw("add", found.data, ir.IntType(64)(1), "seq_cst")

    return types.int64(array), generate


@intrinsic
def _look(context, array):
    def generate(target, builder, signature, arguments):
        found = target.make_array(signature.args[0])(target, builder, arguments[0])
        return builder.load_atomic(found.data, "seq_cst", 8)

    return types.int64(array), generate


@intrinsic
def _let_others_run(context):
    def generate(target, builder, signature, arguments):
        form = ir.FunctionType(ir.IntType(32), [])
        known = builder.module.globals
        function = known[YIELD] if YIELD in known else ir.Function(builder.module, form, YIELD)
        builder.call(function, [])
        return target.get_dummy_value()

    return types.void(), generate
