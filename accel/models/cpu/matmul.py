"""Products of few rows with a matrix, for models so small that a library's calls dominate.

A matrix [out, in] is packed once into blocks of 32 columns. The sum of a row does not depend on
which rows are computed with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.models.cpu.gemm_microkernels import (
    BLOCK,
    FAST_ROWS,
    HALF,
    IS_WIDE,
    TILE_ROWS,
    WHOLE_ROWS,
    half_of,
    tile_of,
)
from accel.native.aligned_memory import copied
from accel.native.cpu_features import FIRST_LEVEL
from accel.native.numba_cache import compiled
from accel.native.simd import F32, call

Packed = NDArray[Any]
"""Array [blocks, in, 32] of float32, int8 or the bits of fp16 as uint16."""

# Measure with `python -m tests.benchmarks forward --model FILE`.
_AHEAD = 4096
"""Words between what a few rows read and what is fetched meanwhile: weights arrive from
memory in the time that eight rows take to be computed."""

_SOON = _AHEAD if FIRST_LEVEL > 32 << 10 else _AHEAD // 2
"""The same into the first level of caches, of which no more than a third may wait to be read."""


@compiled(borrows=True)
def multiply(
    x: Packed,
    first_row: int,
    rows: int,
    w: Packed,
    blocks: int,
    in_features: int,
    out: Packed,
    column: int,
) -> None:
    """Write the products of rows of x, from ``first_row`` on, with the first ``blocks`` of w.

    x: float32 [.., in]; ``in_features``: how many rows of w's blocks count; out: float32 [rows, >=
    column + 32 * blocks], written from ``column`` on. All arrays are contiguous. Products are added
    in the order of the rows.
    """
    x_stride, out_stride = x.shape[1], out.shape[1]
    w_stride = w.shape[1] * BLOCK
    tiles = (rows + TILE_ROWS - 1) // TILE_ROWS
    height, taller = rows // tiles, rows % tiles
    soon = _SOON if rows <= FAST_ROWS else _AHEAD
    # Every tile but a single one fetches its share of the next block.
    step = BLOCK // tiles
    for block in range(blocks):
        w_at = block * w_stride
        first = 0
        for tile in range(tiles):
            count = height + (tile < taller)
            x_at = (first_row + first) * x_stride
            out_at = first * out_stride + column + block * BLOCK
            ahead = w_at + (w_stride + tile * step * in_features if tiles > 1 else soon)
            if not IS_WIDE and count > WHOLE_ROWS:
                for half in range(2):
                    offset = half * HALF
                    soon_at = w_at + w_stride + (2 * tile + half) * (step // 2) * in_features
                    inputs = x_at, x_stride, w_at + offset
                    sums = out_at + offset, out_stride, in_features, soon_at, step // 2
                    half_of(count, x, w, out, inputs + sums)
            else:
                inputs = x_at, x_stride, w_at
                sums = out_at, out_stride, in_features, ahead, step
                tile_of(count, x, w, out, inputs + sums)
            first += count


@intrinsic
def narrow(_context: Any, value: Any, like: Any) -> Any:
    """Return a float32 as the array ``like`` holds it: itself, a whole number as int8, or the bits
    of fp16 as uint16, rounded to the nearest, ties to even."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if like.dtype == types.float32:
            return arguments[0]
        if like.dtype == types.int8:
            return builder.fptosi(call(builder, "llvm.rint.f32", F32, arguments[0]), ir.IntType(8))
        half = builder.fptrunc(arguments[0], ir.HalfType())
        return builder.bitcast(half, ir.IntType(16))

    return like.dtype(types.float32, like), generate


@intrinsic
def wide(_context: Any, value: Any) -> Any:
    """Return the float32 of a number that an array holds, see ``narrow``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if value == types.float32:
            return arguments[0]
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), F32)

    return types.float32(value), generate


def packed(weight: NDArray[Any]) -> Packed:
    """Return a matrix [out, in] of float32, or of fp16's bits as uint16, with zeros up to whole
    blocks."""
    rows, in_features = weight.shape
    blocks = -(-rows // BLOCK)
    padded = np.zeros((blocks * BLOCK, in_features), weight.dtype)
    padded[:rows] = weight
    return copied(padded.reshape(blocks, BLOCK, in_features).transpose(0, 2, 1))


__all__ = ["BLOCK", "TILE_ROWS", "multiply", "narrow", "packed", "wide"]
