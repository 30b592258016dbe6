"""Kernels for products of few rows: their sums stay in registers while columns are read once.
Registers of 512 bits hold up to twelve rows with a block of 32 columns; 16 of 256 bits hold six
rows with half a block."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from accel.native.cpu_features import FEATURES
from accel.native.numba_cache import compiled
from accel.native.simd import (
    F32,
    FLOATS,
    I16,
    I64,
    LANES,
    emit_fma,
    emit_splat,
    pointer,
    prefetch,
)

BLOCK = 32
"""Columns of a matrix that are stored together."""

IS_WIDE = "avx512f" in FEATURES
"""True with 32 registers of 512 bits, false with 16 of 256 or fewer."""

TILE_ROWS = 12 if IS_WIDE else 6
"""Rows whose sums fit into the registers, those of half a block where these are not wide."""

WHOLE_ROWS = 12 if IS_WIDE else 2
"""Rows whose sums over a block fit."""

HALF = BLOCK // 2

_HALVES = ir.VectorType(I16, LANES)
"""Bits of fp16."""

_I8 = ir.IntType(8)
_BYTES = ir.VectorType(_I8, LANES)

# Measure with `python -m tests.benchmarks forward --model FILE`.
FAST_ROWS = 2
"""Rows up to which a product waits for memory: lines are prefetched into the first level of caches,
since they are read soon. With more rows they would displace data that is read meanwhile."""


def _as_floats(builder: Any, weights: Any) -> Any:
    """Return weights [16], those of fp16 and of int8 widened."""
    if weights.type == _BYTES:
        return builder.sitofp(weights, FLOATS)
    if weights.type != _HALVES:
        return weights
    return builder.fpext(builder.bitcast(weights, ir.VectorType(ir.HalfType(), LANES)), FLOATS)


def _tile(rows: int, blocks: int, columns: int = BLOCK) -> Any:
    """Return a kernel for ``rows`` rows and the first ``columns`` of each of ``blocks`` blocks.

    ``tile(x, x_at, x_stride, w, w_at, w_stride, out, out_at, out_stride, in_features, ahead,
    step)`` writes ``out[out_at + r * out_stride + 32 * b :][:columns]``, the sums over ``k`` below
    ``in_features`` of ``x[x_at + r * x_stride + k] * w[w_at + b * w_stride + 32 * k :][:columns]``,
    and prefetches as many cache lines as a step of a block has at ``w[ahead + k * step :]``.
    Arrays are taken as flat memory.
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
        in_features: Any,
        ahead: Any,
        step: Any,
    ) -> Any:
        signature = types.void(
            x, x_at, x_stride, w, w_at, w_stride, out, out_at, out_stride, in_features, ahead, step
        )
        narrow = {types.uint16: (I16, _HALVES), types.int8: (_I8, _BYTES)}
        weight, weights_of = narrow.get(w.dtype, (F32, FLOATS))

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x_stride, w_stride, out_stride, in_features = (
                arguments[index] for index in (2, 5, 8, 9)
            )

            def start(index: int, kind: Any, address: Any) -> Any:
                array = signature.args[index], arguments[index]
                return pointer(context, builder, *array, address, kind)

            def offset(value: Any, count: int) -> Any:
                return builder.mul(value, I64(count))

            inputs = start(0, F32, arguments[1])
            weights = start(3, weight, arguments[4])
            fetched = start(3, weight, arguments[10])
            sums = start(6, F32, arguments[7])
            starts = [builder.gep(inputs, [offset(x_stride, row)]) for row in range(rows)]
            panels = [builder.gep(weights, [offset(w_stride, each)]) for each in range(blocks)]
            before = builder.block
            loop = builder.append_basic_block("in_features")
            after = builder.append_basic_block("done")
            builder.branch(loop)
            builder.position_at_end(loop)
            k = builder.phi(I64)
            k.add_incoming(I64(0), before)
            spans = range(columns // LANES)
            totals = [[builder.phi(FLOATS) for _ in panels for _ in spans] for _ in starts]
            loaded = []
            for panel in panels:
                for span in spans:
                    index = builder.add(offset(k, BLOCK), I64(span * LANES))
                    address = builder.bitcast(builder.gep(panel, [index]), weights_of.as_pointer())
                    loaded.append(_as_floats(builder, builder.load(address, align=2)))
            for line in spans:
                index = builder.add(builder.mul(k, arguments[11]), I64(line * LANES))
                prefetch(
                    builder, builder.gep(fetched, [index]), level=1 if rows <= FAST_ROWS else 2
                )
            following = builder.add(k, I64(1))
            values = [
                emit_splat(builder, builder.load(builder.gep(row, [k])), FLOATS) for row in starts
            ]
            ends = [
                [
                    emit_fma(builder, value, weights, total)
                    for total, weights in zip(row_totals, loaded, strict=True)
                ]
                for row_totals, value in zip(totals, values, strict=True)
            ]
            k.add_incoming(following, loop)
            for row_totals, row_ends in zip(totals, ends, strict=True):
                for total, end in zip(row_totals, row_ends, strict=True):
                    total.add_incoming(ir.Constant(FLOATS, [0.0] * LANES), before)
                    total.add_incoming(end, loop)
            builder.cbranch(builder.icmp_signed("<", following, in_features), loop, after)
            builder.position_at_end(after)
            for row, row_ends in enumerate(ends):
                for row_part, end in enumerate(row_ends):
                    index = builder.add(offset(out_stride, row), I64(row_part * LANES))
                    address = builder.bitcast(builder.gep(sums, [index]), FLOATS.as_pointer())
                    builder.store(end, address, align=4)
            return context.get_dummy_value()

        return signature, generate

    return tile


_tile1, _tile2, _tile3, _tile4 = _tile(1, 1), _tile(2, 1), _tile(3, 1), _tile(4, 1)
_tile5, _tile6, _tile7, _tile8 = _tile(5, 1), _tile(6, 1), _tile(7, 1), _tile(8, 1)
_tile9, _tile10, _tile11, _tile12 = _tile(9, 1), _tile(10, 1), _tile(11, 1), _tile(12, 1)
_half3, _half4, _half5, _half6 = (_tile(rows, 1, HALF) for rows in range(3, 7))


@compiled(borrows=True, inner=True)
def tile_of(  # type: ignore[no-untyped-def]
    rows, x, x_at, x_stride, w, w_at, out, out_at, out_stride, in_features, ahead, step
):
    if rows == 1:
        _tile1(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 2:
        _tile2(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 3 or not IS_WIDE:
        _tile3(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 4:
        _tile4(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 5:
        _tile5(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 6:
        _tile6(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 7:
        _tile7(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 8:
        _tile8(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 9:
        _tile9(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 10:
        _tile10(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 11:
        _tile11(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    else:
        _tile12(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)


@compiled(borrows=True, inner=True)
def half_of(  # type: ignore[no-untyped-def]
    rows, x, x_at, x_stride, w, w_at, out, out_at, out_stride, in_features, ahead, step
):
    if rows == 3:
        _half3(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 4:
        _half4(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    elif rows == 5:
        _half5(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
    else:
        _half6(x, x_at, x_stride, w, w_at, 0, out, out_at, out_stride, in_features, ahead, step)
