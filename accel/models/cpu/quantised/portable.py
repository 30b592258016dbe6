"""Sums of products of bytes in steps that every processor has, and no quick ones."""

from __future__ import annotations

from typing import Any

from accel.models.cpu.quantised.registers import RowByRow, Sum, first_total, same, words_of


class Portable(RowByRow):
    """The instruction set."""

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
