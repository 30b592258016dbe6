"""What the instruction sets have in common: vectors of words, four codes each."""

from __future__ import annotations

from typing import Any, Protocol

from llvmlite import ir

from accel.native.simd import I32

_I8, _I16 = ir.IntType(8), ir.IntType(16)


class Sum(Protocol):
    """A running dot product for each lane of a register, in whole numbers."""

    def add(self, weights: Any, values: Any) -> None:
        """Add products of four weights, as ``InstructionSet.prepared``, and four values a lane."""

    def total(self) -> Any:
        """The sums, int32 a lane, with the correction for weights that are stored without a
        sign."""


class InstructionSet(Protocol):
    """How a kind of processor multiplies small whole numbers. features: as LLVM names them, that it
    takes; lanes: int32 of a register; rows: of a tile, whose dot products with a group of columns
    stay in registers; words_at_once: of a row, loaded together where the dot product itself
    spreads one of them; shifts_bytes: whether it can, so that no bits of a neighbour are cut off
    behind a shift."""

    features: frozenset[str]
    lanes: int
    rows: int
    words_at_once: int = 1
    shifts_bytes: bool = False

    def prepared(self, builder: Any, weights: Any, bits: int) -> Any:
        """A register of weights as ``Sum.add`` takes it, made once for all rows."""

    def sum(self, builder: Any, bits: int, correction: Any) -> Sum:
        """A sum of products with weights of so many bits. correction: what they take from it
        because they are stored without a sign, int32, None where a minimum does that."""


def words_of(lanes: int) -> ir.VectorType:
    """A register as words."""
    return ir.VectorType(I32, lanes)


def bytes_of(lanes: int) -> ir.VectorType:
    """A register as bytes."""
    return ir.VectorType(_I8, 4 * lanes)


def pairs_of(lanes: int) -> ir.VectorType:
    """A register as numbers of two bytes."""
    return ir.VectorType(_I16, 2 * lanes)


def splat(builder: Any, value: Any, lanes: int) -> Any:
    """One value in all lanes."""
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, value, I32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(words_of(lanes), [0] * lanes))


def in_order(builder: Any, value: Any) -> Any:
    """The value of a register, computed before what comes later in the program.

    Without that LLVM takes all words of a row together, where weights no longer fit in registers
    for the next row: they are written to memory and read again, which takes as long as their
    products. For x86.
    """
    kind = ir.FunctionType(value.type, [value.type])
    nothing = ir.InlineAsm(kind, "", "=x,0", side_effect=True)
    return builder.call(nothing, [value])


def same(kind: ir.VectorType, value: int) -> Any:
    """A vector of one constant."""
    return ir.Constant(kind, [value] * kind.count)
