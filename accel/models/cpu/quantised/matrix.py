"""A matrix of quantised weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.quantised.activations import Q8_BYTES, Q8Blocks
from accel.models.cpu.quantised.file_blocks import BLOCK_TYPES, Scales, in_halves, layout_for
from accel.models.cpu.quantised.instruction_sets import chosen, layout_of
from accel.models.cpu.quantised.packed_layouts import BLOCK, COLUMNS, EIGHT, PackedLayout
from accel.models.cpu.quantised.packing import (
    Packed,
    arrange,
    pack_blocks,
    pack_codes,
    pack_scales,
    pack_super_scales,
)
from accel.models.cpu.quantised.product import address_of_product, call_product
from accel.native.aligned_memory import empty
from accel.native.numba_cache import compiled

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]

MatrixDescriptor = NDArray[np.int64]
"""int64 [5], of a matrix: addresses of the compiled product and of the first group, blocks along
``in``, groups of columns, number of the layout."""

_AT_ONCE = 64 * COLUMNS
"""Columns that are packed at a time, so that little is held twice."""

_MOST = 127


def packed_shape(layout: PackedLayout, out: int, in_features: int) -> tuple[int, int]:
    """Of ``QuantisedMatrix.packed``: groups, by two, as the forward's threads take columns, and
    bytes of each."""
    return -(-out // (2 * COLUMNS)) * 2, layout.group_bytes(in_features // BLOCK)


class QuantisedMatrix:
    """A matrix [out, in] whose products with rows are computed in whole numbers. Build it with
    ``from_file`` or ``from_numbers``."""

    def __init__(
        self,
        layout: PackedLayout,
        out: int,
        in_features: int,
        instructions: str | None,
        packed: Packed | None = None,
    ) -> None:
        """``packed``: the bytes of a matrix that was packed earlier in the same layout."""
        assert in_features % BLOCK == 0, "whole blocks"
        self.instructions = instructions or chosen()
        self.layout = layout_of(layout, self.instructions)
        self.out, self.in_features = out, in_features
        self.is_finite = True
        """True if all weights are finite numbers."""
        shape = packed_shape(layout, out, in_features)
        self.packed: Packed = empty(shape, np.uint8) if packed is None else packed.reshape(shape)
        if packed is None:
            self.packed[-(-out // COLUMNS) :] = 0

    def _pack(
        self,
        first: int,
        last: int,
        scales: Halves,
        whole_scales: Scales | None,
        pack_codes_of: Callable[[Packed], None],
    ) -> None:
        """The columns from one to before another. whole: the scales of super blocks, where the
        layout has those."""
        self.is_finite = self.is_finite and bool(np.isfinite(scales).all())
        groups = self.packed[first // COLUMNS : -(-last // COLUMNS)]
        if whole_scales is not None and self.layout.has_super_blocks:
            pack_super_scales(self.layout, whole_scales, groups)
        else:
            pack_scales(self.layout, scales, groups)
        pack_codes_of(groups)
        arrange(self.layout, self.in_features // BLOCK, groups)

    @classmethod
    def from_file(
        cls,
        kind: str,
        raw: NDArray[np.uint8],
        in_features: int,
        factor: float = 1.0,
        instructions: str | None = None,
    ) -> QuantisedMatrix:
        """Return a matrix as a GGUF file has it: rows of blocks, uint8 [out, ..], of a type in
        ``file_blocks.BLOCK_TYPES``, ``in_features`` weights each, times a factor. instructions: the
        name of an instruction set, None for the chosen one."""
        block_type = BLOCK_TYPES[kind]
        assert in_features % block_type.weights == 0, "whole blocks"
        matrix = cls(layout_for(kind, factor), len(raw), in_features, instructions)
        for first in range(0, matrix.out, _AT_ONCE):
            rows = raw[first : first + _AT_ONCE]
            scales = block_type.scales(rows.reshape(len(rows), -1, block_type.size))
            scales_or_none = scales if block_type.plain else None
            scales = in_halves(scales_or_none) if scales_or_none else scales
            if factor != 1:
                scales = (scales.astype(np.float32) * np.float32(factor)).astype(np.float16)
            pack_codes_of = partial(pack_blocks, matrix.layout, block_type, rows)
            matrix._pack(first, first + len(rows), scales, scales_or_none, pack_codes_of)
        return matrix

    @classmethod
    def from_numbers(
        cls, rows: Callable[[int, int], Floats], out: int, in_features: int
    ) -> QuantisedMatrix:
        """Return a matrix [out, in] rounded to eight bits, as ``Q8_0`` of llama.cpp has them. rows:
        those from one to before another, float32."""
        matrix = cls(EIGHT, out, in_features, None)
        for first in range(0, out, _AT_ONCE):
            last = min(first + _AT_ONCE, out)
            blocks = rows(first, last).reshape(last - first, -1, BLOCK)
            scales = (np.abs(blocks).max(-1, keepdims=True) / np.float32(_MOST)).astype(np.float16)
            steps = scales.astype(np.float32)
            steps[steps == 0] = np.inf
            rounded = np.clip(np.rint(blocks / steps), -_MOST, _MOST).astype(np.int8)
            codes = np.zeros((-(-(last - first) // COLUMNS) * COLUMNS, in_features), np.uint8)
            written = codes[: last - first]
            np.bitwise_xor(rounded.view(np.uint8).reshape(written.shape), EIGHT.offset, out=written)
            matrix._pack(first, last, scales, None, partial(pack_codes, EIGHT, codes))
        return matrix

    def descriptor(self) -> MatrixDescriptor:
        """Return the argument of ``multiply``, valid as long as the matrix is held."""
        address = address_of_product(self.layout, self.instructions)
        blocks, groups = self.in_features // BLOCK, len(self.packed)
        first = self.packed.ctypes.data
        return np.array([address, first, blocks, groups, self.layout.number], np.int64)


@compiled(borrows=True)
def multiply(
    descriptor: MatrixDescriptor,
    q8: Q8Blocks,
    first_row: int,
    rows: int,
    first: int,
    last: int,
    out: Floats,
    column: int,
) -> None:
    """Write the products of rows, from ``first_row`` on, with the groups from ``first`` to before
    ``last`` of a matrix, into the first rows of out, float32 [rows, ..], from ``column`` on."""
    if rows > 0 and first < last:
        stride = 4 * out.shape[1]
        x = q8.ctypes.data + first_row * descriptor[2] * Q8_BYTES
        to = out.ctypes.data + 4 * column
        call_product(descriptor[0], x, rows, descriptor[2], descriptor[1], first, last, to, stride)
