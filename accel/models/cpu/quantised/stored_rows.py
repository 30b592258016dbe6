"""Rows of a quantised matrix, dequantised: embeddings of tokens, where their table is quantised."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.models.cpu.quantised.packed_layouts import (
    BLOCK,
    COLUMNS,
    PACKED_LAYOUTS,
    PLANE,
    SCALES,
    SUPER,
    WORDS,
)
from accel.native.numba_cache import compiled
from accel.native.simd import F32, I64

_BITS = tuple(layout.bits for layout in PACKED_LAYOUTS)
_SIGNS = tuple(1 << layout.bits - 1 if layout.is_signed else 0 for layout in PACKED_LAYOUTS)
_OFFSETS = tuple(layout.offset for layout in PACKED_LAYOUTS)
_WIDTHS = tuple(layout.width for layout in PACKED_LAYOUTS)
_PARTS = tuple(layout.parts for layout in PACKED_LAYOUTS)
_SUPER_BYTES = tuple(layout.super_bytes for layout in PACKED_LAYOUTS)
_SCALE_BYTES = tuple(layout.scale_bytes for layout in PACKED_LAYOUTS)
_MINIMUMS = tuple(int(layout.has_minimum) for layout in PACKED_LAYOUTS)


def _loaded(kind: Any, result: types.Type, convert: Any) -> Any:
    @intrinsic
    def load(_context: Any, address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            descriptor = builder.inttoptr(arguments[0], kind.as_pointer())
            return convert(builder, builder.load(descriptor))

        return result(address), generate

    return load


_byte = _loaded(ir.IntType(8), types.int64, lambda builder, value: builder.zext(value, I64))
_signed = _loaded(ir.IntType(8), types.int64, lambda builder, value: builder.sext(value, I64))
_half = _loaded(ir.HalfType(), types.float32, lambda builder, value: builder.fpext(value, F32))


@intrinsic
def _rounded(_context: Any, value: Any) -> Any:
    """Return a float32, rounded to fp16."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.fptrunc(arguments[0], ir.HalfType()), F32)

    return types.float32(value), generate


@compiled(borrows=True)
def _scale(layout: int, scales: int, block: int, part_number: int, column: int) -> np.float32:
    """Return a scale of a block of a group whose scales begin at an address, or, after all parts of
    it, its minimum."""
    count, size = _PARTS[layout] + _MINIMUMS[layout], _SUPER_BYTES[layout]
    if size == 0:
        return _half(scales + SCALES * (block * count + part_number) + 2 * column)
    first = scales + block // SUPER * SUPER * _SCALE_BYTES[layout]
    scale = _half(first + SCALES * (part_number == _PARTS[layout]) + 2 * column)
    times = _signed(first + size + COLUMNS * (block % SUPER * count + part_number) + column)
    return _rounded(scale * np.float32(times))


@compiled(borrows=True)
def _code(bits: int, width: int, planes: int, column: int, descriptor: int) -> int:
    """Return the code of a number of a block whose planes, ``width`` side by side, begin at an
    address."""
    word, byte = descriptor // 4, 4 * column + descriptor % 4
    plane = word if bits == 8 else word // 2
    address = planes + plane // width * width * PLANE + plane % width * 4
    address += 4 * width * column + descriptor % 4
    if bits == 8:
        return _byte(address)
    code = _byte(address) >> (word % 2 * 4) & 15
    more = bits - 4
    if more > 0:
        in_plane = WORDS // more
        high = _byte(planes + (WORDS // 2 + word // in_plane) * PLANE + byte)
        code |= (high >> (word % in_plane * more) & ((1 << more) - 1)) << 4
    return code


@compiled(borrows=True)
def write_row(descriptor: NDArray[np.int64], index: int, x: NDArray[np.float32], row: int) -> None:
    """Write the weights of one column of a matrix (see ``packed_layouts``) to a row of x.
    descriptor: see ``matrix.MatrixDescriptor``."""
    layout, blocks = descriptor[4], descriptor[2]
    bits, parts_per_block, width = _BITS[layout], _PARTS[layout], _WIDTHS[layout]
    sign, offset = _SIGNS[layout], np.float32(_OFFSETS[layout])
    scales_bytes = (blocks * _SCALE_BYTES[layout] + PLANE - 1) // PLANE * PLANE
    group_bytes = scales_bytes + blocks * bits * PLANE
    group, column = descriptor[1] + index // COLUMNS * group_bytes, index % COLUMNS
    for block in range(blocks):
        planes = group + scales_bytes + block * bits * PLANE
        minimum = np.float32(0)
        if _MINIMUMS[layout]:
            minimum = _scale(layout, group, block, parts_per_block, column)
        for i in range(BLOCK):
            scale = _scale(layout, group, block, i * parts_per_block // BLOCK, column)
            code = np.float32((_code(bits, width, planes, column, i) ^ sign) - sign) - offset
            x[row, block * BLOCK + i] = scale * code + minimum
