"""Products of few rows with a matrix, for models so small that a library's calls dominate.

A matrix [out, in] is packed once into blocks of 32 columns. bf16 numbers stand in pairs along
``in`` and are summed in fp32; where the processor has no such product, rows are widened
(``row_dtype``). The sum of a row does not depend on which rows are computed with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.models.cpu import amx as tiles
from accel.models.cpu import gemm_microkernels as kernels
from accel.models.cpu.amx import TILE_PAIRS, multiply_by_tiles
from accel.models.cpu.gemm_microkernels import (
    BLOCK,
    FAST_ROWS,
    HALF,
    IS_WIDE,
    LEAST_PAIR,
    MOST_PAIR,
    TILE_ROWS,
    WHOLE_ROWS,
    half_of,
    pair_of,
    tile_of,
)
from accel.native import simd
from accel.native.aligned_memory import copied
from accel.native.cpu_features import FIRST_LEVEL, HAS_BF16, HAS_TILES
from accel.native.numba_cache import compiled_with
from accel.native.simd import F32, I32, call

Packed = NDArray[Any]
"""float32 [blocks, in, 32], the same of int8 or of the bits of fp16 as uint16, or pairs of bf16 as
int32 [blocks, in / 2, 32]."""

_AHEAD = 4096
"""Words between what a few rows read and what is fetched meanwhile: weights arrive from
memory in the time that eight bf16 rows take to be computed."""

_SOON = _AHEAD if FIRST_LEVEL > 32 << 10 else _AHEAD // 2
"""The same into the first level of caches, of which no more than a third may wait to be read."""


def row_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of rows that are multiplied with a matrix of ``dtype``: the
    same, or int32, bits of bf16 and zeros behind them, where no dot product takes pairs. To widen
    them for every block would take longer than their products. With fp16 and int8 they are
    float32."""
    stored = np.dtype(dtype)
    if stored in (np.uint16, np.int8):
        return np.dtype(np.float32)
    return np.dtype(np.int32) if stored == np.int16 and not HAS_BF16 else stored


@compiled_with(kernels, simd, tiles, borrows=True)
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
    """``multiply_in_order``, but for bf16 in the order of ``tiles`` where the processor has such,
    which depends on nothing but ``in_features``."""
    if HAS_TILES and x.itemsize == 2 and in_features % TILE_PAIRS == 0:
        multiply_by_tiles(x, first_row, rows, w, blocks, in_features, out, column)
    else:
        multiply_in_order(x, first_row, rows, w, blocks, in_features, out, column)


@compiled_with(kernels, simd, borrows=True)
def multiply_in_order(
    x: Packed,
    first_row: int,
    rows: int,
    w: Packed,
    blocks: int,
    in_features: int,
    out: Packed,
    column: int,
    skipped: int = 0,
) -> None:
    """Write the products of rows of x, from ``first_row`` on, with the first ``blocks`` of w.

    x: float32 or the bits of bf16 as int16 [.., in], or see ``row_dtype``; ``in_features``: how
    many rows of w's blocks count, behind those ``skipped``; out: float32 [rows, >= column + 32 *
    blocks], written from ``column`` on. All arrays are contiguous. Products are added in the order
    of the rows.
    """
    x_stride, out_stride = x.shape[1] * x.itemsize // 4, out.shape[1]
    w_stride = w.shape[1] * BLOCK
    tiles = (rows + TILE_ROWS - 1) // TILE_ROWS
    height, taller = rows // tiles, rows % tiles
    paired = tiles > 1 and height >= LEAST_PAIR and height + (taller > 0) <= MOST_PAIR
    soon = _SOON if rows <= FAST_ROWS else _AHEAD
    block = 0
    while block < blocks:
        at_once = 2 if paired and block + 1 < blocks else 1
        w_at = block * w_stride + skipped * BLOCK
        # Every tile but a single one fetches its share of the next blocks.
        step = at_once * BLOCK // tiles
        first = 0
        for tile in range(tiles):
            count = height + (tile < taller)
            x_at = (first_row + first) * x_stride
            out_at = first * out_stride + column + block * BLOCK
            ahead = w_at + (at_once * w_stride + tile * step * in_features if tiles > 1 else soon)
            if at_once == 2:
                pair_of(
                    count,
                    x,
                    x_at,
                    x_stride,
                    w,
                    w_at,
                    w_stride,
                    out,
                    out_at,
                    out_stride,
                    in_features,
                    ahead,
                    step,
                )
            elif not IS_WIDE and count > WHOLE_ROWS:
                for half in range(2):
                    at = half * HALF
                    half_of(
                        count,
                        x,
                        x_at,
                        x_stride,
                        w,
                        w_at + at,
                        out,
                        out_at + at,
                        out_stride,
                        in_features,
                        w_at + w_stride + (2 * tile + half) * (step // 2) * in_features,
                        step // 2,
                    )
            else:
                tile_of(
                    count,
                    x,
                    x_at,
                    x_stride,
                    w,
                    w_at,
                    out,
                    out_at,
                    out_stride,
                    in_features,
                    ahead,
                    step,
                )
            first += count
        block += at_once


@intrinsic
def narrow(_context: Any, value: Any, like: Any) -> Any:
    """A float32 as the array ``like`` holds it: itself, a whole number as int8, the bits of fp16 as
    uint16, or those of bf16 as int16 or, in int32, with zeros behind them, rounded to the nearest,
    ties to even."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if like.dtype == types.float32:
            return arguments[0]
        if like.dtype == types.int8:
            return builder.fptosi(call(builder, "llvm.rint.f32", F32, arguments[0]), ir.IntType(8))
        if like.dtype == types.uint16:
            half = builder.fptrunc(arguments[0], ir.HalfType())
            return builder.bitcast(half, ir.IntType(16))
        bits = builder.bitcast(arguments[0], I32)
        odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
        rounded = builder.add(bits, builder.add(odd, I32(0x7FFF)))
        if like.dtype == types.int32:
            return builder.and_(rounded, I32(-65536))
        return builder.trunc(builder.lshr(rounded, I32(16)), ir.IntType(16))

    return like.dtype(types.float32, like), generate


@intrinsic
def wide(_context: Any, value: Any) -> Any:
    """The float32 of a number that an array holds, see ``narrow``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if value == types.float32:
            return arguments[0]
        if value == types.int32:
            return builder.bitcast(arguments[0], F32)
        if value == types.uint16:
            return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), F32)
        bits = builder.shl(builder.zext(arguments[0], I32), I32(16))
        return builder.bitcast(bits, F32)

    return types.float32(value), generate


def rounded_bits(numbers: NDArray[np.float32]) -> NDArray[np.int16]:
    """The bits of the nearest bf16, ties to even."""
    bits = np.ascontiguousarray(numbers).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view(np.int16)


def packed(weight: NDArray[Any]) -> Packed:
    """A matrix [out, in] of float32, or of bits, fp16 as uint16 or bf16 as int16, with zeros up to
    whole blocks."""
    rows, in_features = weight.shape
    blocks = -(-rows // BLOCK)
    whole = np.zeros((blocks * BLOCK, in_features), weight.dtype)
    whole[:rows] = weight
    if weight.dtype != np.int16:
        return copied(whole.reshape(blocks, BLOCK, in_features).transpose(0, 2, 1))
    assert in_features % 2 == 0, "bf16 numbers stand in pairs"
    pairs = whole.reshape(blocks, BLOCK, in_features // 2, 2).transpose(0, 2, 1, 3)
    return copied(pairs).view(np.int32)[..., 0]


__all__ = [
    "BLOCK",
    "TILE_ROWS",
    "multiply",
    "narrow",
    "packed",
    "rounded_bits",
    "row_dtype",
    "wide",
]
