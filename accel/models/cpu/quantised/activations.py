"""Activations quantised to int8 in blocks of 32, each a line of the cache: codes, scale, and what
the sum of the codes takes from products with unsigned weights (as ``block_q8_1`` of llama.cpp)."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.models.cpu.quantised.packed_layouts import BLOCK, EIGHT, FOUR, SIX
from accel.native.numba_cache import compiled
from accel.native.simd import F32, FLOATS, I32, I64, LANES, WORDS, call, emit_splat, reduce

Q8Blocks = NDArray[np.int8]
"""int8 [rows, blocks, 64]."""

Q8_BYTES = 64
"""Bytes of a block."""

SCALE, SUM = 32, 36
"""Offsets in a block of its scale and of the sum of its codes times the scale, both float32."""

CORRECTIONS = {FOUR.bits: (40, 40), EIGHT.bits: (44, 44), SIX.bits: (48, 52)}
"""By the bits of weights with an offset, where a block has, as int32, minus this offset times the
sum of its codes: of all, or of those of each half."""

_MOST = 127.0
_BYTES = ir.VectorType(ir.IntType(8), LANES)


@intrinsic
def _quantise(_context: Any, source: Any, target: Any) -> Any:
    """Quantise 32 float32 from one address on, and write the block to another."""

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
        most = reduce(builder, larger(*sizes), larger)
        is_zero = builder.fcmp_ordered("==", most, F32(0))
        factor = builder.select(is_zero, F32(0), builder.fdiv(F32(_MOST), most))
        scale = builder.fdiv(most, F32(_MOST))
        sums = []
        for index, half in enumerate(halves):
            scaled = builder.fmul(half, emit_splat(builder, factor, FLOATS))
            codes = builder.fptosi(call(builder, "llvm.rint.v16f32", FLOATS, scaled), WORDS)
            put(LANES * index, builder.trunc(codes, _BYTES))
            sums.append(call(builder, "llvm.vector.reduce.add.v16i32", I32, codes))
        total = builder.add(*sums)
        put(SCALE, scale)
        put(SUM, builder.fmul(scale, builder.sitofp(total, F32)))
        for layout in (FOUR, EIGHT, SIX):
            totals = sums if layout.parts == 2 else [total]
            for index, total_of_part in zip(CORRECTIONS[layout.bits], totals, strict=False):
                put(index, builder.mul(total_of_part, I32(-layout.offset)))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@compiled(borrows=True)
def quantise_blocks(x: NDArray[np.float32], row: int, first: int, last: int, q8: Q8Blocks) -> None:
    """Quantise a row's blocks from ``first`` to before ``last``. x: float32 [.., in],
    both contiguous."""
    before = row * (x.shape[1] // BLOCK)
    quantise_from(x, (before + first) * BLOCK, q8, before + first, last - first)


@compiled(borrows=True)
def quantise_from(
    x: NDArray[np.float32], start: int, q8: Q8Blocks, first: int, blocks: int
) -> None:
    """Quantise numbers from flat index ``start`` on to ``blocks`` blocks of ``q8``, from ``first``
    on of all rows'."""
    source, target = x.ctypes.data + 4 * start, q8.ctypes.data + first * Q8_BYTES
    for block in range(blocks):
        _quantise(source + block * 4 * BLOCK, target + block * Q8_BYTES)


@compiled(borrows=True)
def quantise_rows(x: NDArray[np.float32], rows: int, q8: Q8Blocks) -> None:
    """Quantise the first ``rows`` rows of x, float32 [.., in], both contiguous."""
    for row in range(rows):
        quantise_blocks(x, row, 0, x.shape[1] // BLOCK, q8)
