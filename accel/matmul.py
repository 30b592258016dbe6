"""Products of few rows with a matrix, for models so small that a library's calls dominate.

A matrix [out, in] is packed once into blocks of 32 columns; a kernel keeps the sums of a few rows
and one block in registers while it reads the block once, so up to eight rows cost little more than
one. bf16 numbers stand in pairs along ``in``, as the processor's dot product takes them, and are
summed in fp32. The sum of a row does not depend on which rows are computed with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel import lanes, tiles
from accel.lanes import (
    F32,
    FLOATS,
    I32,
    I64,
    LANES,
    WORDS,
    BFloat,
    call,
    fill,
    fused,
    pointer,
    prefetch,
    words,
)
from accel.memory import copied
from accel.processor import FEATURES, HAS_BF16, HAS_TILES
from accel.sources.compiled import compiled_with
from accel.tiles import TILE_PAIRS, multiply_by_tiles

Packed = NDArray[Any]
"""float32 [blocks, in, 32], or pairs of bf16 as int32 [blocks, in / 2, 32]."""

BLOCK = 32

_AHEAD = 4096
"""Words between what a few rows read and what is fetched meanwhile: nine million weights arrive
from memory in the time that eight bf16 rows take to be computed (280 instead of 350 us)."""

TILE_ROWS = 8 if "avx512f" in FEATURES else 3
"""Rows whose sums fit into the registers."""

_LEAST_PAIR, _MOST_PAIR = (4, 6) if "avx512f" in FEATURES else (1, 0)
"""Rows whose sums over two blocks fit: fewer rows than eight wait for each other's sums."""


def _multiply_add(builder: Any, total: Any, weights: Any, value: Any) -> Any:
    """``total`` [16] plus weights [16] times one value: fp32, or a pair of bf16."""
    if value.type == F32:
        return fused(builder, fill(builder, value, FLOATS), weights, total)
    values = fill(builder, value, WORDS)
    if HAS_BF16:
        pairs = ir.VectorType(BFloat(), 2 * LANES)
        factors = (builder.bitcast(each, pairs) for each in (weights, values))
        return call(builder, "llvm.x86.avx512bf16.dpbf16ps.512", FLOATS, total, *factors)
    for widen in (
        lambda pair: builder.shl(pair, words(16)),
        lambda pair: builder.and_(pair, words(-65536)),
    ):
        here, there = (builder.bitcast(widen(each), FLOATS) for each in (values, weights))
        total = fused(builder, here, there, total)
    return total


def _tile(rows: int, blocks: int) -> Any:
    """A kernel for ``rows`` rows and ``blocks`` blocks.

    ``tile(x, x_at, x_stride, w, w_at, w_stride, out, out_at, out_stride, depth, ahead, step)``
    writes ``out[out_at + r * out_stride + 32 * b :][:32]``, the sums over ``k`` below ``depth`` of
    ``x[x_at + r * x_stride + k] * w[w_at + b * w_stride + 32 * k :][:32]``, and asks for the two
    cache lines at ``w[ahead + k * step :]`` on the way. Arrays are taken as flat memory.
    """

    @intrinsic
    def tile(
        _context: Any,
        x: Any,
        x_at: Any,
        x_stride: Any,
        w: Any,
        w_at: Any,
        w_stride: Any,
        out: Any,
        out_at: Any,
        out_stride: Any,
        depth: Any,
        ahead: Any,
        step: Any,
    ) -> Any:
        signature = types.void(
            x, x_at, x_stride, w, w_at, w_stride, out, out_at, out_stride, depth, ahead, step
        )
        element, vector = (F32, FLOATS) if w.dtype == types.float32 else (I32, WORDS)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x_stride, w_stride, out_stride, depth = (arguments[place] for place in (2, 5, 8, 9))

            def start(place: int, kind: Any, at: Any) -> Any:
                array = signature.args[place], arguments[place]
                return pointer(context, builder, *array, at, kind)

            def offset(value: Any, count: int) -> Any:
                return builder.mul(value, I64(count))

            inputs = start(0, element, arguments[1])
            weights = start(3, element, arguments[4])
            wanted = start(3, element, arguments[10])
            sums = start(6, F32, arguments[7])
            starts = [builder.gep(inputs, [offset(x_stride, row)]) for row in range(rows)]
            panels = [builder.gep(weights, [offset(w_stride, each)]) for each in range(blocks)]
            before = builder.block
            loop = builder.append_basic_block("depth")
            after = builder.append_basic_block("done")
            builder.branch(loop)
            builder.position_at_end(loop)
            k = builder.phi(I64)
            k.add_incoming(I64(0), before)
            halves = range(BLOCK // LANES)
            totals = [[builder.phi(FLOATS) for _ in panels for _ in halves] for _ in starts]
            loaded = []
            for panel in panels:
                for half in halves:
                    place = builder.add(offset(k, BLOCK), I64(half * LANES))
                    at = builder.bitcast(builder.gep(panel, [place]), vector.as_pointer())
                    loaded.append(builder.load(at, align=4))
            for line in range(2):
                place = builder.add(builder.mul(k, arguments[11]), I64(line * LANES))
                prefetch(builder, builder.gep(wanted, [place]))
            following = builder.add(k, I64(1))
            ends = []
            for begin, row_totals in zip(starts, totals, strict=True):
                value = builder.load(builder.gep(begin, [k]))
                ends.append(
                    [
                        _multiply_add(builder, total, words, value)
                        for total, words in zip(row_totals, loaded, strict=True)
                    ]
                )
            k.add_incoming(following, loop)
            for row_totals, row_ends in zip(totals, ends, strict=True):
                for total, end in zip(row_totals, row_ends, strict=True):
                    total.add_incoming(ir.Constant(FLOATS, [0.0] * LANES), before)
                    total.add_incoming(end, loop)
            builder.cbranch(builder.icmp_signed("<", following, depth), loop, after)
            builder.position_at_end(after)
            for row, row_ends in enumerate(ends):
                for part, end in enumerate(row_ends):
                    place = builder.add(offset(out_stride, row), I64(part * LANES))
                    at = builder.bitcast(builder.gep(sums, [place]), FLOATS.as_pointer())
                    builder.store(end, at, align=4)
            return context.get_dummy_value()

        return signature, generate

    return tile


_tile1, _tile2, _tile3, _tile4 = _tile(1, 1), _tile(2, 1), _tile(3, 1), _tile(4, 1)
_tile5, _tile6, _tile7, _tile8 = _tile(5, 1), _tile(6, 1), _tile(7, 1), _tile(8, 1)
_pair4, _pair5, _pair6 = _tile(4, 2), _tile(5, 2), _tile(6, 2)


@compiled_with(lanes, borrows=True, inner=True)
def _tile_of(  # type: ignore[no-untyped-def]
    rows, x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth, ahead, step
):
    if rows == 1:
        _tile1(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, depth, ahead, step)
    elif rows == 2:
        _tile2(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, depth, ahead, step)
    elif rows == 3:
        _tile3(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, depth, ahead, step)
    elif rows == 4:
        _tile4(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, depth, ahead, step)
    elif rows == 5:
        _tile5(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, depth, ahead, step)
    elif rows == 6:
        _tile6(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, depth, ahead, step)
    elif rows == 7:
        _tile7(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, depth, ahead, step)
    else:
        _tile8(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, depth, ahead, step)


@compiled_with(lanes, borrows=True)
def _pair_of(  # type: ignore[no-untyped-def]
    rows, x, x_at, x_stride, w, w_at, w_stride, out, out_at, out_stride, depth, ahead, step
):
    if rows == 4:
        _pair4(x, x_at, x_stride, w, w_at, w_stride, out, out_at, out_stride, depth, ahead, step)
    elif rows == 5:
        _pair5(x, x_at, x_stride, w, w_at, w_stride, out, out_at, out_stride, depth, ahead, step)
    else:
        _pair6(x, x_at, x_stride, w, w_at, w_stride, out, out_at, out_stride, depth, ahead, step)


@compiled_with(lanes, tiles, borrows=True)
def multiply(
    x: Packed,
    first_row: int,
    rows: int,
    w: Packed,
    blocks: int,
    depth: int,
    out: Packed,
    column: int,
) -> None:
    """``multiply_in_order``, but for bf16 in the order of ``tiles`` where the processor has such,
    which depends on nothing but ``depth``."""
    if HAS_TILES and x.itemsize == 2 and depth % TILE_PAIRS == 0:
        multiply_by_tiles(x, first_row, rows, w, blocks, depth, out, column)
    else:
        multiply_in_order(x, first_row, rows, w, blocks, depth, out, column)


@compiled_with(lanes, borrows=True)
def multiply_in_order(
    x: Packed,
    first_row: int,
    rows: int,
    w: Packed,
    blocks: int,
    depth: int,
    out: Packed,
    column: int,
    skipped: int = 0,
) -> None:
    """Write the products of rows of x, from ``first_row`` on, with the first ``blocks`` of w.

    x: float32 or the bits of bf16 as int16 [.., in]; ``depth``: how many of the rows of w's blocks
    count, behind those ``skipped``; out: float32 [rows, >= column + 32 * blocks], written from
    ``column`` on. All arrays are contiguous. Products are added in the order of the rows.
    """
    x_stride, out_stride = x.shape[1] * x.itemsize // 4, out.shape[1]
    w_stride = w.shape[1] * BLOCK
    tiles = (rows + TILE_ROWS - 1) // TILE_ROWS
    height, taller = rows // tiles, rows % tiles
    paired = tiles > 1 and height >= _LEAST_PAIR and height + (taller > 0) <= _MOST_PAIR
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
            ahead = w_at + (at_once * w_stride + tile * step * depth if tiles > 1 else _AHEAD)
            if at_once == 2:
                _pair_of(
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
                    depth,
                    ahead,
                    step,
                )
            else:
                _tile_of(
                    count, x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth, ahead, step
                )
            first += count
        block += at_once


@intrinsic
def narrow(_context: Any, value: Any, like: Any) -> Any:
    """A float32 as the array ``like`` holds it: itself, or the bits of bf16 as int16, rounded to
    the nearest, ties to even."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if like.dtype == types.float32:
            return arguments[0]
        bits = builder.bitcast(arguments[0], I32)
        odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
        rounded = builder.add(bits, builder.add(odd, I32(0x7FFF)))
        return builder.trunc(builder.lshr(rounded, I32(16)), ir.IntType(16))

    return like.dtype(types.float32, like), generate


@intrinsic
def wide(_context: Any, value: Any) -> Any:
    """The float32 of a number that an array holds, see ``narrow``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if value == types.float32:
            return arguments[0]
        bits = builder.shl(builder.zext(arguments[0], I32), I32(16))
        return builder.bitcast(bits, F32)

    return types.float32(value), generate


def rounded_bits(numbers: NDArray[np.float32]) -> NDArray[np.int16]:
    """The bits of the nearest bf16, ties to even."""
    bits = np.ascontiguousarray(numbers).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view(np.int16)


def packed(weight: NDArray[Any]) -> Packed:
    """A matrix [out, in] of float32, or of bf16 bits as int16, with zeros up to whole blocks."""
    rows, depth = weight.shape
    blocks = -(-rows // BLOCK)
    whole = np.zeros((blocks * BLOCK, depth), weight.dtype)
    whole[:rows] = weight
    if weight.dtype == np.float32:
        return copied(whole.reshape(blocks, BLOCK, depth).transpose(0, 2, 1))
    assert depth % 2 == 0, "bf16 numbers stand in pairs"
    pairs = whole.reshape(blocks, BLOCK, depth // 2, 2).transpose(0, 2, 1, 3)
    return copied(pairs).view(np.int32)[..., 0]


__all__ = [
    "BLOCK",
    "TILE_ROWS",
    "multiply",
    "narrow",
    "packed",
    "rounded_bits",
    "wide",
]
