"""The instruction sets that products are compiled for, and the one for the processor at hand."""

from __future__ import annotations

import os
from typing import Any

from accel.errors import InvalidRequest
from accel.models.cpu.quantised.avx2 import Avx2
from accel.models.cpu.quantised.neon import NeonDotprod, NeonI8mm
from accel.models.cpu.quantised.packed_layouts import PackedLayout
from accel.models.cpu.quantised.registers import (
    InstructionSet,
    RowByRow,
    Sum,
    first_total,
    in_order,
    same,
    words_of,
)
from accel.native.cpu_features import FEATURES
from accel.native.processor import INSTRUCTIONS
from accel.native.simd import call


class Portable(RowByRow):
    """Steps that every processor has, and no quick ones."""

    features = frozenset[str]()
    lanes = 16
    rows = 4

    def sum(self, builder: Any, _bits: int, correction: Any) -> Sum:
        kind = words_of(self.lanes)

        def added(total: Any, weights: Any, values: Any) -> Any:
            for lane in range(4):
                weight = builder.lshr(weights, same(kind, 8 * lane))
                weight = builder.and_(weight, same(kind, 255))
                value = builder.shl(values, same(kind, 24 - 8 * lane))
                value = builder.ashr(value, same(kind, 24))
                total = builder.add(total, builder.mul(weight, value))
            return total

        return Sum(first_total(builder, correction, self.lanes), added)


class DotInstruction(RowByRow):
    """One instruction for four products and their sum. name: LLVM's; keeps_order: true with too few
    registers to do without ``in_order``."""

    features: frozenset[str]
    lanes: int
    rows: int
    name: str
    keeps_order: bool

    def sum(self, builder: Any, _bits: int, correction: Any) -> Sum:
        def added(total: Any, weights: Any, values: Any) -> Any:
            total = call(builder, self.name, total.type, total, weights, values)
            return in_order(builder, total) if self.keeps_order else total

        return Sum(first_total(builder, correction, self.lanes), added)


class AvxVnni(DotInstruction):
    """Of laptops since 2021: half the width of AVX-512's, and half as many registers."""

    features = Avx2.features | {"avxvnni"}
    lanes = 8
    rows = 4
    name = "llvm.x86.avx512.vpdpbusd.256"
    keeps_order = True


class Avx512Vnni(DotInstruction):
    """Four weights without a sign by four values with one, 16 times, added to 32 bits at once."""

    features = frozenset({"avx512f", "avx512bw", "avx512vl", "avx512vnni"})
    lanes = 16
    rows = 8
    name = "llvm.x86.avx512.vpdpbusd.512"
    keeps_order = False
    takes_pairs = True


INSTRUCTION_SETS: dict[str, InstructionSet] = {
    "avx512-vnni": Avx512Vnni(),
    "avx-vnni": AvxVnni(),
    "avx2": Avx2(),
    "neon-i8mm": NeonI8mm(),
    "neon-dotprod": NeonDotprod(),
    "portable": Portable(),
}
"""From the fastest to the one that every processor has."""


def here() -> list[str]:
    """Return names of those that this processor has, the fastest first."""
    return [name for name, each in INSTRUCTION_SETS.items() if each.features <= FEATURES]


def chosen() -> str:
    """Return the name of the one to use. Raises InvalidRequest where ``REDRAFT_INSTRUCTIONS`` names
    one that is not here."""
    names, named = here(), os.environ.get(INSTRUCTIONS, "")
    if named and named not in names:
        raise InvalidRequest(f"{INSTRUCTIONS}={named}: this processor has {', '.join(names)}")
    return named or names[0]


def layout_of(form: PackedLayout, instructions: str | None = None) -> PackedLayout:
    """Return the layout that has weights of one of ``LAYOUTS`` for an instruction set, None for the
    chosen one."""
    return INSTRUCTION_SETS[instructions or chosen()].layouts[form.number]


def is_fast() -> bool:
    """Return whether the chosen instruction set has quick products of bytes."""
    return chosen() != "portable"
