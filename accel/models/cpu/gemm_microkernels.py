"""Kernels for products of few rows: their sums stay in registers while columns are read once.
Registers of 512 bits hold up to twelve rows with a block of 32 columns; 16 of 256 bits hold six
rows with half a block."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from accel.native.cpu_features import FEATURES
from accel.native.simd import F32, FLOATS, I16, I64, LANES, emit_fma, emit_splat, pointer, prefetch

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


def _write_tile(
    builder: Any, rows: int, columns: int, pointers: tuple[Any, ...], sizes: Any
) -> None:
    """Generate code for ``rows`` rows and the first ``columns`` of a block, see ``_tile_of``.
    pointers: to the inputs, the weights and their number of a kind, what is fetched and the sums;
    sizes: the strides of inputs and sums, in_features, and the step."""
    inputs, weights, weights_of, fetched, sums = pointers
    x_stride, out_stride, in_features, step = sizes

    def offset(value: Any, count: int) -> Any:
        return builder.mul(value, I64(count))

    starts = [builder.gep(inputs, [offset(x_stride, row)]) for row in range(rows)]
    before = builder.block
    loop = builder.append_basic_block("in_features")
    after = builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(I64)
    k.add_incoming(I64(0), before)
    spans = range(columns // LANES)
    totals = [[builder.phi(FLOATS) for _ in spans] for _ in starts]
    loaded = []
    for span in spans:
        index = builder.add(offset(k, BLOCK), I64(span * LANES))
        address = builder.bitcast(builder.gep(weights, [index]), weights_of.as_pointer())
        loaded.append(_as_floats(builder, builder.load(address, align=2)))
    for line in spans:
        index = builder.add(builder.mul(k, step), I64(line * LANES))
        prefetch(builder, builder.gep(fetched, [index]), level=1 if rows <= FAST_ROWS else 2)
    following = builder.add(k, I64(1))
    values = [emit_splat(builder, builder.load(builder.gep(row, [k])), FLOATS) for row in starts]
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


def _tile_of(row_counts: range, columns: int) -> Any:
    """Return a kernel for some numbers of rows and the first ``columns`` of a block.

    ``tile(rows, x, w, out, (x_at, x_stride, w_at, out_at, out_stride, in_features, ahead, step))``
    writes ``out[out_at + r * out_stride :][:columns]``, the sums over ``k`` below ``in_features``
    of ``x[x_at + r * x_stride + k] * w[w_at + 32 * k :][:columns]``, and prefetches as many cache
    lines as a step of a block has at ``w[ahead + k * step :]``. Arrays are taken as flat memory.
    """

    @intrinsic
    def tile(_context: Any, rows: Any, x: Any, w: Any, out: Any, numbers: Any) -> Any:
        narrow = {types.uint16: (I16, _HALVES), types.int8: (_I8, _BYTES)}
        weight, weights_of = narrow.get(w.dtype, (F32, FLOATS))

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            own = cgutils.unpack_tuple(builder, arguments[4])
            x_at, x_stride, w_at, out_at, out_stride, in_features, ahead, step = own

            def start(index: int, kind: Any, address: Any) -> Any:
                array = signature.args[index], arguments[index]
                return pointer(context, builder, *array, address, kind)

            pointers = (
                *(start(1, F32, x_at), start(2, weight, w_at), weights_of),
                *(start(2, weight, ahead), start(3, F32, out_at)),
            )
            sizes = x_stride, out_stride, in_features, step
            done, no_such = (builder.append_basic_block(name) for name in ("written", "no_such"))
            choice = builder.switch(arguments[0], no_such)
            for count in row_counts:
                case = builder.append_basic_block(f"rows{count}")
                choice.add_case(I64(count), case)
                builder.position_at_end(case)
                _write_tile(builder, count, columns, pointers, sizes)
                builder.branch(done)
            builder.position_at_end(no_such)
            builder.unreachable()
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(types.int64, x, w, out, numbers), generate

    return tile


tile_of, half_of = (
    _tile_of(range(1, WHOLE_ROWS + 1), BLOCK),
    _tile_of(range(1, TILE_ROWS + 1), HALF),
)
