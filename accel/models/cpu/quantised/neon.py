"""Sums of products of bytes by Arm's instructions for them, in registers of four whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from llvmlite import ir

from accel.models.cpu.quantised.packed_layouts import PAIRED_LAYOUTS, SIGNED_LAYOUTS, PackedLayout
from accel.models.cpu.quantised.registers import InstructionSet, Sum, bytes_of, same, words_of
from accel.native.simd import F32, I32, call

_LANES = 4
_WORDS, _BYTES, _FLOATS = words_of(_LANES), bytes_of(_LANES), ir.VectorType(F32, _LANES)


def _bias(layout: PackedLayout) -> Any:
    """Return a float to whose bits a whole number is added as to itself, or a sixteenth of it where
    codes of four bits are in the upper bits of bytes: where sums begin with it, a subtraction
    leaves floats. On Neoverse, a conversion takes as long as two of these."""
    return same(_FLOATS, 1.5 * 2 ** (19 if layout.is_signed and layout.bits == 4 else 23))


class NeonDotprod(InstructionSet):
    """Four products for a lane: of Apple since 2020, Graviton 2, Raspberry Pi 5."""

    features = frozenset({"dotprod"})
    layouts: Sequence[PackedLayout] = SIGNED_LAYOUTS
    lanes = _LANES
    rows = 4
    sums = 8
    words_at_once = 4
    shifts_bytes = True

    def prepared(self, builder: Any, weights: Any, _bits: int) -> Any:
        return builder.bitcast(weights, _BYTES)

    def sums_of(
        self, builder: Any, layout: PackedLayout, corrections: Iterable[Any], registers: int
    ) -> Sequence[Sequence[Sum]]:
        by_rows, width = list(corrections), layout.width
        first = builder.bitcast(_bias(layout), _WORDS)
        if None not in by_rows:
            # One lane each: to spread a lane takes no more than to copy a register.
            by_row: Any = ir.Constant(_WORDS, ir.Undefined)
            for row, each in enumerate(by_rows):
                by_row = builder.insert_element(by_row, each, I32(row))
            first = builder.add(first, by_row)
        name = f"llvm.aarch64.neon.{'smmla' if layout.is_paired else 'sdot'}.v4i32.v16i8"

        def added(total: Any, weights: Any, values: Any) -> Any:
            return call(builder, name, _WORDS, total, weights, builder.bitcast(values, _BYTES))

        sums = []
        for row in range(0, len(by_rows), width):
            lanes = [min(row + lane % width, len(by_rows) - 1) for lane in range(_LANES)]
            start = builder.shuffle_vector(first, first, ir.Constant(_WORDS, lanes))
            sums.append([Sum(start, added) for _ in range(registers)])
        return sums

    def in_floats(self, builder: Any, layout: PackedLayout, total: Any) -> Any:
        return builder.fsub(builder.bitcast(total, _FLOATS), _bias(layout))


class NeonI8mm(NeonDotprod):
    """Two columns by two rows, eight products each: of Apple since 2022, Graviton 3, Snapdragon
    X."""

    features = frozenset({"dotprod", "i8mm"})
    layouts = PAIRED_LAYOUTS
