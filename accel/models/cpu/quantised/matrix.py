"""A matrix of quantised weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.quantised import activations, product
from accel.models.cpu.quantised.activations import RECORD, Records, encode_rows, room_for_records
from accel.models.cpu.quantised.file_blocks import BLOCK_TYPES
from accel.models.cpu.quantised.forms import BLOCK, COLUMNS, EIGHT, Form
from accel.models.cpu.quantised.instruction_sets import chosen
from accel.models.cpu.quantised.packing import Packed, pack_blocks, pack_codes, pack_scales
from accel.models.cpu.quantised.product import address_of_product, call_product
from accel.native import simd
from accel.native.aligned_memory import empty
from accel.native.numba_cache import compiled_with

Floats = NDArray[np.float32]
Halves = NDArray[np.float16]

Place = NDArray[np.int64]
"""int64 [5], of a matrix: addresses of the compiled product and of the first group, blocks along
``in``, groups of columns, number of the form."""

_AT_ONCE = 64 * COLUMNS
"""Columns that are packed at a time, so that little is held twice."""

_MOST = 127


class QuantisedMatrix:
    """A matrix [out, in] whose products with rows are computed in whole numbers. Build it with
    ``from_file`` or ``from_numbers``."""

    def __init__(self, form: Form, out: int, depth: int) -> None:
        assert depth % BLOCK == 0, "whole blocks"
        self.form, self.out, self.depth = form, out, depth
        self.is_finite = True
        """Whether all weights are numbers."""
        # The forward's threads take columns by two groups.
        groups = -(-out // (2 * COLUMNS)) * 2
        self.packed: Packed = empty((groups, form.group_bytes(depth // BLOCK)), np.uint8)
        self.packed[-(-out // COLUMNS) :] = 0

    def _groups(self, first: int, last: int, scales: Halves) -> Packed:
        """Those of the columns from one to before another, with their scales."""
        self.is_finite = self.is_finite and bool(np.isfinite(scales).all())
        groups = self.packed[first // COLUMNS : -(-last // COLUMNS)]
        pack_scales(self.form, scales, groups)
        return groups

    @classmethod
    def from_file(
        cls, kind: str, raw: NDArray[np.uint8], depth: int, factor: float = 1.0
    ) -> QuantisedMatrix:
        """A matrix as a GGUF file has it: rows of blocks, uint8 [out, ..], of a type in
        ``file_blocks.BLOCK_TYPES``, ``depth`` weights each, times a
        factor."""
        of_type = BLOCK_TYPES[kind]
        assert depth % of_type.weights == 0, "whole blocks"
        found = cls(of_type.form, len(raw), depth)
        for first in range(0, found.out, _AT_ONCE):
            rows = raw[first : first + _AT_ONCE]
            scales = of_type.scales(rows.reshape(len(rows), -1, of_type.size))
            if factor != 1:
                scales = (scales.astype(np.float32) * np.float32(factor)).astype(np.float16)
            pack_blocks(of_type, rows, found._groups(first, first + len(rows), scales))
        return found

    @classmethod
    def from_numbers(
        cls, rows: Callable[[int, int], Floats], out: int, depth: int
    ) -> QuantisedMatrix:
        """A matrix [out, in] rounded to eight bits, as ``Q8_0`` of llama.cpp has them. rows:
        those from one to before another, float32."""
        found = cls(EIGHT, out, depth)
        for first in range(0, out, _AT_ONCE):
            last = min(first + _AT_ONCE, out)
            blocks = rows(first, last).reshape(last - first, -1, BLOCK)
            scales = (np.abs(blocks).max(-1, keepdims=True) / np.float32(_MOST)).astype(np.float16)
            steps = scales.astype(np.float32)
            steps[steps == 0] = np.inf
            rounded = np.clip(np.rint(blocks / steps), -_MOST, _MOST).astype(np.int8)
            groups = found._groups(first, last, scales)
            codes = np.zeros((len(groups) * COLUMNS, depth), np.uint8)
            written = codes[: last - first]
            np.bitwise_xor(rounded.view(np.uint8).reshape(written.shape), EIGHT.offset, out=written)
            pack_codes(EIGHT, codes, groups)
        return found

    def place(self, instructions: str | None = None) -> Place:
        """What ``multiply`` takes, valid as long as the matrix is held. instructions: the name of
        an instruction set, None for the chosen one."""
        address = address_of_product(self.form, instructions or chosen())
        blocks, groups = self.depth // BLOCK, len(self.packed)
        first = self.packed.ctypes.data
        return np.array([address, first, blocks, groups, self.form.number], np.int64)

    def products(self, x: Floats, instructions: str | None = None) -> Floats:
        """float32 [rows, out] of rows, float32 [rows, in]."""
        rows, place = len(x), self.place(instructions)
        records = room_for_records(rows, self.depth)
        out = np.empty((rows, len(self.packed) * COLUMNS), np.float32)
        encode_rows(np.ascontiguousarray(x), rows, records)
        multiply(place, records, 0, rows, 0, len(self.packed), out, 0)
        return out[:, : self.out]


@compiled_with(activations, simd, product, borrows=True)
def multiply(
    place: Place,
    records: Records,
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
        x = records.ctypes.data + first_row * place[2] * RECORD
        to = out.ctypes.data + 4 * column
        call_product(place[0], x, rows, place[2], place[1], first, last, to, stride)


__all__ = ["Place", "QuantisedMatrix", "multiply"]
