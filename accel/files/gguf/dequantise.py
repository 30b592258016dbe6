"""The values of a tensor of a GGUF file, slowly and obviously: the reference for what is fast.

Source: the block layouts of ggml (``ggml-common.h``, ``ggml-quants.h``). In the sketches below
``d`` and ``m`` are f16, and ``q`` is a small whole number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from accel.errors import UnsupportedModel
from accel.files.gguf.header import GgmlType
from accel.files.gguf.metadata import OTHER_TYPE

Blocks: TypeAlias = NDArray[np.uint8]
"""[blocks, bytes of a block]"""
Values: TypeAlias = NDArray[np.float32]
"""[blocks, values of a block], or of parts of blocks"""

_PIECE = 1 << 16
"""Values that are worked out at a time: what is made on the way stays in the processor's cache."""

_LEVELS = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32
)
"""The sixteen values of IQ4, which do not lie at equal distances."""


def can_be_read(kind: GgmlType) -> bool:
    """Return whether ``dequantise`` reads this type."""
    return kind.name in _READERS


def dequantise(data: NDArray[np.uint8], kind: GgmlType) -> Values:
    """Return values float32 [rows, columns] of rows of bytes uint8 [rows, row_bytes]. Raises
    UnsupportedModel for a type that is not known."""
    if not can_be_read(kind):
        raise UnsupportedModel(f"weights of type {kind.name} are not known", OTHER_TYPE)
    blocks = np.ascontiguousarray(data).reshape(-1, kind.nbytes)
    values = np.empty((len(blocks), kind.values), np.float32)
    step = max(_PIECE // kind.values, 1)
    # What a damaged file holds may be infinite: the caller sees it, numpy need not warn.
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, len(blocks), step):
            piece = slice(start, start + step)
            values[piece] = _READERS[kind.name](blocks[piece])
    return values.reshape(len(data), -1)


def _bf16(blocks: Blocks) -> Values:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q8_0(blocks: Blocks) -> Values:
    """d, q[32]: d * q."""
    return _scale(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _q4_0(blocks: Blocks) -> Values:
    """d, nibbles[16]: d * (q - 8)."""
    return _scale(blocks, 0) * (_nibbles(blocks[:, 2:]).astype(np.float32) - 8)


def _q4_1(blocks: Blocks) -> Values:
    """d, m, nibbles[16]: d * q + m."""
    return _scale(blocks, 0) * _nibbles(blocks[:, 4:]).astype(np.float32) + _scale(blocks, 2)


def _q5_0(blocks: Blocks) -> Values:
    """d, high bits[4], nibbles[16]: d * (q - 16)."""
    q = _nibbles(blocks[:, 6:]) | _bits(blocks[:, 2:6]) << 4
    return _scale(blocks, 0) * (q.astype(np.float32) - 16)


def _q5_1(blocks: Blocks) -> Values:
    """d, m, high bits[4], nibbles[16]: d * q + m."""
    q = _nibbles(blocks[:, 8:]) | _bits(blocks[:, 4:8]) << 4
    return _scale(blocks, 0) * q.astype(np.float32) + _scale(blocks, 2)


def _iq4_nl(blocks: Blocks) -> Values:
    """d, nibbles[16]: d * level[q]."""
    return _scale(blocks, 0) * _LEVELS[_nibbles(blocks[:, 2:])]


def _q2_k(blocks: Blocks) -> Values:
    """s[16], twos[64], d, m: d * (s & 15) * q - m * (s >> 4), 16 values for each s."""
    scales = blocks[:, :16, None]
    q = _crumbs(blocks[:, 16:80]).reshape(-1, 16, 16).astype(np.float32)
    d, m = _scale(blocks, 80)[:, :, None], _scale(blocks, 82)[:, :, None]
    return (d * (scales & 15) * q - m * (scales >> 4)).reshape(-1, 256)


def _q3_k(blocks: Blocks) -> Values:
    """high bits[32], twos[64], s[12], d: d * (s - 32) * (q - 4), 16 values for each of 16 s."""
    high = blocks[:, None, :32] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    q = _crumbs(blocks[:, 32:96]) | high.reshape(-1, 256) << 2
    packed = blocks[:, 96:108]
    low = np.concatenate([packed[:, :8] & 15, packed[:, :8] >> 4], 1)
    shifts = np.repeat(np.array([0, 2, 4, 6], np.uint8), 4)
    scales = low | (np.tile(packed[:, 8:], 4) >> shifts & 3) << 4
    wide = _scale(blocks, 108) * (scales.astype(np.float32) - 32)
    return (wide[:, :, None] * (q.astype(np.float32) - 4).reshape(-1, 16, 16)).reshape(-1, 256)


def _q4_k(blocks: Blocks) -> Values:
    """d, m, six-bit s and t[12], nibbles[128]: d * s * q - m * t, 32 values for each of 8."""
    q = _nibbles(blocks[:, 16:].reshape(-1, 32)).reshape(-1, 8, 32)
    return _scaled_k(blocks, q)


def _q5_k(blocks: Blocks) -> Values:
    """d, m, six-bit s and t[12], high bits[32], nibbles[128]: as Q4_K."""
    q = _nibbles(blocks[:, 48:].reshape(-1, 32)).reshape(-1, 8, 32)
    high = blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _scaled_k(blocks, (q | high << 4).astype(np.uint8))


def _scaled_k(blocks: Blocks, q: NDArray[np.uint8]) -> Values:
    packed = blocks[:, 4:16].reshape(-1, 3, 4)
    first, second, third = packed[:, 0], packed[:, 1], packed[:, 2]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], 1).astype(np.float32)
    least = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], 1).astype(np.float32)
    wide, low = _scale(blocks, 0) * scales, _scale(blocks, 2) * least
    return (wide[:, :, None] * q.astype(np.float32) - low[:, :, None]).reshape(-1, 256)


def _q6_k(blocks: Blocks) -> Values:
    """nibbles[128], twos[64], s[16] as int8, d: d * s * (q - 32), 16 values for each s."""
    low = _nibbles(blocks[:, :128].reshape(-1, 64)).reshape(-1, 256)
    q = (low | _crumbs(blocks[:, 128:192]) << 4).astype(np.float32) - 32
    wide = _scale(blocks, 208) * blocks[:, 192:208].view(np.int8).astype(np.float32)
    return (wide[:, :, None] * q.reshape(-1, 16, 16)).reshape(-1, 256)


def _iq4_xs(blocks: Blocks) -> Values:
    """d, s's high twos[2], s's nibbles[4], nibbles[128]: d * (s - 32) * level[q], 32 each."""
    low = np.stack([blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4], 2).reshape(-1, 8)
    shifts = np.array([0, 2, 4, 6], np.uint8)
    high = (blocks[:, 2:4, None] >> shifts & 3).reshape(-1, 8)
    wide = _scale(blocks, 0) * ((low | high << 4).astype(np.float32) - 32)
    q = _nibbles(blocks[:, 8:].reshape(-1, 16)).reshape(-1, 8, 32)
    return (wide[:, :, None] * _LEVELS[q]).reshape(-1, 256)


def _scale(blocks: Blocks, offset: int) -> Values:
    return np.ascontiguousarray(blocks[:, offset : offset + 2]).view("<f2").astype(np.float32)


def _nibbles(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the lower halves of all bytes of a row, then the upper ones."""
    return np.concatenate([data & 15, data >> 4], 1)


def _bits(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the bits of each row, the lowest of the first byte first."""
    return np.unpackbits(data, axis=1, bitorder="little")


def _crumbs(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the quarters of each 32 bytes of a row, the lowest of all 32 first. [blocks, 256]"""
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    quarters = data.reshape(-1, 2, 1, 32) >> shifts & 3
    return quarters.reshape(len(data), -1).astype(np.uint8)


_OF_BLOCKS: tuple[Callable[[Blocks], Values], ...] = (
    *(_bf16, _q8_0, _q4_0, _q4_1, _q5_0, _q5_1, _q2_k, _q3_k, _q4_k, _q5_k, _q6_k),
    *(_iq4_nl, _iq4_xs),
)
_READERS: dict[str, Callable[[Blocks], Values]] = {
    "F32": lambda blocks: blocks.view("<f4").astype(np.float32),
    "F16": lambda blocks: blocks.view("<f2").astype(np.float32),
    **{reader.__name__.lstrip("_").upper(): reader for reader in _OF_BLOCKS},
}
