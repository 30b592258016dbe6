"""Rows of activations in int8, for products with quantised weights.

Of each row a block of 32 numbers becomes a record, a line of the cache: its codes, what one of
them counts, and what their sum takes from products with weights that are stored without a sign. A
record depends on nothing but its 32 numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.models.cpu.quantised.forms import BLOCK, EIGHT, FOUR, SIX
from accel.native import simd
from accel.native.aligned_memory import empty
from accel.native.numba_cache import compiled_with
from accel.native.simd import F32, FLOATS, I32, I64, LANES, WORDS, call, fill, joined

Records = NDArray[np.int8]
"""int8 [rows, blocks, 64]."""

RECORD = 64
"""Bytes of a record."""

SCALE, SUM = 32, 36
"""Where a record has, as float32, what a code counts, and the sum of all in that unit."""

CORRECTIONS = {FOUR.number: (40, 40), EIGHT.number: (44, 44), SIX.number: (48, 52)}
"""Where it has, as int32, minus the form's offset times the sum of the codes: of all, or of those
of each half."""

_MOST = 127.0
_BYTES = ir.VectorType(ir.IntType(8), LANES)


def room_for_records(rows: int, depth: int) -> Records:
    """Room for rows of ``depth`` numbers."""
    assert depth % BLOCK == 0, "whole blocks"
    return empty((rows, depth // BLOCK, RECORD), np.int8)


@intrinsic
def _encode(_context: Any, source: Any, target: Any) -> Any:
    """Write the record of 32 float32 from one address on to another."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        source, target = arguments

        def at(address: Any, offset: int, kind: Any) -> Any:
            return builder.inttoptr(builder.add(address, I64(offset)), kind.as_pointer())

        def larger(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        def put(offset: int, value: Any) -> None:
            builder.store(value, at(target, offset, value.type), align=4)

        halves = [builder.load(at(source, 4 * LANES * half, FLOATS), align=4) for half in (0, 1)]
        sizes = [call(builder, "llvm.fabs.v16f32", FLOATS, half) for half in halves]
        most = joined(builder, larger(*sizes), larger)
        is_zero = builder.fcmp_ordered("==", most, F32(0))
        factor = builder.select(is_zero, F32(0), builder.fdiv(F32(_MOST), most))
        scale = builder.fdiv(most, F32(_MOST))
        sums = []
        for place, half in enumerate(halves):
            scaled = builder.fmul(half, fill(builder, factor, FLOATS))
            codes = builder.fptosi(call(builder, "llvm.rint.v16f32", FLOATS, scaled), WORDS)
            put(LANES * place, builder.trunc(codes, _BYTES))
            sums.append(call(builder, "llvm.vector.reduce.add.v16i32", I32, codes))
        total = builder.add(*sums)
        put(SCALE, scale)
        put(SUM, builder.fmul(scale, builder.sitofp(total, F32)))
        for form in (FOUR, EIGHT, SIX):
            parts = sums if form.parts == 2 else [total]
            for place, part in zip(CORRECTIONS[form.number], parts, strict=False):
                put(place, builder.mul(part, I32(-form.offset)))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@compiled_with(simd, borrows=True)
def encode_blocks(
    x: NDArray[np.float32], row: int, first: int, last: int, records: Records
) -> None:
    """Write the records of a row's blocks from ``first`` to before ``last``. x: float32 [.., in],
    both contiguous."""
    before = row * (x.shape[1] // BLOCK)
    source, target = x.ctypes.data, records.ctypes.data
    for block in range(before + first, before + last):
        _encode(source + block * 4 * BLOCK, target + block * RECORD)


@compiled_with(simd, borrows=True)
def encode_rows(x: NDArray[np.float32], rows: int, records: Records) -> None:
    """Write the records of the first ``rows`` of x, float32 [.., in], both contiguous."""
    for row in range(rows):
        encode_blocks(x, row, 0, x.shape[1] // BLOCK, records)


__all__ = [
    "CORRECTIONS",
    "RECORD",
    "SCALE",
    "SUM",
    "Records",
    "encode_blocks",
    "encode_rows",
    "room_for_records",
]
