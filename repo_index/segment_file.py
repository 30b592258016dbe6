"""Segments on disk: eight bytes of magic and version, the length of a JSON header (uint64), the
header, then arrays at multiples of 64 bytes, little endian. Size and checksum are in the
manifest."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repo_index.errors import DamagedStore
from repo_index.file_layer import FileLayer
from repo_index.ordering import DEPTH, frozen
from repo_index.segment import FACTS, Segment, SegmentFile

MAGIC = b"REDRAFT\x03"
ALIGNMENT = 64
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)


def write_segment(
    layer: FileLayer, path: Path, segment: Segment, tokenizer_hash: str
) -> tuple[int, int]:
    """Write ``segment``; returns size and CRC-32 of the file. Raises OSError."""
    blobs = [
        ("tokens", segment.tokens.dtype.str, _bytes(segment.tokens)),
        ("order", "<u4", _bytes(segment.order)),
        ("heads", segment.heads.dtype.str, _bytes(segment.heads)),
        ("starts", "<u4", _bytes(segment.starts)),
        ("facts", "facts", _bytes(segment.facts)),
        ("paths", "text", memoryview(_joined(segment.paths))),
        ("reasons", "text", memoryview(_joined(segment.reasons))),
    ]
    arrays = {}
    offset = 0
    for name, kind, data in blobs:
        arrays[name] = [kind, offset, len(data)]
        offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    header = json.dumps({"tokenizer": tokenizer_hash, "arrays": arrays}).encode()
    return layer.create(path, _pieces(header, [data for _, _, data in blobs]))


def _pieces(header: bytes, blobs: list[memoryview]) -> Iterator[bytes | memoryview]:
    start = MAGIC + len(header).to_bytes(8, "little") + header
    yield start + bytes(-len(start) % ALIGNMENT)
    for data in blobs:
        yield data
        yield bytes(-len(data) % ALIGNMENT)


def read_segment(path: Path, tokenizer_hash: str) -> Segment:
    """Map a segment. Its checksum is the caller's to compare. Raises DamagedStore."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | _CLOSE_ON_EXEC)
        try:
            return _mapped(path, descriptor, tokenizer_hash)
        except BaseException:
            os.close(descriptor)
            raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedStore(f"{path} is damaged ({error}); it is built again") from error


def _mapped(path: Path, descriptor: int, tokenizer_hash: str) -> Segment:
    data = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    if data[:8] != MAGIC:
        raise DamagedStore(f"{path} is of another version; it is built again")
    length = int.from_bytes(data[8:16], "little")
    header = json.loads(data[16 : 16 + length])
    if header["tokenizer"] != tokenizer_hash:
        raise DamagedStore(f"{path} was made with another tokenizer; it is built again")
    base = -(-(16 + length) // ALIGNMENT) * ALIGNMENT
    offsets = {name: base + offset for name, (_, offset, _) in header["arrays"].items()}
    arrays = {
        name: _array(data, kind, offsets[name], size)
        for name, (kind, _, size) in header["arrays"].items()
    }
    # In memory, where a search finds them together and no page has to be mapped for them.
    starts, heads = arrays["starts"].copy(), arrays["heads"].reshape(-1, DEPTH).copy()
    paths, reasons = _split(arrays["paths"]), _split(arrays["reasons"])
    if hasattr(mmap, "MADV_DONTNEED"):
        # What was looked at just now, the heads above all, is not needed again.
        data.madvise(mmap.MADV_DONTNEED)
    return Segment(
        tokens=arrays["tokens"],
        order=arrays["order"],
        starts=frozen(starts),
        heads=frozen(heads),
        paths=paths,
        facts=arrays["facts"],
        reasons=reasons,
        name=path.name,
        file=SegmentFile(descriptor, data, offsets["tokens"], offsets["order"]),
    )


def _bytes(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).view(np.uint8).reshape(-1).data


def _array(data: mmap.mmap, kind: str, offset: int, size: int) -> NDArray[Any]:
    if kind not in ("<u2", "<u4", "facts", "text"):
        raise ValueError(f"unknown array {kind!r}")
    dtype = FACTS if kind == "facts" else np.dtype(np.uint8 if kind == "text" else kind)
    return np.frombuffer(data, dtype, size // dtype.itemsize, offset)


def _joined(texts: Iterable[str]) -> bytes:
    return "".join(text + "\0" for text in texts).encode("utf-8", "surrogateescape")


def _split(data: NDArray[np.uint8]) -> tuple[str, ...]:
    return tuple(data.tobytes().decode("utf-8", "surrogateescape").split("\0")[:-1])
