"""Writes a GGUF file: the header, then one tensor after the other.

Source: the GGUF specification (ggml's docs/gguf.md), version 3.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from accel.files.gguf.header import BLOCK_TYPES

_VERSION = 3
_ALIGNMENT = 32
_UINT32, _TEXT, _LIST = 4, 8, 9
_NUMBERS = {kind.name: number for number, kind in BLOCK_TYPES.items()}


@dataclass(frozen=True, slots=True)
class NewTensor:
    """A tensor that is to be written. type: a name of ``BLOCK_TYPES``; shape: as numpy has it;
    rows: gives its bytes uint8 [rows, row_bytes] when their turn comes."""

    name: str
    type: str
    shape: tuple[int, ...]
    rows: Callable[[], NDArray[np.uint8]]

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        kind = BLOCK_TYPES[_NUMBERS[self.type]]
        return prod(self.shape) // kind.values * kind.nbytes


def entry(key: str, value: str | int | Sequence[bytes]) -> bytes:
    """Return a key of the header with its value: a string, a uint32 or a list of strings."""
    if isinstance(value, str):
        content = struct.pack("<I", _TEXT) + _text(value.encode())
    elif isinstance(value, int):
        content = struct.pack("<II", _UINT32, value)
    else:
        texts = b"".join(map(_text, value))
        content = struct.pack("<IIQ", _LIST, _TEXT, len(value)) + texts
    return _text(key.encode()) + content


def write_gguf(
    stream: BinaryIO,
    entries: Sequence[bytes],
    tensors: Sequence[NewTensor],
    on_progress: Callable[[float], None],
) -> None:
    """Write a whole file. entries: of the header, as ``entry`` makes them; on_progress hears which
    share of the bytes is written."""
    stream.write(_header(entries, tensors))
    total, written = sum(tensor.nbytes for tensor in tensors), 0
    for tensor in tensors:
        rows = tensor.rows()
        assert rows.nbytes == tensor.nbytes, tensor.name
        stream.write(_padded(rows.tobytes()))
        written += tensor.nbytes
        on_progress(written / total)


def _header(entries: Sequence[bytes], tensors: Sequence[NewTensor]) -> bytes:
    pieces = [b"GGUF", struct.pack("<IQQ", _VERSION, len(tensors), len(entries)), *entries]
    offset = 0
    for tensor in tensors:
        sizes = tensor.shape[::-1]
        pieces.append(_text(tensor.name.encode()))
        pieces.append(struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes))
        pieces.append(struct.pack("<IQ", _NUMBERS[tensor.type], offset))
        offset += tensor.nbytes + -tensor.nbytes % _ALIGNMENT
    return _padded(b"".join(pieces))


def _text(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)


def q8_0(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return rows of Q8_0 blocks uint8 [rows, row_bytes] of float32 [rows, columns]; 32 divides
    columns. Each block has d = max|x| / 127, as f16, and q = x / d with the float32 d, halves
    rounded away from zero: the same bytes on every machine.

    Source: ``quantize_row_q8_0_ref`` of ggml, with a division where that multiplies."""
    rows, columns = values.shape
    assert columns % 32 == 0, columns
    blocks = values.reshape(-1, 32)
    d = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
    scaled = np.divide(blocks, d, out=np.zeros_like(blocks), where=d > 0)
    codes = np.trunc(scaled)
    # The fraction is exact, and so is its double: 0.49999997 stays below the half.
    codes += np.trunc(2 * (scaled - codes))
    packed = np.empty((len(blocks), 2 + 32), np.uint8)
    packed[:, :2] = d.astype("<f2").view(np.uint8)
    packed[:, 2:] = codes.astype(np.int8).view(np.uint8)
    return packed.reshape(rows, -1)
