"""Several numbers at once in compiled loops.

The compiler turns a loop over the labels of a feature into vector instructions only where it has many labels: it
expects long loops, and does the last few dozen entries one by one, which are all there are of a short row. So rows are
asked for by their width here. A total of eight numbers also stays in a register over a loop, where an array would be
read and written in each turn.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_jitable, register_model

from maxmargin.kernel import kernel
from maxmargin.kernel_cache import checks_bounds

CHECKED = checks_bounds()


class Lanes(types.Type):
    """The type of ``width`` doubles that are used together."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(f"Lanes({width})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.VectorType(ir.DoubleType(), kind.width))


@kernel("float64(float64[::1], int64, int64)", borrows=True)
def check_lanes(array, at, width):
    """Where kernels check their indices, an IndexError unless ``array[at : at + width]`` exists; else nothing."""
    if CHECKED:
        return array[at] + array[at + width - 1]
    return 0.0


def _compiled(generator: Callable) -> Callable[..., object]:
    """An instruction of compiled code, without the argument that only its generator sees."""
    return intrinsic(prefer_literal=True)(generator)


@_compiled
def lanes(context, array, at, width):
    """``array[at : at + width]``, for a width that is a constant; it must lie within the array."""
    kind = Lanes(width.literal_value)

    def generate(target, builder, signature, arguments):
        return builder.load(_place(target, builder, signature, arguments, kind), align=8)

    return kind(array, types.int64, width), generate


@_compiled
def put_lanes(context, array, at, numbers):
    """``array[at : at + width] = numbers``."""

    def generate(target, builder, signature, arguments):
        builder.store(arguments[2], _place(target, builder, signature, arguments, numbers), align=8)
        return target.get_dummy_value()

    return types.void(array, types.int64, numbers), generate


@_compiled
def add_product(context, numbers, factor, others):
    """``numbers + factor * others``, lane by lane."""

    def generate(target, builder, signature, arguments):
        factors = _repeated(builder, arguments[1], arguments[2].type)
        product = builder.fmul(factors, arguments[2], flags=("contract",))
        return builder.fadd(arguments[0], product, flags=("contract",))

    return numbers(numbers, types.float64, numbers), generate


@_compiled
def larger_sum(context, numbers, number, others):
    """``max(numbers, number + others)``, lane by lane; where a sum is NaN, the number that was there."""

    def generate(target, builder, signature, arguments):
        total = builder.fadd(_repeated(builder, arguments[1], arguments[2].type), arguments[2])
        return builder.select(builder.fcmp_ordered(">", total, arguments[0]), total, arguments[0])

    return numbers(numbers, types.float64, numbers), generate


def _repeated(builder, number, whole):
    """A vector of that kind with the same number in all lanes."""
    index = ir.IntType(32)
    one = builder.insert_element(ir.Constant(whole, ir.Undefined), number, index(0))
    mask = ir.Constant(ir.VectorType(index, whole.count), None)
    return builder.shuffle_vector(one, ir.Constant(whole, ir.Undefined), mask)


def _place(target, builder, signature, arguments, kind):
    """The address of entry ``arguments[1]`` of the array ``arguments[0]``, as that of a vector."""
    array = target.make_array(signature.args[0])(target, builder, arguments[0])
    vector = ir.VectorType(ir.DoubleType(), kind.width).as_pointer()
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), vector)


def over_lanes(loop: Callable[[int], Callable]) -> Callable:
    """A function of ``(n, *arguments)`` that does for n entries what ``loop(width)`` does for ``width`` of them.

    The function that a loop makes takes the first entry and the arguments.
    """
    by_8, by_4, by_2, by_1 = (register_jitable(loop(width)) for width in (8, 4, 2, 1))

    @register_jitable
    def over(n, *arguments):
        k = 0
        while n - k >= 8:
            by_8(k, *arguments)
            k += 8
        if n - k >= 4:
            by_4(k, *arguments)
            k += 4
        if n - k >= 2:
            by_2(k, *arguments)
            k += 2
        if n - k == 1:
            by_1(k, *arguments)

    return over
