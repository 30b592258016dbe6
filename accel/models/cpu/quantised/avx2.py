"""Sums of products of bytes with AVX2: unsigned weights by signed values, two neighbours added in
16 bits, and as many of these as surely fit. Weights of eight bits have their signs moved."""

from __future__ import annotations

from typing import Any

from accel.models.cpu.quantised.registers import (
    RowByRow,
    Sum,
    bytes_of,
    in_order,
    pairs_of,
    same,
    splat,
    words_of,
)
from accel.native.simd import call

_LANES = 8
_WORDS, _BYTES, _PAIRS = words_of(_LANES), bytes_of(_LANES), pairs_of(_LANES)

_MOST_VALUE = 127


def _fitting(bits: int) -> int:
    """Return the number of sums of two products with weights of ``bits`` bits that fit into 16 bits
    with a sign."""
    most = (1 << bits) - 1 if bits < 8 else 1 << 7
    return (1 << 15) // (2 * most * _MOST_VALUE)


class _Sum(Sum):
    def __init__(self, builder: Any, bits: int, correction: Any) -> None:
        self._builder = builder
        self._is_signed = bits == 8
        self._fitting = _fitting(bits)
        self._narrow: Any = None
        self._added = 0
        # Weights with a sign of their own need no correction.
        needs = correction is not None and not self._is_signed
        self._wide = splat(builder, correction, _LANES) if needs else None

    def add(self, weights: Any, values: Any) -> None:
        builder = self._builder
        values = builder.bitcast(values, _BYTES)
        if self._is_signed:
            sizes, signed = weights
            values = call(builder, "llvm.x86.avx2.psign.b", _BYTES, values, signed)
        else:
            sizes = builder.bitcast(weights, _BYTES)
        products = call(builder, "llvm.x86.avx2.pmadd.ub.sw", _PAIRS, sizes, values)
        total = products if self._narrow is None else builder.add(self._narrow, products)
        self._added += 1
        if self._added == self._fitting:
            self._widen(total)
        else:
            self._narrow = in_order(builder, total)

    def _widen(self, narrow: Any) -> None:
        builder = self._builder
        unit = same(_PAIRS, 1)
        words = call(builder, "llvm.x86.avx2.pmadd.wd", _WORDS, narrow, unit)
        total = words if self._wide is None else builder.add(self._wide, words)
        self._wide = in_order(builder, total)
        self._narrow, self._added = None, 0

    def total(self) -> Any:
        if self._added:
            self._widen(self._narrow)
        return self._wide


class Avx2(RowByRow):
    """The instruction set."""

    features = frozenset({"avx2", "fma", "f16c"})
    lanes = _LANES
    rows = 4

    def prepared(self, builder: Any, weights: Any, bits: int) -> Any:
        if bits < 8:
            return weights
        signed = builder.xor(builder.bitcast(weights, _BYTES), same(_BYTES, -128))
        negative = builder.sub(same(_BYTES, 0), signed)
        is_negative = builder.icmp_signed("<", signed, same(_BYTES, 0))
        return builder.select(is_negative, negative, signed), signed

    def sum(self, builder: Any, bits: int, correction: Any) -> Sum:
        return _Sum(builder, bits, correction)
