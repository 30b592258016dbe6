"""Sums where the processor has one instruction for four products and their sum."""

from __future__ import annotations

from typing import Any

from accel.models.cpu.quantised.avx2 import Avx2
from accel.models.cpu.quantised.registers import RowByRow, Sum, first_total, in_order
from accel.native.simd import call


class DotInstruction(RowByRow):
    """An instruction set. name: LLVM's of the instruction; keeps_order: true with too few registers
    to do without ``in_order``."""

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
