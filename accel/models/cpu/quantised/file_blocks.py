"""Blocks of weights as GGUF files have them, unpacked into codes and scales, after
``ggml-common.h`` and ``ggml-quants.c`` of llama.cpp. Products of two scales are rounded to fp16."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.quantised.packed_layouts import (
    BLOCK,
    EIGHT,
    FIVE_MINIMUM,
    FIVE_SUPER,
    FOUR,
    FOUR_MINIMUM,
    FOUR_SUPER,
    SIX,
    SIX_SUPER,
    SUPER,
    PackedLayout,
)
from accel.native.numba_cache import compiled

Bytes = NDArray[np.uint8]
Halves = NDArray[np.float16]
Scales = tuple[Halves, NDArray[np.int8]]
"""Of super blocks: float16 [rows, blocks, 1 or 2], what scales are times, and minimums; and both,
int8 [rows, blocks, 8, ..]."""

NIBBLES, NIBBLES_OF_PARTS, BYTES, SIX_BITS = range(4)
"""Layouts of codes in a block: four bits in two halves, the same for each two parts of a K type,
all eight, or Q6_K's."""
_LOW, _FIFTH, _HIGH = np.uint32(0x0F0F0F0F), np.uint32(0x01010101), np.uint32(0x03030303)
_SPREAD, _SIGNS = np.uint32(0x00204081), np.uint32(0x80808080)


@dataclass(frozen=True)
class BlockType:
    """A type of blocks. size: bytes of one; weights: of one; layout: what it is packed into; codes:
    how they are laid out in it; first: bytes before those with their low bits; fifth: before those
    with the fifth bits, 0 where there are none.

    scales: float16 [rows, in / 32, ..] of blocks, uint8 [rows, blocks, size], see
    ``packing.pack_scales``, or of those of a K type what ``in_halves`` takes. plain: the layout of
    a K type whose scales are in halves.
    """

    size: int
    weights: int
    layout: PackedLayout
    codes: int
    first: int
    scales: Callable[[Bytes], Any]
    fifth: int = 0
    plain: PackedLayout | None = None


@compiled(borrows=True, forceinline=True)
def _word(data: Bytes, offset: int) -> np.uint32:
    """Four bytes, the first of them lowest."""
    word = np.uint32(data[offset]) | np.uint32(data[offset + 1]) << np.uint32(8)
    word |= np.uint32(data[offset + 2]) << np.uint32(16)
    return np.uint32(word | np.uint32(data[offset + 3]) << np.uint32(24))


@compiled(borrows=True, forceinline=True)
def read_codes(
    data: Bytes, codes: int, offset: int, part_number: int, fifth: int, word: int
) -> np.uint32:
    """Four codes of a part of a block, from number 4 * ``word`` on, whose low bits begin at an
    offset of data, and whose fifth bits, if any, at another."""
    if codes == BYTES:
        return np.uint32(_word(data, offset + 4 * word) ^ _SIGNS)
    if codes == NIBBLES:
        code = _word(data, offset + 4 * (word % 4)) >> np.uint32(4 * (word // 4)) & _LOW
        if fifth >= 0:
            four = _word(data, fifth) >> np.uint32(4 * word) & np.uint32(15)
            code |= (four * _SPREAD & _FIFTH) << np.uint32(4)
        return np.uint32(code)
    if codes == NIBBLES_OF_PARTS:
        packed = _word(data, offset + 32 * (part_number // 2) + 4 * word)
        code = packed >> np.uint32(4 * (part_number % 2)) & _LOW
        if fifth >= 0:
            bit = _word(data, fifth + 4 * word) >> np.uint32(part_number) & _FIFTH
            code |= bit << np.uint32(4)
        return np.uint32(code)
    half, quarter = part_number // 4, part_number % 4
    low = _word(data, offset + 64 * half + 32 * (quarter % 2) + 4 * word)
    high = _word(data, offset + 128 + 32 * half + 4 * word) >> np.uint32(2 * quarter) & _HIGH
    return np.uint32(low >> np.uint32(4 * (quarter // 2)) & _LOW | high << np.uint32(4))


def _halves(blocks: Bytes, first: int, count: int = 1) -> Halves:
    """fp16 numbers [rows, blocks, count] from an offset in every block on."""
    return np.ascontiguousarray(blocks[..., first : first + 2 * count]).view(np.float16)


_scale, _scale_and_minimum = partial(_halves, first=0), partial(_halves, first=0, count=2)


def _q5_0(blocks: Bytes) -> Halves:
    scales = _scale(blocks)
    return np.concatenate([scales, scales * np.float16(-16)], -1)


def _scales_and_minimums(blocks: Bytes) -> Scales:
    """Of Q4_K and Q5_K: six bits for each of both and each part, in twelve bytes."""
    halves = _halves(blocks, 0, 2).copy()
    halves[..., 1] *= -1
    packed = blocks[..., 4:16]
    low, high, more = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([low & 63, more & 15 | (low >> 6) << 4], -1)
    minimums = np.concatenate([high & 63, more >> 4 | (high >> 6) << 4], -1)
    return halves, np.stack([scales, minimums], -1).view(np.int8)


def _q6_k(blocks: Bytes) -> Scales:
    scales = np.ascontiguousarray(blocks[..., 192:208]).view(np.int8)
    return _halves(blocks, 208), scales.reshape(*scales.shape[:2], SUPER, 2)


def in_halves(scales: Scales) -> Halves:
    """float16 [rows, in / 32, ..] of blocks."""
    halves, times = scales
    both = halves[:, :, None].astype(np.float32) * times
    return both.astype(np.float16).reshape(len(halves), -1, times.shape[-1])


_K = SUPER * BLOCK
_Q4_K = BlockType(144, _K, FOUR_SUPER, NIBBLES_OF_PARTS, 16, _scales_and_minimums)
_Q5_K = BlockType(176, _K, FIVE_SUPER, NIBBLES_OF_PARTS, 48, _scales_and_minimums, fifth=16)
_Q6_K = BlockType(210, _K, SIX_SUPER, SIX_BITS, 0, _q6_k)
BLOCK_TYPES = {
    "Q8_0": BlockType(34, BLOCK, EIGHT, BYTES, 2, _scale),
    "Q4_0": BlockType(18, BLOCK, FOUR, NIBBLES, 2, _scale),
    "Q4_1": BlockType(20, BLOCK, FOUR_MINIMUM, NIBBLES, 4, _scale_and_minimum),
    "Q5_0": BlockType(22, BLOCK, FIVE_MINIMUM, NIBBLES, 6, _q5_0, fifth=2),
    "Q5_1": BlockType(24, BLOCK, FIVE_MINIMUM, NIBBLES, 8, _scale_and_minimum, fifth=4),
    "Q4_K": replace(_Q4_K, plain=FOUR_MINIMUM),
    "Q5_K": replace(_Q5_K, plain=FIVE_MINIMUM),
    "Q6_K": replace(_Q6_K, plain=SIX),
}
"""By the names that llama.cpp gives them."""


def layout_for(kind: str, factor: float) -> PackedLayout:
    """Return the layout for weights of a type, times a factor: scales in halves are rounded once
    more by that, whole numbers are not."""
    block_type = BLOCK_TYPES[kind]
    return block_type.layout if factor == 1 or block_type.plain is None else block_type.plain
