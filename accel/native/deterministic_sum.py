"""Sums of many fp32 numbers, sixteen at once, that do not depend on the order of the numbers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from accel.native.simd import LANES, reduce

_DOUBLE = ir.DoubleType()
_DOUBLES = ir.VectorType(_DOUBLE, LANES)


class _SumsType(types.Type):
    def __init__(self) -> None:
        super().__init__("Sums")


_SUMS = _SumsType()


@register_model(_SumsType)
class _SumsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _DOUBLES)


@intrinsic
def no_sums(_context: Any) -> Any:
    """Return sixteen empty sums of numbers from 0 to 1, in fp64. Rounded to fp32 in the end, they
    are the same in any order of addition."""

    def generate(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return ir.Constant(_DOUBLES, [0.0] * LANES)

    return _SUMS(), generate


@intrinsic
def add_to(_context: Any, sums: Any, value: Any) -> Any:
    """Return sums with a lane added to each."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        before, added = arguments
        return builder.fadd(before, builder.fpext(added, _DOUBLES))

    return sums(sums, value), generate


@intrinsic
def sum_of(_context: Any, sums: Any) -> Any:
    """Return all sums together, float64."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return reduce(builder, arguments[0], builder.fadd)

    return types.float64(sums), generate
