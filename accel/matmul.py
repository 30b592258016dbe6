"""Products of few rows with a matrix, for models so small that a library's calls dominate.

A matrix [out, in] is packed once into blocks of 32 columns; a kernel keeps the sums of a few rows
and one block in registers while it reads the block once, so up to eight rows cost little more than
one. bf16 numbers stand in pairs along ``in``, as the processor's dot product takes them, and are
summed in fp32. The sum of a row does not depend on which rows are computed with it.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

Packed = NDArray[Any]
"""float32 [blocks, in, 32], or pairs of bf16 as int32 [blocks, in / 2, 32]."""

BLOCK = 32
_LANES = 16


def _features() -> set[str]:
    try:
        return {name for name, here in llvm.get_host_cpu_features().items() if here}
    except RuntimeError:
        return set()


_FEATURES = _features()
_DOT_PRODUCT = "avx512bf16" in _FEATURES and llvm.llvm_version_info[0] >= 16
TILE_ROWS = 8 if "avx512f" in _FEATURES else 3
"""Rows whose sums fit into the registers."""

_F32, _I32, _I64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_FLOATS, _WORDS = ir.VectorType(_F32, _LANES), ir.VectorType(_I32, _LANES)


class _BFloat(ir.types.Type):
    """LLVM's bf16, which llvmlite does not name."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


def _broadcast(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, _I32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_WORDS, [0] * _LANES))


def _multiply_add(builder: Any, total: Any, weights: Any, value: Any) -> Any:
    """``total`` [16] plus weights [16] times one value: fp32, or a pair of bf16."""
    fma = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
    if value.type == _F32:
        function = cgutils.get_or_insert_function(builder.module, fma, "llvm.fma.v16f32")
        return builder.call(function, [_broadcast(builder, value, _FLOATS), weights, total])
    if _DOT_PRODUCT:
        pairs = ir.VectorType(_BFloat(), 2 * _LANES)
        dot = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(_FLOATS, [_FLOATS, pairs, pairs]),
            "llvm.x86.avx512bf16.dpbf16ps.512",
        )
        words = _broadcast(builder, value, _WORDS)
        return builder.call(
            dot, [total, builder.bitcast(weights, pairs), builder.bitcast(words, pairs)]
        )
    function = cgutils.get_or_insert_function(builder.module, fma, "llvm.fma.v16f32")
    words = _broadcast(builder, value, _WORDS)
    for widen in (
        lambda pair: builder.shl(pair, ir.Constant(_WORDS, [16] * _LANES)),
        lambda pair: builder.and_(pair, ir.Constant(_WORDS, [-65536] * _LANES)),
    ):
        here, there = (builder.bitcast(widen(each), _FLOATS) for each in (words, weights))
        total = builder.call(function, [here, there, total])
    return total


def _tile(rows: int) -> Any:
    """A kernel for ``rows`` rows and one block.

    ``tile(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)`` writes
    ``out[out_at + r * out_stride :][:32]``, the sums over ``k`` below ``depth`` of
    ``x[x_at + r * x_stride + k] * w[w_at + 32 * k :][:32]``. Arrays are taken as flat memory.
    """

    @intrinsic
    def tile(
        _context: Any,
        x: Any,
        x_at: Any,
        x_stride: Any,
        w: Any,
        w_at: Any,
        out: Any,
        out_at: Any,
        out_stride: Any,
        depth: Any,
    ) -> Any:
        signature = types.void(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)
        element, vector = (_F32, _FLOATS) if w.dtype == types.float32 else (_I32, _WORDS)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def pointer(place: int, kind: Any) -> Any:
                array = context.make_array(signature.args[place])
                data = array(context, builder, arguments[place]).data
                start = builder.bitcast(data, kind.as_pointer())
                return builder.gep(start, [arguments[place + 1]])

            inputs, weights, sums = pointer(0, element), pointer(3, element), pointer(5, _F32)
            starts = [
                builder.gep(inputs, [builder.mul(arguments[2], _I64(row))]) for row in range(rows)
            ]
            before = builder.block
            loop = builder.append_basic_block("depth")
            after = builder.append_basic_block("done")
            builder.branch(loop)
            builder.position_at_end(loop)
            k = builder.phi(_I64)
            k.add_incoming(_I64(0), before)
            halves = range(BLOCK // _LANES)
            totals = [[builder.phi(_FLOATS) for _ in halves] for _ in starts]
            loaded = []
            for half in halves:
                place = builder.add(builder.mul(k, _I64(BLOCK)), _I64(half * _LANES))
                at = builder.bitcast(builder.gep(weights, [place]), vector.as_pointer())
                loaded.append(builder.load(at, align=4))
            following = builder.add(k, _I64(1))
            ends = []
            for start, row_totals in zip(starts, totals, strict=True):
                value = builder.load(builder.gep(start, [k]))
                ends.append(
                    [
                        _multiply_add(builder, total, words, value)
                        for total, words in zip(row_totals, loaded, strict=True)
                    ]
                )
            k.add_incoming(following, loop)
            for row_totals, row_ends in zip(totals, ends, strict=True):
                for total, end in zip(row_totals, row_ends, strict=True):
                    total.add_incoming(ir.Constant(_FLOATS, [0.0] * _LANES), before)
                    total.add_incoming(end, loop)
            builder.cbranch(builder.icmp_signed("<", following, arguments[8]), loop, after)
            builder.position_at_end(after)
            for row, row_ends in enumerate(ends):
                for half, end in enumerate(row_ends):
                    place = builder.add(builder.mul(arguments[7], _I64(row)), _I64(half * _LANES))
                    at = builder.bitcast(builder.gep(sums, [place]), _FLOATS.as_pointer())
                    builder.store(end, at, align=4)
            return context.get_dummy_value()

        return signature, generate

    return tile


_tile1, _tile2, _tile3, _tile4 = _tile(1), _tile(2), _tile(3), _tile(4)
_tile5, _tile6, _tile7, _tile8 = _tile(5), _tile(6), _tile(7), _tile(8)


@njit(nogil=True, cache=True)
def _tile_of(rows, x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth):  # type: ignore[no-untyped-def]
    if rows == 1:
        _tile1(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)
    elif rows == 2:
        _tile2(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)
    elif rows == 3:
        _tile3(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)
    elif rows == 4:
        _tile4(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)
    elif rows == 5:
        _tile5(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)
    elif rows == 6:
        _tile6(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)
    elif rows == 7:
        _tile7(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)
    else:
        _tile8(x, x_at, x_stride, w, w_at, out, out_at, out_stride, depth)


@njit(nogil=True, cache=True)
def multiply(
    x: Packed, first_row: int, rows: int, w: Packed, blocks: int, depth: int, out: Packed
) -> None:
    """Write the products of rows of x, from ``first_row`` on, with the first ``blocks`` of w.

    x: float32 or the bits of bf16 as int16 [.., in]; ``depth``: how many of the rows of w's blocks
    count; out: float32 [rows, >= 32 * blocks]. All arrays are contiguous.
    """
    x_stride, out_stride = x.shape[1] * x.itemsize // 4, out.shape[1]
    w_stride = w.shape[1] * BLOCK
    for block in range(blocks):
        for first in range(0, rows, TILE_ROWS):
            _tile_of(
                min(rows - first, TILE_ROWS),
                x,
                (first_row + first) * x_stride,
                x_stride,
                w,
                block * w_stride,
                out,
                first * out_stride + block * BLOCK,
                out_stride,
                depth,
            )


@intrinsic
def float_of(_context: Any, bits: Any) -> Any:
    """The float32 with the bits of an int32."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], _F32)

    return types.float32(types.int32), generate


@intrinsic
def narrow(_context: Any, value: Any, like: Any) -> Any:
    """A float32 as the array ``like`` holds it: itself, or the bits of bf16 as int16, rounded to
    the nearest, ties to even."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if like.dtype == types.float32:
            return arguments[0]
        bits = builder.bitcast(arguments[0], _I32)
        odd = builder.and_(builder.lshr(bits, _I32(16)), _I32(1))
        rounded = builder.add(bits, builder.add(odd, _I32(0x7FFF)))
        return builder.trunc(builder.lshr(rounded, _I32(16)), ir.IntType(16))

    return like.dtype(types.float32, like), generate


@intrinsic
def wide(_context: Any, value: Any) -> Any:
    """The float32 of a number that an array holds, see ``narrow``."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if value == types.float32:
            return arguments[0]
        bits = builder.shl(builder.zext(arguments[0], _I32), _I32(16))
        return builder.bitcast(bits, _F32)

    return types.float32(value), generate


def packed(weight: NDArray[Any]) -> Packed:
    """A matrix [out, in] of float32, or of bf16 bits as int16, with zeros up to whole blocks."""
    rows, depth = weight.shape
    blocks = -(-rows // BLOCK)
    whole = np.zeros((blocks * BLOCK, depth), weight.dtype)
    whole[:rows] = weight
    if weight.dtype == np.float32:
        return np.ascontiguousarray(whole.reshape(blocks, BLOCK, depth).transpose(0, 2, 1))
    assert depth % 2 == 0, "bf16 numbers stand in pairs"
    pairs = whole.reshape(blocks, BLOCK, depth // 2, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(pairs).view(np.int32)[..., 0]


__all__ = ["BLOCK", "TILE_ROWS", "float_of", "multiply", "narrow", "packed", "wide"]
