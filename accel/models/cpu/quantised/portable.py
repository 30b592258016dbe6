"""Sums of products of bytes in steps that every processor has, and no quick ones."""

from __future__ import annotations

from typing import Any

from accel.models.cpu.quantised.registers import RowByRow, Sum, same, splat, words_of


class _Sum:
    def __init__(self, builder: Any, lanes: int, correction: Any) -> None:
        self._builder, self._kind = builder, words_of(lanes)
        self._total = same(self._kind, 0)
        if correction is not None:
            self._total = splat(builder, correction, lanes)

    def add(self, weights: Any, values: Any) -> None:
        builder, kind = self._builder, self._kind
        for lane in range(4):
            weight = builder.lshr(weights, same(kind, 8 * lane))
            weight = builder.and_(weight, same(kind, 255))
            value = builder.shl(values, same(kind, 24 - 8 * lane))
            value = builder.ashr(value, same(kind, 24))
            self._total = builder.add(self._total, builder.mul(weight, value))

    def total(self) -> Any:
        return self._total


class Portable(RowByRow):
    """The instruction set."""

    features = frozenset[str]()
    lanes = 16
    rows = 4

    def prepared(self, _builder: Any, weights: Any, _bits: int) -> Any:
        return weights

    def sum(self, builder: Any, _bits: int, correction: Any) -> Sum:
        return _Sum(builder, self.lanes, correction)
