"""GGUF's blocks of weights, read number by number, and products computed block by block."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.quantised.activations import Q8_BYTES, Q8Blocks, quantise_rows
from accel.models.cpu.quantised.matrix import QuantisedMatrix, multiply
from accel.models.cpu.quantised.packed_layouts import BLOCK, COLUMNS
from accel.native.aligned_memory import empty

SIZES = {
    "Q8_0": (34, 32),
    "Q4_0": (18, 32),
    "Q4_1": (20, 32),
    "Q5_0": (22, 32),
    "Q5_1": (24, 32),
    "Q4_K": (144, 256),
    "Q5_K": (176, 256),
    "Q6_K": (210, 256),
}
"""Bytes and weights of a block."""

_SCALES = {"Q8_0": 1, "Q4_0": 1, "Q5_0": 1}


class Weight(NamedTuple):
    """``scale * code + minimum``; the code may have a sign."""

    scale: np.float32
    code: int
    minimum: np.float32


def random_blocks(
    kind: str, out: int, in_features: int, generator: np.random.Generator, factor: float = 1.0
) -> NDArray[np.uint8]:
    """A matrix of random codes and small scales, times a factor, uint8 [out, bytes]."""
    size, weights = SIZES[kind]
    raw = generator.integers(0, 256, (out, in_features // weights, size), dtype=np.uint8)
    count = _SCALES.get(kind, 2)
    scales = 0.002 + 0.01 * generator.random((out, in_features // weights, count))
    scales = (factor * scales).astype(np.float16)
    if kind == "Q6_K":
        raw[..., 208:] = scales[..., :1].view(np.uint8)
    else:
        raw[..., : 2 * count] = scales.view(np.uint8)
    return raw.reshape(out, -1)


def _half(block: bytes, place: int) -> np.float32:
    return np.float32(struct.unpack_from("<e", block, place)[0])


def _rounded(value: np.float32) -> np.float32:
    return np.float32(np.float16(value))


def _small(kind: str, block: bytes, place: int) -> Weight:
    """A weight of a block of 32."""
    has_minimum, nothing = kind.endswith("1"), np.float32(0)
    scale, minimum = _half(block, 0), _half(block, 2) if has_minimum else nothing
    first = 4 if has_minimum else 2
    if kind == "Q8_0":
        return Weight(scale, struct.unpack_from("b", block, first + place)[0], nothing)
    fifth = 0
    if kind.startswith("Q5"):
        fifth = struct.unpack_from("<I", block, first)[0] >> place & 1
        first += 4
    byte = block[first + place % 16]
    code = (byte >> 4 if place >= 16 else byte & 15) | fifth << 4
    if kind == "Q4_0":
        return Weight(scale, code - 8, nothing)
    return Weight(scale, code, np.float32(-16) * scale if kind == "Q5_0" else minimum)


def _six_bits(packed: bytes, part: int) -> tuple[int, int]:
    """Scale and minimum of a part, as ``get_scale_min_k4`` has them."""
    if part < 4:
        return packed[part] & 63, packed[part + 4] & 63
    low, high = packed[part + 4] & 15, packed[part + 4] >> 4
    return low | packed[part - 4] >> 6 << 4, high | packed[part] >> 6 << 4


def _with_parts(kind: str, block: bytes, place: int) -> Weight:
    """A weight of a block of Q4_K or Q5_K."""
    part, within = place // 32, place % 32
    scale, minimum = _six_bits(block[4:16], part)
    first = 16 if kind == "Q4_K" else 48
    byte = block[first + part // 2 * 32 + within]
    code = byte >> 4 if part % 2 else byte & 15
    if kind == "Q5_K":
        code |= (block[16 + within] >> part & 1) << 4
    return Weight(_rounded(_half(block, 0) * scale), code, _rounded(-_half(block, 2) * minimum))


def _six(block: bytes, place: int) -> Weight:
    """A weight of a block of Q6_K."""
    half, quarter, within = place // 128, place % 128 // 32, place % 32
    byte = block[64 * half + 32 * (quarter % 2) + within]
    code = byte >> 4 if quarter >= 2 else byte & 15
    code |= (block[128 + 32 * half + within] >> 2 * quarter & 3) << 4
    scale = struct.unpack_from("b", block, 192 + place // 16)[0]
    return Weight(_rounded(_half(block, 208) * np.float32(scale)), code - 32, np.float32(0))


def weights_of(kind: str, row: NDArray[np.uint8], in_features: int) -> list[Weight]:
    """All weights of a row of blocks."""
    size, count = SIZES[kind]
    actual = []
    for position in range(in_features):
        at = position // count * size
        block, within = row[at : at + size].tobytes(), position % count
        if kind == "Q6_K":
            actual.append(_six(block, within))
        elif kind in ("Q4_K", "Q5_K"):
            actual.append(_with_parts(kind, block, within))
        else:
            actual.append(_small(kind, block, within))
    return actual


class Values(NamedTuple):
    """A row of activations in int8. codes: int8 [blocks, 32]; scales: float32 [blocks]."""

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]


def values_of(x: NDArray[np.float32]) -> Values:
    """A row, rounded block by block."""
    blocks = x.reshape(-1, 32)
    most = np.abs(blocks).max(1)
    factors = np.divide(np.float32(127), most, where=most > 0, out=np.zeros_like(most))
    codes = np.rint(blocks * factors[:, None]).astype(np.int8)
    return Values(codes, most / np.float32(127))


def _fused(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """a * b + c, rounded once where long numbers are longer than double ones."""
    return np.float32(np.longdouble(a) * np.longdouble(b) + np.longdouble(c))


def product(kind: str, weights: list[Weight], values: Values) -> np.float32:
    """One number, with sums in the order and with the roundings of ``write_tile``."""
    total = np.float32(0)
    parts = 2 if kind == "Q6_K" else 1
    size = 32 // parts
    for block, codes in enumerate(values.codes):
        scale = values.scales[block]
        for part in range(parts):
            positions = range(part * size, part * size + size)
            of_part = [weights[32 * block + position] for position in positions]
            dot = sum(w.code * int(codes[p]) for w, p in zip(of_part, positions, strict=True))
            total = _fused(np.float32(dot), of_part[0].scale * scale, total)
        minimum = weights[32 * block].minimum
        if minimum:
            unit = scale * np.float32(codes.astype(int).sum())
            total = _fused(minimum, unit, total)
    return total


def empty_q8(rows: int, in_features: int) -> Q8Blocks:
    """Return an array for rows of ``in_features`` numbers."""
    assert in_features % BLOCK == 0, "whole blocks"
    return empty((rows, in_features // BLOCK, Q8_BYTES), np.int8)


def products(matrix: QuantisedMatrix, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return what the compiled code multiplies: float32 [rows, out] of rows, float32 [rows, in]."""
    rows, columns = len(x), len(matrix.packed) * COLUMNS
    q8 = empty_q8(rows, matrix.in_features)
    out = np.empty((rows, columns), np.float32)
    quantise_rows(np.ascontiguousarray(x), rows, q8)
    multiply(matrix.descriptor(), q8, 0, rows, 0, len(matrix.packed), out, 0)
    return out[:, : matrix.out]
