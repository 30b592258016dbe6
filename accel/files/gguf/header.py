"""The header of one GGUF file: metadata and where each tensor lies, read within limits.

Source: the GGUF specification (ggml's docs/gguf.md), versions 2 and 3.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import FileIO
from math import prod
from pathlib import Path
from struct import Struct
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from accel.errors import BrokenModel, UnsupportedModel
from accel.files.gguf.metadata import AGAIN, OTHER_TYPE, Metadata, StringArray, Value
from accel.files.safetensors import check_not_stand_in

MOST_HEADER = 1 << 27
"""Bytes of a header. One with 260,000 tokens has 20 MB."""
MOST_KEYS = MOST_TENSORS = 1 << 16
MOST_ITEMS = 1 << 22
"""Items of a list."""
MOST_TEXT = 1 << 24
"""Bytes of a string."""
MOST_NAME = 1 << 8
"""Bytes of a tensor's name, and characters of a key that a message shows."""
MOST_DIMENSIONS = 4
MOST_ALIGNMENT = 1 << 20

_PIECE = 1 << 20
"""Bytes that are read at a time."""

_START = 512
"""Bytes that tell what was stored in place of a GGUF file."""

_LENGTH = Struct("<Q")
_TEXT, _LIST, _BOOL = 8, 9, 7
_NUMBERS = dict(enumerate(("<u1", "<i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?")))
_NUMBERS |= {10: "<u8", 11: "<i8", 12: "<f8"}
"""numpy's name of each kind of number."""

_TYPES_FILE = Path(__file__).with_name("block_types.json")
SMALL_BLOCK = 32
"""Values of the smallest quantised blocks: our own forward takes sizes that are made of them."""


@dataclass(frozen=True, slots=True)
class GgmlType:
    """One way to store values. A row is a whole number of blocks."""

    name: str
    values: int
    """Values of a block."""
    nbytes: int
    """Bytes of a block."""


BLOCK_TYPES = {
    number: GgmlType(*fields)
    for number, *fields in json.loads(
        Path(__file__).with_name("block_types.json").read_text("utf-8")
    )
}
"""By the number that a file has for it, as the specification's ``ggml_type``."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Position and type of a tensor."""

    name: str
    type: GgmlType
    shape: tuple[int, ...]
    """As numpy has it: the last dimension is the one whose values lie side by side."""
    place: int
    """Bytes before it in its file."""
    part: int = 0
    """The file that holds it, where a model is split."""

    @property
    def rows(self) -> int:
        """Rows, of ``row_bytes`` each."""
        return prod(self.shape[:-1])

    @property
    def row_bytes(self) -> int:
        return self.shape[-1] // self.type.values * self.type.nbytes

    @property
    def nbytes(self) -> int:
        return self.rows * self.row_bytes


def read_header(stream: FileIO, path: Path, size: int) -> tuple[Metadata, list[Tensor]]:
    """Metadata and tensors of a file of ``size`` bytes, every tensor being inside of it. Raises
    BrokenModel or UnsupportedModel."""
    return _Header(stream, path, size).read()


class _Header:
    def __init__(self, stream: FileIO, path: Path, size: int) -> None:
        self._stream = stream
        self._path = path
        self._size = size
        self._bytes = bytearray()
        self._place = 0

    def read(self) -> tuple[Metadata, list[Tensor]]:
        start = bytes(self._take(min(self._size, _START)))
        self._place = 4
        if self._size < 8 or not start.startswith(b"GGUF"):
            check_not_stand_in(self._path, start)
            self._refuse("it does not begin as a GGUF file does")
        version = self._integer(4)
        if version not in (2, 3):
            swapped = int.from_bytes(version.to_bytes(4, "big"), "little")
            why = "is of a big-endian machine" if swapped in (2, 3) else f"has version {version}"
            raise UnsupportedModel(
                f"{self._path} {why}", "convert the model with today's llama.cpp"
            )
        tensors, keys = self._count(MOST_TENSORS, "tensors"), self._count(MOST_KEYS, "keys")
        values: dict[str, Value] = {}
        spans: dict[str, slice] = {}
        for _ in range(keys):
            start_of_entry = self._place
            key = self._text(MOST_TEXT)
            if key in values:
                self._refuse(f"it has the key {shown(key)} twice")
            values[key] = self._value()
            spans[key] = slice(start_of_entry, self._place)
        metadata = Metadata(self._path, values, spans)
        return metadata, self._tensors(tensors, metadata)

    def _tensors(self, count: int, metadata: Metadata) -> list[Tensor]:
        tensors = [self._tensor() for _ in range(count)]
        if len({tensor.name for tensor, _ in tensors}) < count:
            self._refuse("two of its tensors have one name")
        alignment = metadata.integer("general.alignment", 1, MOST_ALIGNMENT) or 32
        start = self._place + -self._place % alignment
        placed, end = [], 0
        for tensor, offset in tensors:
            # Writers lay tensors one after the other: another offset is damage.
            if offset != end:
                self._refuse(f"the offset of {shown(tensor.name)} is wrong")
            end += tensor.nbytes
            if start + end > self._size:
                self._refuse(f"it ends within {shown(tensor.name)}")
            end += -end % alignment
            placed.append(Tensor(tensor.name, tensor.type, tensor.shape, place=start + offset))
        return placed

    def _tensor(self) -> tuple[Tensor, int]:
        name = self._text(MOST_NAME)
        dimensions = self._integer(4)
        if not 1 <= dimensions <= MOST_DIMENSIONS:
            self._refuse(f"{shown(name)} has {dimensions} dimensions")
        shape = tuple(self._integer(8) for _ in range(dimensions))[::-1]
        number, offset = self._integer(4), self._integer(8)
        if number not in BLOCK_TYPES:
            raise UnsupportedModel(
                f"{self._path}: {shown(name)} is of a type ({number}) that is not known here",
                OTHER_TYPE,
            )
        kind = BLOCK_TYPES[number]
        if min(shape) < 1 or prod(shape) > 1 << 62 or shape[-1] % kind.values:
            self._refuse(f"{shown(name)} has a size that {kind.name} cannot have")
        return Tensor(name, kind, shape, place=0), offset

    def _value(self) -> Value:
        kind = self._integer(4)
        if kind == _TEXT:
            return self._text(MOST_TEXT)
        if kind in _NUMBERS:
            return self._numbers(kind, 1)[0].item()
        if kind != _LIST:
            self._refuse(f"it has a value of a kind ({kind}) that there is not")
        kind, count = self._integer(4), self._count(MOST_ITEMS, "items in a list")
        if kind == _TEXT:
            return self._texts(count)
        if kind in _NUMBERS:
            return self._numbers(kind, count)
        return self._refuse(f"it has a list of a kind ({kind}) that there is not")

    def _numbers(self, kind: int, count: int) -> NDArray[np.generic]:
        dtype = np.dtype(_NUMBERS[kind])
        data = self._take(count * dtype.itemsize)
        if kind == _BOOL and max(data, default=0) > 1:
            self._refuse("it has a truth value that is neither true nor false")
        return np.frombuffer(bytes(data), dtype)

    def _texts(self, count: int) -> StringArray:
        start = position = self._place
        missing = count
        while missing:
            passed, position = _pass_over(self._bytes, position, missing)
            missing -= passed
            if missing:
                self._read_to(position + 8)
                self._read_to(position + 8 + _LENGTH.unpack_from(self._bytes, position)[0])
        self._place = position
        return StringArray(count, bytes(self._bytes[start:position]))

    def _text(self, most: int) -> str:
        length = int.from_bytes(self._take(8), "little")
        if length > most:
            self._refuse(f"it has a string of {length} bytes where {most} are the most")
        return self._take(length).decode("utf-8", "replace")

    def _count(self, most: int, what: str) -> int:
        count = self._integer(8)
        if count > most:
            self._refuse(f"it has {count} {what} where {most} are the most")
        return count

    def _integer(self, nbytes: int) -> int:
        return int.from_bytes(self._take(nbytes), "little")

    def _take(self, count: int) -> bytearray:
        end = self._place + count
        self._read_to(end)
        data = self._bytes[self._place : end]
        self._place = end
        return data

    def _read_to(self, end: int) -> None:
        if end <= len(self._bytes):
            return
        if end > self._size:
            self._refuse("it ends within its header")
        if end > MOST_HEADER:
            self._refuse(f"its header has more than {MOST_HEADER} bytes")
        while len(self._bytes) < end:
            piece = self._stream.read(max(_PIECE, end - len(self._bytes)))
            if not piece:
                self._refuse("it became shorter while it was read")
            self._bytes += piece

    def _refuse(self, why: str) -> NoReturn:
        raise BrokenModel(f"{self._path} is damaged: {why}", AGAIN)


def _pass_over(data: bytearray, position: int, most: int) -> tuple[int, int]:
    """Return the number of strings from ``position`` on, at most ``most``, that lie within data,
    and the end of the last of them.

    Of 150,000 tokens nearly all are shorter than 256 bytes and have no zero: a length is a byte
    before seven zeros, and the next such byte marks the end of the string.
    """
    data_bytes = np.frombuffer(data, np.uint8)
    zeros = data_bytes[position:] == 0
    for more in (1, 2, 3):
        # Of one, two, four and seven side by side.
        zeros = zeros[:-more] & zeros[more:]
    starts = np.flatnonzero(zeros[1:]) + position
    ends = starts + 8 + data_bytes[starts]
    is_last = np.flatnonzero(np.append(ends[:-1] != starts[1:], [True] * bool(len(ends))))
    passed = 0
    while passed < most and position + 8 <= len(data):
        first = int(np.searchsorted(starts, position))
        if first < len(starts) and starts[first] == position:
            last = int(is_last[np.searchsorted(is_last, first)])
            last = min(last, first + most - passed - 1)
            if ends[last] > len(data):
                last -= 1
            if last < first:
                break
            passed, position = passed + last + 1 - first, int(ends[last])
        else:
            end = position + 8 + _LENGTH.unpack_from(data, position)[0]
            if end > len(data):
                break
            passed, position = passed + 1, end
    return passed, position


def shown(text: str) -> str:
    """Return a string out of a file as a message may show it: short and on one line."""
    return ascii(text if len(text) <= 60 else f"{text[:60]}…")
