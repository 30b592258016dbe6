"""Base of the instruction sets: vectors of words, four codes each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from llvmlite import ir

from accel.models.cpu.quantised.packed_layouts import LAYOUTS, PackedLayout
from accel.native.simd import F32, I32

_I8, _I16 = ir.IntType(8), ir.IntType(16)


class Total(Protocol):
    """A dot product for each lane of a register, in whole numbers."""

    def total(self) -> Any:
        """Return the sums, int32 a lane, with the correction for weights that are stored without a
        sign."""


class Sum:
    """One that grows by calls of ``added``: from a total so far, a register of weights, as
    ``InstructionSet.prepared``, and as many values a lane to the total then."""

    def __init__(self, total: Any, added: Callable[[Any, Any, Any], Any]) -> None:
        self._total, self._step = total, added

    def add(self, weights: Any, values: Any) -> None:
        """Add products of weights and values."""
        self._total = self._step(self._total, weights, values)

    def total(self) -> Any:
        return self._total


class InstructionSet(Protocol):
    """Multiplication of small whole numbers on a kind of processor. features: as LLVM names them,
    that it takes; layouts: of packed weights, in the order of ``LAYOUTS``; lanes: int32 of a
    register; rows: of a tile, at most; sums: registers of sums that stay there, if not those of a
    tile and all of a group's columns; takes_pairs: tiles of all ``rows`` take two groups at once,
    so that a row's words are read half as often; words_at_once: of a row, loaded together if the
    dot product itself spreads one of them; shifts_bytes: bytes can be shifted, so that no bits of a
    neighbour are cut off behind a shift."""

    features: frozenset[str]
    layouts: Sequence[PackedLayout] = LAYOUTS
    lanes: int
    rows: int
    sums: int = 0
    words_at_once: int = 1
    takes_pairs: bool = False
    shifts_bytes: bool = False

    def prepared(self, _builder: Any, weights: Any, _bits: int) -> Any:
        """Return a register of weights as ``Sum.add`` takes it, made once for all rows."""
        return weights

    def sums_of(
        self, builder: Any, layout: PackedLayout, corrections: Iterable[Any], registers: int
    ) -> Sequence[Sequence[Sum]]:
        """Return a sum for each of some rows, or two rows where planes are paired, and each
        register of weights. corrections: what a row's sums take off because weights are stored
        without a sign, int32, None where they have one, or a minimum does that."""

    def in_floats(self, builder: Any, layout: PackedLayout, total: Any) -> Any:
        """Return the whole numbers of a sum's total."""
        return builder.sitofp(total, ir.VectorType(F32, self.lanes))


class RowByRow(InstructionSet, Protocol):
    """One whose sums have nothing in common."""

    def sum(self, builder: Any, bits: int, correction: Any) -> Sum:
        """Return a sum of products with weights of ``bits`` bits."""

    def sums_of(
        self, builder: Any, layout: PackedLayout, corrections: Iterable[Any], registers: int
    ) -> Sequence[Sequence[Sum]]:
        return [
            [self.sum(builder, layout.bits, correction) for _ in range(registers)]
            for correction in corrections
        ]


def words_of(lanes: int) -> ir.VectorType:
    """Return a register as words."""
    return ir.VectorType(I32, lanes)


def bytes_of(lanes: int) -> ir.VectorType:
    """Return a register as bytes."""
    return ir.VectorType(_I8, 4 * lanes)


def pairs_of(lanes: int) -> ir.VectorType:
    """Return a register as numbers of two bytes."""
    return ir.VectorType(_I16, 2 * lanes)


def first_total(builder: Any, correction: Any, lanes: int) -> Any:
    """Return what a sum begins with: its correction, or zeros."""
    return same(words_of(lanes), 0) if correction is None else splat(builder, correction, lanes)


def splat(builder: Any, value: Any, lanes: int) -> Any:
    """One value in all lanes."""
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, value, I32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(words_of(lanes), [0] * lanes))


def in_order(builder: Any, value: Any) -> Any:
    """Return the value of a register, computed before what comes later in the program.

    Without that LLVM takes all words of a row together, where weights no longer fit in registers
    for the next row: they are written to memory and read again, which takes as long as their
    products. For x86.
    """
    kind = ir.FunctionType(value.type, [value.type])
    nothing = ir.InlineAsm(kind, "", "=x,0", side_effect=True)
    return builder.call(nothing, [value])


def same(kind: ir.VectorType, value: float) -> Any:
    """Return a vector of one constant."""
    return ir.Constant(kind, [value] * kind.count)
