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
from accel.models.cpu.quantised.packing import Packed, pack
from accel.models.cpu.quantised.product import address_of_product, call_product
from accel.native import simd
from accel.native.aligned_memory import empty
from accel.native.numba_cache import compiled_with

Floats = NDArray[np.float32]

Place = NDArray[np.int64]
"""int64 [5], of a matrix: addresses of the compiled product and of the first group, blocks along
``in``, groups of columns, number of the form."""

_AT_ONCE = 16 * COLUMNS
"""Columns that are packed at a time, so that little is held twice."""

_MOST = 127

Apart = Callable[[int, int, NDArray[np.uint8]], NDArray[np.float16]]
"""Writes the codes of columns from one to before another, and returns their scales, see ``pack``.
"""


class QuantisedMatrix:
    """A matrix [out, in] whose products with rows are computed in whole numbers. Build it with
    ``from_file`` or ``from_numbers``."""

    def __init__(self, form: Form, out: int, depth: int, apart: Apart) -> None:
        assert depth % BLOCK == 0, "whole blocks"
        self.form, self.out, self.depth = form, out, depth
        self.is_finite = True
        """Whether all weights are numbers."""
        # The forward's threads take columns by two groups.
        groups = -(-out // (2 * COLUMNS)) * 2
        self.packed: Packed = empty((groups, form.group_bytes(depth // BLOCK)), np.uint8)
        for first in range(0, out, _AT_ONCE):
            last = min(first + _AT_ONCE, out)
            self._pack(first, last, apart)
        self.packed[-(-out // COLUMNS) :] = 0

    def _pack(self, first: int, last: int, apart: Apart) -> None:
        groups = self.packed[first // COLUMNS : -(-last // COLUMNS)]
        codes = np.zeros((len(groups) * COLUMNS, self.depth), np.uint8)
        scales = apart(first, last, codes[: last - first])
        self.is_finite = self.is_finite and bool(np.isfinite(scales).all())
        missing = len(codes) - (last - first)
        scales = np.pad(scales, [(0, missing), (0, 0), (0, 0)])
        pack(self.form, codes, scales, groups)

    @classmethod
    def from_file(
        cls, kind: str, raw: NDArray[np.uint8], depth: int, factor: float = 1.0
    ) -> QuantisedMatrix:
        """A matrix as a GGUF file has it: rows of blocks, uint8 [out, ..], of a type in
        ``file_blocks.BLOCK_TYPES``, ``depth`` weights each, times a
        factor."""
        of_type = BLOCK_TYPES[kind]
        assert depth % of_type.weights == 0, "whole blocks"

        def apart(first: int, last: int, codes: NDArray[np.uint8]) -> NDArray[np.float16]:
            count = last - first
            blocks = raw[first:last].reshape(count, -1, of_type.size)
            scales = of_type.apart(blocks, codes.reshape(count, -1, of_type.weights))
            if factor == 1:
                return scales
            return (scales.astype(np.float32) * np.float32(factor)).astype(np.float16)

        return cls(of_type.form, len(raw), depth, apart)

    @classmethod
    def from_numbers(
        cls, rows: Callable[[int, int], Floats], out: int, depth: int
    ) -> QuantisedMatrix:
        """A matrix [out, in] rounded to eight bits, as ``Q8_0`` of llama.cpp has them. rows:
        those from one to before another, float32."""

        def apart(first: int, last: int, codes: NDArray[np.uint8]) -> NDArray[np.float16]:
            blocks = rows(first, last).reshape(last - first, -1, BLOCK)
            scales = (np.abs(blocks).max(-1, keepdims=True) / np.float32(_MOST)).astype(np.float16)
            steps = scales.astype(np.float32)
            steps[steps == 0] = np.inf
            found = np.clip(np.rint(blocks / steps), -_MOST, _MOST).astype(np.int8)
            np.bitwise_xor(found.view(np.uint8).reshape(codes.shape), EIGHT.offset, out=codes)
            return scales

        return cls(EIGHT, out, depth, apart)

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
