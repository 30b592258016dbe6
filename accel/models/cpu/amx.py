"""Products of bf16 rows with a packed matrix, by the matrix unit that some processors have (AMX).

One instruction multiplies 16 rows of 32 numbers with 32 x 16 weights. Numbers are summed in steps
of 32 along ``in``: another order than that of ``matmul``, the same one for all rows.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from accel.native import simd
from accel.native.aligned_memory import LINE
from accel.native.numba_cache import compiled_with
from accel.native.simd import F32, I32, I64, call, pointer, prefetch

TILE_PAIRS = 16
"""Pairs of bf16 along ``in`` that a tile holds."""

TILE_ROWS = 16
"""Rows of a tile."""

_COLUMNS = 32
"""Of a block of a packed matrix: two tiles beside each other."""

_AHEAD = 4096
"""Words between what is read and what is fetched meanwhile. Between 2,048 and 32,768 no other
distance is faster."""

_PALETTE, _WIDTHS, _HEIGHTS = 0, 16, 48
"""Where a configuration has what."""

_I8, _I16 = ir.IntType(8), ir.IntType(16)
_NOTHING = ir.VoidType()


def _tile(builder: Any, name: str, *registers: int) -> None:
    call(builder, f"llvm.x86.{name}", _NOTHING, *(_I8(each) for each in registers))


def _bytes_at(builder: Any, place: Any) -> Any:
    return builder.bitcast(place, _I8.as_pointer())


def _move(builder: Any, name: str, register: int, place: Any, stride: Any) -> None:
    """Load or store a register, whose rows stand ``stride`` words apart in memory."""
    at, apart = _bytes_at(builder, place), builder.mul(stride, I64(4))
    call(builder, f"llvm.x86.{name}", _NOTHING, _I8(register), at, apart)


@intrinsic
def _configure(_context: Any, rows: Any) -> Any:
    """Registers of lines: 0 to 5 of ``rows`` each, 6 and 7, for weights, of sixteen."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = ir.ArrayType(_I8, LINE)
        table = cgutils.alloca_once(builder, kind)
        builder.store(ir.Constant(kind, None), table)
        first = _bytes_at(builder, table)
        builder.store(_I8(1), builder.gep(first, [I64(_PALETTE)]))
        rows = builder.trunc(arguments[0], _I8)
        for register in range(8):
            width = builder.gep(first, [I64(_WIDTHS + 2 * register)])
            builder.store(_I16(LINE), builder.bitcast(width, _I16.as_pointer()), align=1)
            height = rows if register < 6 else _I8(TILE_PAIRS)
            builder.store(height, builder.gep(first, [I64(_HEIGHTS + register)]))
        call(builder, "llvm.x86.ldtilecfg", _NOTHING, first)
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def _release(_context: Any) -> Any:
    """Registers are in use no more: there is nothing to keep when the thread is interrupted."""

    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        _tile(builder, "tilerelease")
        return context.get_dummy_value()

    return types.void(), generate


def _product(tiles: int, *, fetches: bool) -> Any:
    """A kernel for one tile of rows or two and a block of columns.

    ``product(x, x_at, x_stride, w, w_at, out, out_at, out_stride, apart, in_features)`` writes what
    ``multiply_by_tiles`` does, all arrays taken as flat memory; the rows of the second tile begin
    ``apart`` behind those of the first. With ``fetches`` it asks for weights that are read later.
    """

    @intrinsic
    def product(
        _context: Any,
        x: Any,
        x_at: Any,
        x_stride: Any,
        w: Any,
        w_at: Any,
        out: Any,
        out_at: Any,
        out_stride: Any,
        apart: Any,
        in_features: Any,
    ) -> Any:
        signature = types.void(
            x, x_at, x_stride, w, w_at, out, out_at, out_stride, apart, in_features
        )

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x_stride, out_stride, apart, in_features = (arguments[place] for place in (2, 7, 8, 9))

            def start(place: int, kind: Any) -> Any:
                array = signature.args[place], arguments[place]
                return pointer(context, builder, *array, arguments[place + 1], kind)

            inputs = [start(0, I32)]
            inputs.append(builder.gep(inputs[0], [builder.mul(x_stride, apart)]))
            sums = [start(5, F32)]
            sums.append(builder.gep(sums[0], [builder.mul(out_stride, apart)]))
            weights = start(3, I32)
            for register in range(2 * tiles):
                _tile(builder, "tilezero", register)
            steps = cgutils.for_range_slice(builder, I64(0), in_features, I64(TILE_PAIRS), I64)
            with steps as (k, _):
                for tile in range(tiles):
                    place = builder.gep(inputs[tile], [k])
                    _move(builder, "tileloadd64", 4 + tile, place, x_stride)
                panel = builder.gep(weights, [builder.mul(k, I64(_COLUMNS))])
                for half in range(2):
                    place = builder.gep(panel, [I64(half * TILE_ROWS)])
                    _move(builder, "tileloadd64", 6 + half, place, I64(_COLUMNS))
                    for tile in range(tiles):
                        _tile(builder, "tdpbf16ps", 2 * tile + half, 4 + tile, 6 + half)
                for line in range(2 * TILE_PAIRS if fetches else 0):
                    at = builder.gep(panel, [I64(_AHEAD + line * LINE // 4)])
                    # The cache of the first level holds inputs and outputs.
                    prefetch(builder, at, level=2)
            for tile in range(tiles):
                for half in range(2):
                    place = builder.gep(sums[tile], [I64(half * TILE_ROWS)])
                    _move(builder, "tilestored64", 2 * tile + half, place, out_stride)
            return context.get_dummy_value()

        return signature, generate

    return product


_one, _two = _product(1, fetches=True), _product(2, fetches=True)
_two_again = _product(2, fetches=False)


@compiled_with(simd, borrows=True)
def multiply_by_tiles(  # type: ignore[no-untyped-def]
    x, first_row, rows, w, blocks, in_features, out, column
):
    """``matmul.multiply`` of bf16; ``in_features`` is a multiple of ``TILE_PAIRS``."""
    x_stride, out_stride, w_stride = x.shape[1] // 2, out.shape[1], w.shape[1] * _COLUMNS
    parts = (rows + TILE_ROWS - 1) // TILE_ROWS
    height = (rows + parts - 1) // parts
    x_at = first_row * x_stride
    _configure(height)
    for block in range(blocks):
        w_at, to = block * w_stride, column + block * _COLUMNS
        if parts == 1:
            _one(x, x_at, x_stride, w, w_at, out, to, out_stride, 0, in_features)
            continue
        # All tiles are of one height, so some begin before the end of others: rows that are
        # computed twice come out the same.
        apart = min(height, rows - height)
        _two(x, x_at, x_stride, w, w_at, out, to, out_stride, apart, in_features)
        for part in range(2, parts, 2):
            row = min(part * height, rows - 2 * height)
            at, to_row = x_at + row * x_stride, to + row * out_stride
            _two_again(x, at, x_stride, w, w_at, out, to_row, out_stride, height, in_features)
    _release()
