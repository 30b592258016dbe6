"""Products of rows of activations with quantised weights. What is written for a row depends on that
row and the weights alone, and is the same to the last bit with every instruction set."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from accel.models.cpu.quantised import (
    activations,
    avx2,
    dot_instruction,
    instruction_sets,
    neon,
    packed_layouts,
    portable,
    registers,
    tile,
)
from accel.models.cpu.quantised.activations import Q8_BYTES
from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS
from accel.models.cpu.quantised.packed_layouts import COLUMNS, PACKED_LAYOUTS, PLANE, PackedLayout
from accel.models.cpu.quantised.registers import InstructionSet
from accel.models.cpu.quantised.tile import Arguments, fetched_bytes, write_tile
from accel.native import aligned_memory as memory
from accel.native import simd
from accel.native.numba_cache import compiled_with
from accel.native.simd import I64

_SETS = tuple(INSTRUCTION_SETS.values())

_GROUP_OUT = 4 * COLUMNS
"""Bytes of a group in a row of outputs."""


def _layout_and_set(layout: Any, instructions: Any) -> tuple[PackedLayout, InstructionSet]:
    """Those that types of constants stand for."""
    return PACKED_LAYOUTS[layout.literal_value], _SETS[instructions.literal_value]


def _constant(value_of: Any) -> Any:
    """A number that follows from a layout and an instruction set, known when compiling."""

    @intrinsic(prefer_literal=True)
    def constant(_context: Any, layout: Any, instructions: Any) -> Any:
        def generate(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
            return I64(value_of(*_layout_and_set(layout, instructions)))

        return types.int64(layout, instructions), generate

    return constant


_rows_of = _constant(lambda _layout, instructions: instructions.rows)
_scale_bytes_of = _constant(lambda layout, _instructions: layout.scale_bytes)
_code_bytes_of = _constant(lambda layout, _instructions: layout.code_bytes)
_takes_pairs = _constant(lambda _layout, instructions: int(instructions.takes_pairs))
_fetched_bytes_of = _constant(lambda layout, _instructions: fetched_bytes(layout))


@intrinsic(prefer_literal=True)
def _tile(
    _context: Any,
    layout: Any,
    instructions: Any,
    rows: Any,
    x: Any,
    x_stride: Any,
    scales: Any,
    codes: Any,
    blocks: Any,
    out: Any,
    out_stride: Any,
) -> Any:
    """``write_tile`` for so many rows."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        of_layout, machine = _layout_and_set(layout, instructions)
        done, no_such = (builder.append_basic_block(name) for name in ("written", "no_such"))
        choice = builder.switch(arguments[2], no_such)
        for count in range(1, machine.rows + 1):
            case = builder.append_basic_block(f"rows{count}")
            choice.add_case(I64(count), case)
            builder.position_at_end(case)
            write_tile(builder, of_layout, count, machine, Arguments(*arguments[3:]))
            builder.branch(done)
        builder.position_at_end(no_such)
        builder.unreachable()
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(layout, instructions, rows, *[types.int64] * 7), generate


@intrinsic(prefer_literal=True)
def _pair_tile(
    _context: Any,
    layout: Any,
    instructions: Any,
    x: Any,
    x_stride: Any,
    scales: Any,
    codes: Any,
    blocks: Any,
    out: Any,
    out_stride: Any,
    group_bytes: Any,
    ahead: Any,
) -> Any:
    """``write_tile`` for two groups and as many rows as there may be; nothing where an instruction
    set takes one group alone."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        of_layout, machine = _layout_and_set(layout, instructions)
        if machine.takes_pairs:
            write_tile(builder, of_layout, machine.rows, machine, Arguments(*arguments[2:]))
        return context.get_dummy_value()

    return types.void(layout, instructions, *[types.int64] * 9), generate


_PARTS = (
    *(activations, avx2, dot_instruction, packed_layouts, instruction_sets),
    *(simd, memory, neon, portable, registers, tile),
)


@compiled_with(*_PARTS, borrows=True, error_model="numpy", callable_from_c=True)
def multiply_packed(  # type: ignore[no-untyped-def]
    layout, instructions, x, rows, blocks, weights, first, last, out, out_stride
):
    """See ``call_product``; ``layout`` and ``instructions`` are constants."""
    most = _rows_of(layout, instructions)
    lines = (blocks * _scale_bytes_of(layout, instructions) + PLANE - 1) // PLANE
    group_bytes = lines * PLANE + blocks * _code_bytes_of(layout, instructions)
    x_stride = blocks * Q8_BYTES
    # Whole tiles take two groups at once, and leave the others rows for two tiles of one height.
    whole = rows // most - (rows % most > 0) if _takes_pairs(layout, instructions) > 0 else 0
    paired = max(last - first, 0) // 2 if whole > 1 else 0
    for pair in range(paired):
        group = first + 2 * pair
        scales = weights + group * group_bytes
        for place in range(whole):
            x_at = x + place * most * x_stride
            to = out + place * most * out_stride + (group - first) * _GROUP_OUT
            codes = scales + lines * PLANE
            ahead = scales + 2 * group_bytes
            ahead += place * blocks * _fetched_bytes_of(layout, instructions)
            _pair_tile(
                layout,
                instructions,
                x_at,
                x_stride,
                scales,
                codes,
                blocks,
                to,
                out_stride,
                group_bytes,
                ahead,
            )
    for group in range(first, last):
        before = most * whole if group - first < 2 * paired else 0
        tiles = (rows - before + most - 1) // most
        if tiles == 0:
            continue
        height, taller = (rows - before) // tiles, (rows - before) % tiles
        scales = weights + group * group_bytes
        codes = scales + lines * PLANE
        row = before
        for place in range(tiles):
            count = height + (place < taller)
            x_at, to = x + row * x_stride, out + row * out_stride + (group - first) * _GROUP_OUT
            _tile(
                layout, instructions, count, x_at, x_stride, scales, codes, blocks, to, out_stride
            )
            row += count


@cache
def address_of_product(layout: PackedLayout, instructions: str) -> int:
    """The address of the compiled product with weights of a layout, for ``call_product``."""
    chosen = list(INSTRUCTION_SETS).index(instructions)
    kinds = types.literal(layout.number), types.literal(chosen), *[types.int64] * 8
    dispatcher: Any = multiply_packed
    dispatcher.compile(kinds)
    found = dispatcher.overloads[kinds]
    address: int = found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name)
    return address


@intrinsic
def call_product(
    _context: Any,
    address: Any,
    x: Any,
    rows: Any,
    blocks: Any,
    weights: Any,
    first: Any,
    last: Any,
    out: Any,
    out_stride: Any,
) -> Any:
    """Write the products of rows with the groups from ``first`` to before ``last`` of a matrix.

    address: see ``address_of_product``; x: that of ``activations.Q8Blocks`` of ``blocks`` blocks;
    weights: of the matrix's first group; out: of float32, where the first row's product with the
    first group belongs; out_stride: bytes from a row to the next.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address, *others = arguments
        kind = ir.FunctionType(ir.VoidType(), [I64] * 10)
        function = builder.inttoptr(address, kind.as_pointer())
        builder.call(function, [I64(0), I64(0), *others])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 9), generate
