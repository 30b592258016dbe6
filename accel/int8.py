"""Products of one row with a small matrix in int8, for what may be a little wrong, as drafts may.

Half of the bytes of bf16, and what a matrix costs that lies in no near cache is to bring it there.
A matrix [out, in] has one scale a column, a row of inputs one for all; sums are whole numbers, so
they do not depend on their order.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel import lanes
from accel.lanes import (
    F32,
    FLOATS,
    I16,
    I32,
    I64,
    LANES,
    WORDS,
    call,
    everywhere,
    fill,
    highest,
    larger,
    load,
    nearest,
    pointer,
    store,
    total,
    words,
)
from accel.matmul import BLOCK
from accel.memory import copied
from accel.processor import FEATURES
from accel.sources.compiled import compiled_with

Floats = NDArray[np.float32]
Codes = NDArray[np.int8]

_MOST = 127.0
_ZERO = 128
"""Weights are stored without a sign, so many higher: processors multiply such with signed ones."""

_PACK = 4
"""Numbers in a word."""

_HAS_DOTS = "avx512vnni" in FEATURES
"""Dot products of words, four numbers each."""

_UNROLLED = 4 if _HAS_DOTS else 1
"""Words of a column at once: a sum waits for the one before it. Without dot products there is
enough to do meanwhile, and no register left."""

_WORDS_OF_16 = ir.VectorType(I16, 2 * LANES)


class Int8(NamedTuple):
    """A matrix [out, in].

    words: int32 [blocks, in / 4, 32], four weights of a column each, ``_ZERO`` higher; scales:
    float32 [out], what a column's weights count.
    """

    words: NDArray[np.int32]
    scales: Floats

    @classmethod
    def of(cls, matrix: Floats) -> Int8:
        """float32 [out, in], both multiples of ``BLOCK``."""
        columns, scales = encoded(matrix)
        blocks, depth = len(columns) // BLOCK, columns.shape[1]
        packed = columns.reshape(blocks, BLOCK, depth).transpose(0, 2, 1)
        return cls(copied(packed), copied(scales))

    @property
    def depth(self) -> int:
        """Numbers of a row of inputs."""
        return _PACK * self.words.shape[1]


def encoded(matrix: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Columns in words, int32 [out, in / 4], and their scales, float32 [out]."""
    out, depth = matrix.shape
    assert depth % (_PACK * _UNROLLED) == 0, "words of a column are taken several at once"
    most = np.maximum(np.abs(matrix).max(1), np.float32(1e-12))
    scales = (most / np.float32(_MOST)).astype(np.float32)
    codes = (np.rint(matrix / scales[:, None]) + _ZERO).astype(np.uint8)
    return np.ascontiguousarray(codes).view(np.int32).reshape(out, depth // _PACK), scales


@compiled_with(lanes, borrows=True)
def _encode(x: Floats, codes: Codes) -> tuple[float, int]:
    """Write a row of inputs in int8; returns what one counts, and ``_ZERO`` times their sum."""
    zero = everywhere(np.float32(0))
    most = zero
    for i in range(0, len(x), LANES):
        value = load(x, i)
        most = larger(most, larger(value, zero - value))
    most_of_all = max(highest(most), np.float32(1e-12))
    factor, summed = everywhere(np.float32(_MOST) / most_of_all), zero
    for i in range(0, len(x), LANES):
        code = nearest(load(x, i) * factor)
        store(codes, i, code)
        summed = summed + code
    return most_of_all / np.float32(_MOST), np.int32(total(summed)) * _ZERO


def _dot(builder: Any, total: Any, weights: Any, values: Any) -> Any:
    """``total`` [16 x int32] plus, of each word, the sum of four products: weights have no sign."""
    if _HAS_DOTS:
        return call(builder, "llvm.x86.avx512.vpdpbusd.512", WORDS, total, weights, values)
    if "avx2" in FEATURES:
        eight = ir.Constant(_WORDS_OF_16, [8] * 2 * LANES)
        both, given = (builder.bitcast(each, _WORDS_OF_16) for each in (weights, values))
        first = builder.and_(both, ir.Constant(_WORDS_OF_16, [255] * 2 * LANES))
        total = builder.add(
            total, _pairs(builder, first, builder.ashr(builder.shl(given, eight), eight))
        )
        second = builder.lshr(both, eight)
        return builder.add(total, _pairs(builder, second, builder.ashr(given, eight)))
    for place in range(_PACK):
        weight = builder.and_(builder.lshr(weights, words(8 * place)), words(255))
        value = builder.ashr(builder.shl(values, words(24 - 8 * place)), words(24))
        total = builder.add(total, builder.mul(weight, value))
    return total


def _pairs(builder: Any, a: Any, b: Any) -> Any:
    """[16 x int32], of each the sum of two products [32 x int16], by registers of 256 bits."""
    name, result = "llvm.x86.avx2.pmadd.wd", ir.VectorType(I32, LANES // 2)
    halves = []
    for first in (0, LANES):
        order = ir.Constant(WORDS, list(range(first, first + LANES)))
        parts = (builder.shuffle_vector(each, each, order) for each in (a, b))
        halves.append(call(builder, name, result, *parts))
    return builder.shuffle_vector(*halves, ir.Constant(WORDS, list(range(LANES))))


@intrinsic
def _block(
    _context: Any,
    codes: Any,
    w: Any,
    w_at: Any,
    depth: Any,
    scales: Any,
    out: Any,
    column: Any,
    scale: Any,
    offset: Any,
) -> Any:
    """Write the products with one block of columns, whose words stand from ``w_at`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def start(place: int, kind: Any, at: Any) -> Any:
            return pointer(context, builder, signature.args[place], arguments[place], at, kind)

        def vector(begin: Any, kind: Any, at: Any) -> Any:
            return builder.bitcast(builder.gep(begin, [at]), kind.as_pointer())

        depth, halves = arguments[3], range(BLOCK // LANES)
        given, weights = start(0, I32, I64(0)), start(1, I32, arguments[2])
        before = builder.block
        loop, after = (builder.append_basic_block(name) for name in ("depth", "done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(I64)
        k.add_incoming(I64(0), before)
        sums = [[builder.phi(WORDS) for _ in halves] for _ in range(_UNROLLED)]
        for word, of_word in enumerate(sums):
            at = builder.add(k, I64(word))
            values = fill(builder, builder.load(builder.gep(given, [at])), WORDS)
            for half, sum_before in zip(halves, of_word, strict=True):
                place = builder.add(builder.mul(at, I64(BLOCK)), I64(half * LANES))
                read = builder.load(vector(weights, WORDS, place), align=4)
                sum_before.add_incoming(words(0), before)
                sum_before.add_incoming(_dot(builder, sum_before, read, values), loop)
        following = builder.add(k, I64(_UNROLLED))
        k.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, depth), loop, after)
        builder.position_at_end(after)
        factor = fill(builder, arguments[7], FLOATS)
        shift = fill(builder, builder.trunc(arguments[8], I32), WORDS)
        begin_scales, begin_out = start(4, F32, arguments[6]), start(5, F32, arguments[6])
        for half in halves:
            ends = [of_word[half].incomings[1][0] for of_word in sums]
            whole = builder.sub(reduce(builder.add, ends), shift)
            counts = builder.load(vector(begin_scales, FLOATS, I64(half * LANES)), align=4)
            value = builder.fmul(builder.fmul(builder.sitofp(whole, FLOATS), counts), factor)
            builder.store(value, vector(begin_out, FLOATS, I64(half * LANES)), align=4)
        return context.get_dummy_value()

    signature = types.void(codes, w, w_at, depth, scales, out, column, types.float32, types.int64)
    return signature, generate


@compiled_with(lanes, borrows=True)
def multiply_int8(x: Floats, codes: Codes, matrix: Int8, blocks: int, out: Floats) -> None:
    """Write the products of a row with the first ``blocks`` of a matrix.

    x: float32 [in]; codes: int8 [>= in], written; out: float32 [>= 32 * blocks]. All contiguous.
    """
    scale, offset = _encode(x, codes)
    depth = matrix.words.shape[1]
    for block in range(blocks):
        at, column = block * depth * BLOCK, block * BLOCK
        _block(codes, matrix.words, at, depth, matrix.scales, out, column, scale, offset)


__all__ = ["Codes", "Int8", "encoded", "multiply_int8"]
