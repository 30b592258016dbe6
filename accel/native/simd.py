"""SIMD: functions on ``Lanes`` of sixteen numbers, one instruction each where registers have 512
bits, two or four elsewhere."""

from __future__ import annotations

import math
import operator
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model
from numpy.polynomial import Chebyshev, Polynomial

from accel.native.aligned_memory import LINE
from accel.native.cpu_features import check_features

check_features()

LANES = 16

F32, I16, I32, I64 = ir.FloatType(), ir.IntType(16), ir.IntType(32), ir.IntType(64)
FLOATS, WORDS = ir.VectorType(F32, LANES), ir.VectorType(I32, LANES)
_I8 = ir.IntType(8)


class _LanesType(types.Type):
    def __init__(self) -> None:
        super().__init__("Lanes")


_LANES = _LanesType()


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, FLOATS)


def pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any, element: Any) -> Any:
    """Index ``index`` of an array's flat memory, taken as ``element``s."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(builder.bitcast(data, element.as_pointer()), [index])


def emit_splat(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    """Return a vector with the same value in all lanes."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, I32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(WORDS, [0] * LANES))


def constant(value: float) -> Any:
    """Return a vector of one fp32 constant."""
    return ir.Constant(FLOATS, [value] * LANES)


def words(value: int) -> Any:
    """Return a vector of one int32 constant."""
    return ir.Constant(WORDS, [value] * LANES)


def call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Call an intrinsic of LLVM."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def emit_fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    return call(builder, "llvm.fma.v16f32", FLOATS, a, b, c)


@intrinsic
def load(_context: Any, array: Any, index: Any) -> Any:
    """Sixteen numbers of a float32 array from flat index ``index`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, signature.args[0], arguments[0], arguments[1], F32)
        return builder.load(builder.bitcast(address, FLOATS.as_pointer()), align=4)

    return _LANES(array, index), generate


@intrinsic
def masked_load(_context: Any, array: Any, index: Any, count: Any) -> Any:
    """Return the first ``count`` of sixteen numbers of a float32 array from flat index ``index``
    on, and zeros after them, of which nothing is read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, signature.args[0], arguments[0], arguments[1], F32)
        order = ir.Constant(WORDS, list(range(LANES)))
        count = emit_splat(builder, builder.trunc(arguments[2], I32), WORDS)
        mask = builder.icmp_signed("<", order, count)
        name = "llvm.masked.load.v16f32.p0"
        address = builder.bitcast(address, FLOATS.as_pointer())
        return call(builder, name, FLOATS, address, I32(4), mask, constant(0.0))

    return _LANES(array, index, count), generate


@intrinsic
def store(_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Write sixteen numbers to a float32 array from flat index ``index`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = pointer(context, builder, signature.args[0], arguments[0], arguments[1], F32)
        builder.store(arguments[2], builder.bitcast(address, FLOATS.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, index, value), generate


@intrinsic
def splat(_context: Any, value: Any) -> Any:
    """One float32 in all lanes."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return emit_splat(builder, arguments[0], FLOATS)

    return _LANES(types.float32), generate


def _binary(name: str) -> Any:
    @intrinsic
    def operation(_context: Any, a: Any, b: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            if name in ("fadd", "fsub", "fmul", "fdiv"):
                return getattr(builder, name)(*arguments)
            kind = ">" if name == "maximum" else "<"
            return builder.select(builder.fcmp_ordered(kind, *arguments), *arguments)

        return _LANES(a, b), generate

    return operation


maximum, minimum = _binary("maximum"), _binary("minimum")


def _operator(function: Any, name: str) -> None:
    operation = _binary(name)

    def implementation(a: Any, b: Any) -> Any:
        return operation(a, b)

    @overload(function)
    def chosen(a: Any, b: Any) -> Any:
        both = isinstance(a, _LanesType) and isinstance(b, _LanesType)
        return implementation if both else None


for _function, _name in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _operator(_function, _name)


@intrinsic
def select_greater(_context: Any, a: Any, b: Any, value: Any) -> Any:
    """``value`` in the lanes where a is larger than b, zero elsewhere."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        a, b, value = arguments
        return builder.select(builder.fcmp_ordered(">", a, b), value, constant(0.0))

    return _LANES(a, b, value), generate


@intrinsic
def multiply_add(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return emit_fma(builder, *arguments)

    return _LANES(a, b, c), generate


@intrinsic
def reduce_add(_context: Any, value: Any) -> Any:
    """Return the sum of all lanes, in a fixed order."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return reduce(builder, arguments[0], builder.fadd)

    return types.float32(value), generate


@intrinsic
def reduce_max(_context: Any, value: Any) -> Any:
    """Return the largest lane."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        def maximum_of(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        return reduce(builder, arguments[0], maximum_of)

    return types.float32(value), generate


def reduce(builder: Any, lanes: Any, join: Any) -> Any:
    """Return all lanes reduced two by two, in a fixed order."""
    count = LANES
    while count > 1:
        count //= 2
        order = ir.Constant(WORDS, [(i + count) % LANES for i in range(LANES)])
        lanes = join(lanes, builder.shuffle_vector(lanes, lanes, order))
    return builder.extract_element(lanes, I32(0))


@njit(nogil=True, inline="always")
def prefetch_all(array: Any, items: int) -> None:
    """Prefetch the first items of an array that is read soon."""
    address, size = array.ctypes.data, min(items, array.size) * array.itemsize
    for offset in range(0, size, LINE):
        _fetch(address + offset)


@intrinsic
def _fetch(_context: Any, address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        prefetch(builder, builder.inttoptr(arguments[0], _I8.as_pointer()))

    return types.void(address), generate


def prefetch(builder: Any, address: Any, level: int = 1) -> None:
    """Prefetch a cache line into the cache of the first level or of a later one."""
    address = builder.bitcast(address, _I8.as_pointer())
    name = "llvm.prefetch.p0" if llvm.llvm_version_info[0] >= 16 else "llvm.prefetch.p0i8"
    call(builder, name, ir.VoidType(), address, I32(0), I32(4 - level), I32(1))


_SHIFT = 1.5 * 2**23
"""Added to a small number it leaves the nearest whole number in the lowest bits."""

_FACTORS = Chebyshev.interpolate(np.exp2, 5, domain=[-0.5, 0.5]).convert(kind=Polynomial).coef
"""Of the polynomial that is 2 to the power of what is left, within 1e-7."""


@intrinsic
def exp(_context: Any, value: Any) -> Any:
    """exp of all lanes, within 3e-7, next to nothing below -87. Above 87 it is not defined."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        power = builder.fmul(arguments[0], constant(math.log2(math.e)))
        return _exp2(builder, power)

    return _LANES(value), generate


@intrinsic
def exp2(_context: Any, value: Any) -> Any:
    """2 to the power of all lanes, within 3e-7, next to nothing below -126."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _exp2(builder, arguments[0])

    return _LANES(value), generate


def _exp2(builder: Any, power: Any) -> Any:
    least = constant(-126.0)
    power = builder.select(builder.fcmp_ordered(">", power, least), power, least)
    shifted = builder.fadd(power, constant(_SHIFT))
    rest = builder.fsub(power, builder.fsub(shifted, constant(_SHIFT)))
    first, *others = reversed(_FACTORS.tolist())
    result = constant(first)
    for factor in others:
        result = emit_fma(builder, result, rest, constant(factor))
    exponent = builder.shl(builder.bitcast(shifted, WORDS), words(23))
    return builder.bitcast(builder.add(builder.bitcast(result, WORDS), exponent), FLOATS)
