"""Sums where the processor has one instruction for four products and their sum."""

from __future__ import annotations

from typing import Any

from accel.models.cpu.quantised.registers import Sum, everywhere, same, words_of
from accel.native.simd import call


class _Sum:
    def __init__(self, builder: Any, name: str, total: Any) -> None:
        self._builder, self._name, self._total = builder, name, total

    def add(self, weights: Any, values: Any) -> None:
        kind = self._total.type
        self._total = call(self._builder, self._name, kind, self._total, weights, values)

    def total(self) -> Any:
        return self._total


class DotInstruction:
    """An instruction set; name: LLVM's of the instruction."""

    features: frozenset[str]
    lanes: int
    rows: int
    whole_rows: int
    name: str

    def prepared(self, _builder: Any, weights: Any, _bits: int) -> Any:
        return weights

    def sum(self, builder: Any, _bits: int, correction: Any) -> Sum:
        if correction is None:
            return _Sum(builder, self.name, same(words_of(self.lanes), 0))
        return _Sum(builder, self.name, everywhere(builder, correction, self.lanes))


__all__ = ["DotInstruction"]
