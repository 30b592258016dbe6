"""Products of rows of activations with quantised weights. What is written for a row depends on that
row and the weights alone, and is the same to the last bit with every instruction set."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from accel.models.cpu.quantised.activations import Q8_BYTES
from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS
from accel.models.cpu.quantised.packed_layouts import COLUMNS, PACKED_LAYOUTS, PLANE, PackedLayout
from accel.models.cpu.quantised.registers import InstructionSet
from accel.models.cpu.quantised.super_blocks import BLOCKS_AT_ONCE, write_in_halves
from accel.models.cpu.quantised.tile import Arguments, fetched_bytes, write_tile
from accel.native.numba_cache import compiled
from accel.native.simd import I64

_SETS = tuple(INSTRUCTION_SETS.values())

_GROUP_OUT = 4 * COLUMNS
"""Bytes of a group in a row of outputs."""


def _layout_and_set(layout: Any, instructions: Any) -> tuple[PackedLayout, InstructionSet]:
    """Return those that types of constants stand for."""
    return PACKED_LAYOUTS[layout.literal_value], _SETS[instructions.literal_value]


@intrinsic(prefer_literal=True)
def _sizes(_context: Any, layout: Any, instructions: Any) -> Any:
    """Return numbers that follow from a layout and an instruction set: rows of a tile, bytes of a
    block's scales, of its codes and of its scales in halves, bytes that a tile fetches beforehand,
    1 if tiles take two groups, and 1 if there are super blocks."""

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        of_layout, machine = _layout_and_set(layout, instructions)
        numbers = (
            *(machine.rows, of_layout.scale_bytes, of_layout.code_bytes),
            *(of_layout.in_halves.scale_bytes, fetched_bytes(of_layout)),
            *(int(machine.takes_pairs), int(of_layout.has_super_blocks)),
        )
        return cgutils.pack_array(builder, [I64(number) for number in numbers])

    return types.UniTuple(types.int64, 7)(layout, instructions), generate


@intrinsic(prefer_literal=True)
def _room(_context: Any, layout: Any, instructions: Any) -> Any:
    """Return the address of memory for the scales of two groups, 0 where a layout needs none."""

    def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        of_layout, _ = _layout_and_set(layout, instructions)
        if not of_layout.has_super_blocks:
            return I64(0)
        size = 2 * BLOCKS_AT_ONCE * of_layout.in_halves.scale_bytes
        room = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), size))
        room.align = PLANE
        return builder.ptrtoint(room, I64)

    return types.int64(layout, instructions), generate


@intrinsic(prefer_literal=True)
def _in_halves(
    _context: Any, layout: Any, instructions: Any, scales: Any, first: Any, last: Any, room: Any
) -> Any:
    """``write_in_halves`` into a room, and its address; that of the scales where these are so."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        of_layout, _ = _layout_and_set(layout, instructions)
        if not of_layout.has_super_blocks:
            return arguments[2]
        write_in_halves(builder, of_layout, *arguments[2:])
        return arguments[-1]

    return types.int64(layout, instructions, *[types.int64] * 4), generate


def _arguments_of(builder: Any, layout: PackedLayout, operands: Any) -> Arguments:
    """Return those of a tile, from a tuple that ends with ``continues``: only blocks of super
    blocks come in parts."""
    *others, continues = cgutils.unpack_tuple(builder, operands)
    return Arguments(*others)._replace(continues=continues if layout.has_super_blocks else None)


@intrinsic(prefer_literal=True)
def _tile(_context: Any, layout: Any, instructions: Any, rows: Any, operands: Any) -> Any:
    """``write_tile`` for ``rows`` rows. operands: int64 all, see ``_arguments_of``."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        of_layout, machine = _layout_and_set(layout, instructions)
        own = _arguments_of(builder, of_layout, arguments[3])
        done, no_such = (builder.append_basic_block(name) for name in ("written", "no_such"))
        choice = builder.switch(arguments[2], no_such)
        for count in range(1, machine.rows + 1):
            case = builder.append_basic_block(f"rows{count}")
            choice.add_case(I64(count), case)
            builder.position_at_end(case)
            write_tile(builder, of_layout.in_halves, count, machine, own)
            builder.branch(done)
        builder.position_at_end(no_such)
        builder.unreachable()
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(layout, instructions, rows, operands), generate


@intrinsic(prefer_literal=True)
def _pair_tile(_context: Any, layout: Any, instructions: Any, operands: Any) -> Any:
    """``write_tile`` for two groups and as many rows as there may be; nothing where an instruction
    set takes one group alone."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        of_layout, machine = _layout_and_set(layout, instructions)
        if machine.takes_pairs:
            own = _arguments_of(builder, of_layout, arguments[2])
            write_tile(builder, of_layout.in_halves, machine.rows, machine, own)
        return context.get_dummy_value()

    return types.void(layout, instructions, operands), generate


@compiled(borrows=True, error_model="numpy", callable_from_c=True)
def multiply_packed(  # type: ignore[no-untyped-def]
    layout, instructions, x, rows, blocks, weights, first, last, out, out_stride
):
    """See ``call_product``; ``layout`` and ``instructions`` are constants."""
    sizes = _sizes(layout, instructions)
    most, scale_bytes, code_bytes, halves_bytes, fetched, takes_pairs, super_blocks = sizes
    lines = (blocks * scale_bytes + PLANE - 1) // PLANE
    group_bytes, x_stride = lines * PLANE + blocks * code_bytes, blocks * Q8_BYTES
    # Scales of super blocks are multiplied out once for all rows, of some blocks at a time.
    has_super_blocks, room = super_blocks > 0, _room(layout, instructions)
    at_once = min(blocks, BLOCKS_AT_ONCE) if has_super_blocks else blocks
    apart = at_once * halves_bytes if has_super_blocks else group_bytes
    # Whole tiles take two groups at once, and leave the others rows for two tiles of one height.
    pairs = rows // most - (rows % most > 0) if takes_pairs > 0 else 0
    paired = max(last - first, 0) // 2 if pairs > 1 else 0
    for pair in range(paired):
        group = first + 2 * pair
        scales = weights + group * group_bytes
        for begin in range(0, blocks, at_once):
            end = min(begin + at_once, blocks)
            here = _in_halves(layout, instructions, scales, begin, end, room)
            if has_super_blocks:
                other = scales + group_bytes
                _in_halves(layout, instructions, other, begin, end, room + apart)
            for number in range(pairs):
                x_at = x + number * most * x_stride + begin * Q8_BYTES
                to = out + number * most * out_stride + (group - first) * _GROUP_OUT
                codes = scales + lines * PLANE + begin * code_bytes
                ahead = scales + 2 * group_bytes
                ahead += (number * blocks + begin) * fetched
                of_both = x_at, x_stride, here, codes, end - begin, to, out_stride
                of_pair = of_both + (group_bytes, apart, ahead, begin)  # noqa: RUF005
                _pair_tile(layout, instructions, of_pair)
    for group in range(first, last):
        before = most * pairs if group - first < 2 * paired else 0
        tiles = (rows - before + most - 1) // most
        if tiles == 0:
            continue
        height, taller = (rows - before) // tiles, (rows - before) % tiles
        scales = weights + group * group_bytes
        # There is room for the scales of two groups.
        for begin in range(0, blocks, 2 * at_once):
            end = min(begin + 2 * at_once, blocks)
            here = _in_halves(layout, instructions, scales, begin, end, room)
            codes = scales + lines * PLANE + begin * code_bytes
            row = before
            for number in range(tiles):
                count = height + (number < taller)
                x_at, to = x + row * x_stride, out + row * out_stride + (group - first) * _GROUP_OUT
                x_at += begin * Q8_BYTES
                operands = x_at, x_stride, here, codes, end - begin, to, out_stride, begin
                _tile(layout, instructions, count, operands)
                row += count


@cache
def address_of_product(layout: PackedLayout, instructions: str) -> int:
    """Return the address of the compiled product with weights of a layout, for ``call_product``."""
    chosen = list(INSTRUCTION_SETS).index(instructions)
    kinds = types.literal(layout.number), types.literal(chosen), *[types.int64] * 8
    dispatcher: Any = multiply_packed
    dispatcher.compile(kinds)
    entry = dispatcher.overloads[kinds]
    address: int = entry.library.get_pointer_to_function(entry.fndesc.llvm_cfunc_wrapper_name)
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
