"""Sums of many fp32 numbers, sixteen at once, that do not depend on the order of the numbers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from accel.native.simd import I32, I64, LANES, WORDS, constant, emit_splat, reduce, words

_DOUBLE = ir.DoubleType()
_DOUBLES = ir.VectorType(_DOUBLE, LANES)


class _SumsType(types.Type):
    def __init__(self, *, is_fixed: bool) -> None:
        self.is_fixed = is_fixed
        super().__init__("FixedSums" if is_fixed else "Sums")


@register_model(_SumsType)
class _SumsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, WORDS if kind.is_fixed else _DOUBLES)


_FIXED_POINT = 19
_GRID = 1.5 * 2.0 ** (23 - _FIXED_POINT)
"""Added to a number from 0 to 1 it leaves, in the lowest bits, how many 2 ** -19 that is."""

MOST_SUMMED = LANES << (31 - _FIXED_POINT)


@intrinsic
def no_sums(_context: Any, like: Any) -> Any:
    """Sixteen sums of numbers from 0 to 1 that are the same in whatever order these are added, and
    whatever stands between that is next to nothing. They are fp64, rounded to fp32 in the end;
    where ``like`` has bf16 multiples of 2 ** -19, of ``MOST_SUMMED`` numbers, which takes a third
    of the work."""
    kind = _SumsType(is_fixed=like.dtype != types.float32)

    def generate(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return words(0) if kind.is_fixed else ir.Constant(_DOUBLES, [0.0] * LANES)

    return kind(like), generate


@intrinsic
def add_to(_context: Any, sums: Any, value: Any) -> Any:
    """Sums with a lane added to each."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        before, added = arguments
        if not sums.is_fixed:
            return builder.fadd(before, builder.fpext(added, _DOUBLES))
        found = builder.bitcast(builder.fadd(added, constant(_GRID)), WORDS)
        return builder.add(before, found)

    return sums(sums, value), generate


@intrinsic
def sum_of(_context: Any, sums: Any, times: Any) -> Any:
    """All sums together, float64, to which lanes were added so many ``times``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        found, count = arguments
        if not sums.is_fixed:
            return reduce(builder, found, builder.fadd)
        grid = builder.bitcast(constant(_GRID), WORDS)
        beside = builder.mul(emit_splat(builder, builder.trunc(count, I32), WORDS), grid)
        found = builder.zext(builder.sub(found, beside), ir.VectorType(I64, LANES))
        whole = builder.uitofp(reduce(builder, found, builder.add), _DOUBLE)
        return builder.fmul(whole, ir.Constant(_DOUBLE, 2.0**-_FIXED_POINT))

    return types.float64(sums, types.int64), generate
