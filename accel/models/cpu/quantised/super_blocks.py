"""Scales of super blocks, multiplied out for the blocks of a group that tiles multiply next."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from accel.models.cpu.quantised.packed_layouts import COLUMNS, SCALES, SUPER, PackedLayout
from accel.native.simd import F32, I64

BLOCKS_AT_ONCE = 24
"""Of two groups: their scales take less than 4096 bytes, which a function may have on every system
without asking for them."""

_I8 = ir.IntType(8)
_HALVES, _FLOATS = ir.VectorType(ir.HalfType(), COLUMNS), ir.VectorType(F32, COLUMNS)
_WHOLE = ir.VectorType(_I8, COLUMNS)


def write_in_halves(
    builder: Any, layout: PackedLayout, scales: Any, first: Any, last: Any, target: Any
) -> None:
    """Generate code that writes scales and minimums of a group's blocks, from one to before another
    of which super blocks begin, as a layout without super blocks has them. scales, target:
    addresses."""

    def at(address: Any, offset: int, kind: Any) -> Any:
        return builder.inttoptr(builder.add(address, I64(offset)), kind.as_pointer())

    count = layout.parts + layout.has_minimum
    before = builder.block
    loop, after = (builder.append_basic_block(name) for name in ("super_blocks", "multiplied"))
    builder.branch(loop)
    builder.position_at_end(loop)
    block, to = builder.phi(I64), builder.phi(I64)
    block.add_incoming(first, before)
    to.add_incoming(target, before)
    start = builder.add(scales, builder.mul(block, I64(layout.scale_bytes)))
    wide_scales = [
        builder.fpext(builder.load(at(start, SCALES * index, _HALVES), align=2), _FLOATS)
        for index in range(1 + layout.has_minimum)
    ]
    for number in range(SUPER * count):
        own = at(start, layout.super_bytes + COLUMNS * number, _WHOLE)
        times = builder.sitofp(builder.load(own, align=1), _FLOATS)
        is_minimum = number % count == layout.parts
        halves = builder.fptrunc(builder.fmul(wide_scales[is_minimum], times), _HALVES)
        builder.store(halves, at(to, SCALES * number, _HALVES), align=2)
    following = builder.add(block, I64(SUPER))
    block.add_incoming(following, loop)
    to.add_incoming(builder.add(to, I64(SUPER * SCALES * count)), loop)
    builder.cbranch(builder.icmp_signed("<", following, last), loop, after)
    builder.position_at_end(after)
