"""Headers of safetensors files. Loads no torch."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from accel.errors import BrokenModel, UnsupportedModel

LENGTH_BYTES = 8
MOST_HEADER_BYTES = 100_000_000
"""The safetensors library reads no longer header."""

AGAIN = "fetch that file again"

BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}
"""Bits of a number, by the name that the header has for its type."""

FLOATS = ("BF16", "F16", "F32", "F64")
"""Types of numbers that are weights by themselves."""

_SHARD = re.compile(r"[^\\/:\0]+\.safetensors")
_PICKLED = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04")


@dataclass(frozen=True, slots=True)
class WeightsEntry:
    """One tensor of a file: the name of its number format, its shape, and where its bytes lie."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def check_not_stand_in(file: Path, start: bytes) -> None:
    """Raise BrokenModel where something else was stored in place of a file of the model."""
    if not start:
        raise BrokenModel(f"{file} is empty", AGAIN)
    if start.startswith(b"version https://git-lfs"):
        raise BrokenModel(
            f"{file} is a pointer of Git LFS, not the file itself",
            "run `git lfs pull` in that folder",
        )
    if start.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        raise BrokenModel(
            f"{file} is a web page that was saved instead of the file",
            "fetch it again, signed in if the model asks for that",
        )
    if not any(start):
        raise BrokenModel(f"{file} begins with zeros: it was never written to its end", AGAIN)


def read_header(file: Path) -> dict[str, WeightsEntry]:
    """Return the tensors that a safetensors file says it holds, checked against its size. Raises
    BrokenModel or UnsupportedModel."""
    try:
        with file.open("rb") as stream:
            start = stream.read(512)
            _check_kind(file, start)
            length = struct.unpack("<Q", start[:LENGTH_BYTES])[0]
            size = file.stat().st_size
            if length > MOST_HEADER_BYTES:
                raise BrokenModel(f"{file} is not a safetensors file: its header has no end", AGAIN)
            if LENGTH_BYTES + length > size:
                raise BrokenModel(f"{file} ends within its header: it was cut off", AGAIN)
            stream.seek(LENGTH_BYTES)
            header = stream.read(length)
    except OSError as error:
        raise BrokenModel(
            f"{file} cannot be read ({error.strerror})", "check its permissions"
        ) from error
    tensors = _tensors(file, header)
    _check_size(file, tensors, size - LENGTH_BYTES - length)
    return tensors


def shards_of(index: Path, listed: object) -> list[str]:
    """Return names of the weights files that an index names in its ``weight_map``, all in its own
    folder. Raises BrokenModel where one lies elsewhere, as in a folder made to harm."""
    if not isinstance(listed, dict) or not listed:
        raise BrokenModel(f"{index} lists no weights", AGAIN)
    for name in listed.values():
        if not isinstance(name, str) or not _SHARD.fullmatch(name):
            raise BrokenModel(
                f"{index} names {str(name)[:200]!r} as weights, which is not a *.safetensors file "
                "of its folder",
                AGAIN,
            )
    return sorted(set(listed.values()))


def first_byte(file: Path) -> int:
    """Return the position of the first tensor of a safetensors file."""
    with file.open("rb") as stream:
        length: int = struct.unpack("<Q", stream.read(LENGTH_BYTES))[0]
    return LENGTH_BYTES + length


def _check_kind(file: Path, start: bytes) -> None:
    check_not_stand_in(file, start)
    if start.startswith(b"GGUF"):
        raise UnsupportedModel(
            f"{file} is a GGUF file under another name", "fetch the model's *.safetensors"
        )
    if start.startswith(_PICKLED):
        raise UnsupportedModel(
            f"{file} holds pickled weights under another name, which are never loaded",
            "fetch the model's *.safetensors",
        )
    if len(start) < LENGTH_BYTES:
        raise BrokenModel(f"{file} has {len(start)} bytes: it was cut off", AGAIN)


def _tensors(file: Path, header: bytes) -> dict[str, WeightsEntry]:
    try:
        parsed = json.loads(header)
    except (ValueError, RecursionError):
        raise BrokenModel(f"{file} is damaged: its header is not JSON", AGAIN) from None
    if not isinstance(parsed, dict):
        raise BrokenModel(f"{file} is damaged: its header lists no tensors", AGAIN)
    parsed.pop("__metadata__", None)
    if not parsed:
        raise BrokenModel(f"{file} holds no tensors", "fetch the whole model")
    return {name: _tensor(file, name, value) for name, value in parsed.items()}


def _tensor(file: Path, name: str, value: Any) -> WeightsEntry:
    try:
        dtype, shape = value["dtype"], tuple(value["shape"])
        start, end = value["data_offsets"]
        bits = BITS.get(dtype)
        is_valid = all(isinstance(number, int) and number >= 0 for number in (*shape, start, end))
        right = is_valid and (bits is None or (end - start) * 8 == prod(shape) * bits)
    except (KeyError, TypeError, ValueError):
        right = False
    if not right:
        raise BrokenModel(f"{file} is damaged: its header says nothing right of {name}", AGAIN)
    if bits is None:
        raise UnsupportedModel(
            f"{file} holds numbers of the unknown type {dtype}", "update Redraft or use another"
        )
    return WeightsEntry(dtype, shape, start, end)


def _check_size(file: Path, tensors: dict[str, WeightsEntry], present: int) -> None:
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end)):
        if tensor.start != position:
            raise BrokenModel(f"{file} is damaged: {name} is not where its header says", AGAIN)
        position = tensor.end
    if position > present:
        raise BrokenModel(
            f"{file} was cut off: {present} of its {position} bytes of weights are there", AGAIN
        )
    if position < present:
        raise BrokenModel(f"{file} is damaged: it goes on after its last tensor", AGAIN)
