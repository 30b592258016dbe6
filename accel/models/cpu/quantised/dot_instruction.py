"""Sums where the processor has one instruction for four products and their sum."""

from __future__ import annotations

from typing import Any

from accel.models.cpu.quantised.avx2 import Avx2
from accel.models.cpu.quantised.registers import (
    RowByRow,
    Sum,
    in_order,
    same,
    splat,
    words_of,
)
from accel.native.simd import call


class _Sum:
    def __init__(self, builder: Any, name: str, total: Any, *, keeps_order: bool) -> None:
        self._builder, self._name, self._total = builder, name, total
        self._keeps_order = keeps_order

    def add(self, weights: Any, values: Any) -> None:
        kind = self._total.type
        total = call(self._builder, self._name, kind, self._total, weights, values)
        self._total = in_order(self._builder, total) if self._keeps_order else total

    def total(self) -> Any:
        return self._total


class DotInstruction(RowByRow):
    """An instruction set. name: LLVM's of the instruction; keeps_order: true with too few registers
    to do without ``in_order``."""

    features: frozenset[str]
    lanes: int
    rows: int
    name: str
    keeps_order: bool

    def prepared(self, _builder: Any, weights: Any, _bits: int) -> Any:
        return weights

    def sum(self, builder: Any, _bits: int, correction: Any) -> Sum:
        total = same(words_of(self.lanes), 0)
        if correction is not None:
            total = splat(builder, correction, self.lanes)
        return _Sum(builder, self.name, total, keeps_order=self.keeps_order)


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
