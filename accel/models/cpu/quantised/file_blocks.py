"""Blocks of weights as GGUF files have them, taken apart into codes and scales.

After ``ggml-common.h`` and ``ggml-quants.c`` of llama.cpp. A row of a matrix is a row of blocks; a
block has 32 weights, or 256 in the K types. What two numbers make, as a scale of a K type and that
of its part do, is rounded to fp16, an eighth of a thousandth of the step between two codes or less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.quantised.forms import (
    BLOCK,
    EIGHT,
    FIVE_MINIMUM,
    FOUR,
    FOUR_MINIMUM,
    SIX,
    Form,
)

Bytes = NDArray[np.uint8]
Halves = NDArray[np.float16]

_PARTS = 8
"""Blocks of 32 in one of the K types."""


@dataclass(frozen=True)
class BlockType:
    """A type of blocks. size: bytes of one; weights: of one; form: what it becomes.

    apart: writes the codes, uint8 [rows, blocks, weights], of blocks, uint8 [rows, blocks, size],
    and returns the scales, float16 [rows, in / 32, ..], see ``packing.pack``.
    """

    size: int
    weights: int
    form: Form
    apart: Callable[[Bytes, Bytes], Halves]


def _halves(blocks: Bytes, first: int, count: int = 1) -> Halves:
    """fp16 numbers [rows, blocks, count] from a place of every block on."""
    return np.ascontiguousarray(blocks[..., first : first + 2 * count]).view(np.float16)


def _nibbles(packed: Bytes, codes: Bytes) -> None:
    """Low four bits of all bytes, then the high ones."""
    half = packed.shape[-1]
    np.bitwise_and(packed, 15, out=codes[..., :half])
    np.right_shift(packed, 4, out=codes[..., half:])


def _fifth_bits(packed: Bytes, codes: Bytes) -> None:
    """Add 32 bits, uint8 [.., 4], to the codes of a block."""
    bits = np.unpackbits(np.ascontiguousarray(packed), axis=-1, bitorder="little")
    codes |= bits << 4


def _q8_0(blocks: Bytes, codes: Bytes) -> Halves:
    np.bitwise_xor(blocks[..., 2:], 128, out=codes)
    return _halves(blocks, 0)


def _q4_0(blocks: Bytes, codes: Bytes) -> Halves:
    _nibbles(blocks[..., 2:], codes)
    return _halves(blocks, 0)


def _q4_1(blocks: Bytes, codes: Bytes) -> Halves:
    _nibbles(blocks[..., 4:], codes)
    return _halves(blocks, 0, 2)


def _q5_0(blocks: Bytes, codes: Bytes) -> Halves:
    _nibbles(blocks[..., 6:], codes)
    _fifth_bits(blocks[..., 2:6], codes)
    scales = _halves(blocks, 0)
    return np.concatenate([scales, scales * np.float16(-16)], -1)


def _q5_1(blocks: Bytes, codes: Bytes) -> Halves:
    _nibbles(blocks[..., 8:], codes)
    _fifth_bits(blocks[..., 4:8], codes)
    return _halves(blocks, 0, 2)


def _scales_and_minimums(blocks: Bytes) -> Halves:
    """Of Q4_K and Q5_K: six bits for each of both and each part, in twelve bytes."""
    whole = _halves(blocks, 0, 2).astype(np.float32)
    packed = blocks[..., 4:16]
    low, high, more = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([low & 63, more & 15 | (low >> 6) << 4], -1)
    minimums = np.concatenate([high & 63, more >> 4 | (high >> 6) << 4], -1)
    both = np.stack([whole[..., :1] * scales, -whole[..., 1:] * minimums], -1)
    return both.astype(np.float16).reshape(len(blocks), -1, 2)


def _nibbles_of_parts(packed: Bytes, codes: Bytes) -> None:
    """Of the K types: 32 bytes have the four bits of a part, and above them those of the next."""
    pairs = packed.reshape(*packed.shape[:-1], _PARTS // 2, BLOCK)
    _nibbles(pairs, codes.reshape(*codes.shape[:-1], _PARTS // 2, 2 * BLOCK))


def _q4_k(blocks: Bytes, codes: Bytes) -> Halves:
    _nibbles_of_parts(blocks[..., 16:], codes)
    return _scales_and_minimums(blocks)


def _q5_k(blocks: Bytes, codes: Bytes) -> Halves:
    _nibbles_of_parts(blocks[..., 48:], codes)
    parts = codes.reshape(*codes.shape[:-1], _PARTS, BLOCK)
    fifth = blocks[..., 16:48]
    for part in range(_PARTS):
        parts[..., part, :] |= (fifth >> part & 1) << 4
    return _scales_and_minimums(blocks)


def _q6_k(blocks: Bytes, codes: Bytes) -> Halves:
    low = blocks[..., :128].reshape(*blocks.shape[:-1], 2, 2 * BLOCK)
    high = blocks[..., 128:192].reshape(*blocks.shape[:-1], 2, BLOCK)
    quarters = codes.reshape(*codes.shape[:-1], 2, 4, BLOCK)
    _nibbles(low, quarters.reshape(*codes.shape[:-1], 2, 4 * BLOCK))
    for quarter in range(4):
        quarters[..., quarter, :] |= (high >> 2 * quarter & 3) << 4
    scales = blocks[..., 192:208].view(np.int8).astype(np.float32) * _halves(blocks, 208)
    return scales.astype(np.float16).reshape(len(blocks), -1, 2)


BLOCK_TYPES = {
    "Q8_0": BlockType(34, BLOCK, EIGHT, _q8_0),
    "Q4_0": BlockType(18, BLOCK, FOUR, _q4_0),
    "Q4_1": BlockType(20, BLOCK, FOUR_MINIMUM, _q4_1),
    "Q5_0": BlockType(22, BLOCK, FIVE_MINIMUM, _q5_0),
    "Q5_1": BlockType(24, BLOCK, FIVE_MINIMUM, _q5_1),
    "Q4_K": BlockType(144, _PARTS * BLOCK, FOUR_MINIMUM, _q4_k),
    "Q5_K": BlockType(176, _PARTS * BLOCK, FIVE_MINIMUM, _q5_k),
    "Q6_K": BlockType(210, _PARTS * BLOCK, SIX, _q6_k),
}
"""By the names that llama.cpp gives them."""


__all__ = ["BLOCK_TYPES", "BlockType"]
