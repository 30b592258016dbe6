"""Sums of products of bytes by Arm's dot products: four numbers for each of four columns."""

from __future__ import annotations

from typing import Any

from accel.models.cpu.quantised.registers import (
    InstructionSet,
    Sum,
    bytes_of,
    same,
    splat,
    words_of,
)
from accel.native.simd import call

_LANES = 4
_WORDS, _BYTES = words_of(_LANES), bytes_of(_LANES)


class _Sum:
    def __init__(self, builder: Any, name: str, total: Any) -> None:
        self._builder, self._name, self._total = builder, name, total

    def add(self, weights: Any, values: Any) -> None:
        name = f"llvm.aarch64.neon.{self._name}.v4i32.v16i8"
        values = self._builder.bitcast(values, _BYTES)
        self._total = call(self._builder, name, _WORDS, self._total, weights, values)

    def total(self) -> Any:
        return self._total


class NeonDotprod(InstructionSet):
    """Signed weights by signed values: of Apple since 2020, Graviton 2, Raspberry Pi 5. Codes of
    fewer than eight bits are signed as they are, those of eight get their sign back."""

    features = frozenset({"dotprod"})
    lanes = _LANES
    rows = 4
    words_at_once = 4
    shifts_bytes = True

    def prepared(self, builder: Any, weights: Any, bits: int) -> Any:
        weights = builder.bitcast(weights, _BYTES)
        return builder.xor(weights, same(_BYTES, -128)) if bits == 8 else weights

    def sum(self, builder: Any, bits: int, correction: Any) -> Sum:
        needs = correction is not None and bits < 8
        total = splat(builder, correction, _LANES) if needs else same(_WORDS, 0)
        return _Sum(builder, "sdot", total)


class NeonI8mm(NeonDotprod):
    """Unsigned weights by signed values: of Apple since 2022, Graviton 3, Snapdragon X."""

    features = frozenset({"dotprod", "i8mm"})

    def prepared(self, builder: Any, weights: Any, _bits: int) -> Any:
        return builder.bitcast(weights, _BYTES)

    def sum(self, builder: Any, _bits: int, correction: Any) -> Sum:
        total = same(_WORDS, 0) if correction is None else splat(builder, correction, _LANES)
        return _Sum(builder, "usdot", total)
