"""Rows of a matrix of quantised weights as numbers: what tokens begin with, where the table of
embeddings is kept so."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from accel.models.cpu.quantised import forms
from accel.models.cpu.quantised.forms import BLOCK, COLUMNS, FORMS, PLANE, SCALES, WORDS
from accel.native.numba_cache import compiled_with
from accel.native.simd import F32, I64

_BITS = tuple(form.bits for form in FORMS)
_OFFSETS = tuple(form.offset for form in FORMS)
_PARTS = tuple(form.parts for form in FORMS)
_MINIMUMS = tuple(int(form.has_minimum) for form in FORMS)


def _loaded(kind: Any, result: types.Type, convert: Any) -> Any:
    @intrinsic
    def load(_context: Any, address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            place = builder.inttoptr(arguments[0], kind.as_pointer())
            return convert(builder, builder.load(place))

        return result(address), generate

    return load


_byte = _loaded(ir.IntType(8), types.int64, lambda builder, value: builder.zext(value, I64))
_half = _loaded(ir.HalfType(), types.float32, lambda builder, value: builder.fpext(value, F32))


@compiled_with(forms, borrows=True)
def _code(bits: int, planes: int, column: int, place: int) -> int:
    """The code of a number of a block whose planes begin at an address."""
    word, byte = place // 4, 4 * column + place % 4
    if bits == 8:
        return _byte(planes + word * PLANE + byte)
    code = _byte(planes + word // 2 * PLANE + byte) >> (word % 2 * 4) & 15
    more = bits - 4
    if more > 0:
        in_plane = WORDS // more
        high = _byte(planes + (WORDS // 2 + word // in_plane) * PLANE + byte)
        code |= (high >> (word % in_plane * more) & ((1 << more) - 1)) << 4
    return code


@compiled_with(forms, borrows=True)
def write_row(place: NDArray[np.int64], index: int, x: NDArray[np.float32], row: int) -> None:
    """Write the weights of one of a matrix's columns, as ``forms`` calls them, to a row of x.
    place: see ``matrix.Place``."""
    form, blocks = place[4], place[2]
    bits, parts, offset = _BITS[form], _PARTS[form], np.float32(_OFFSETS[form])
    scale_bytes = SCALES * (parts + _MINIMUMS[form])
    scales_bytes = (blocks * scale_bytes + PLANE - 1) // PLANE * PLANE
    group_bytes = scales_bytes + blocks * bits * PLANE
    group, column = place[1] + index // COLUMNS * group_bytes, index % COLUMNS
    for block in range(blocks):
        scales = group + block * scale_bytes + 2 * column
        planes = group + scales_bytes + block * bits * PLANE
        minimum = np.float32(0)
        if _MINIMUMS[form]:
            minimum = _half(scales + parts * SCALES)
        for i in range(BLOCK):
            scale = _half(scales + i * parts // BLOCK * SCALES)
            code = np.float32(_code(bits, planes, column, i)) - offset
            x[row, block * BLOCK + i] = scale * code + minimum


__all__ = ["write_row"]
