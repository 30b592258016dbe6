"""Writes small GGUF files for tests."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.files.gguf.header import BLOCK_TYPES

NUMBERS = {kind.name: number for number, kind in BLOCK_TYPES.items()}
ALIGNMENT = 32


@dataclass(frozen=True)
class Stored:
    """A tensor as its bytes."""

    type: str
    shape: tuple[int, ...]
    data: bytes


def stored(values: NDArray[Any], kind: str = "F32") -> Stored:
    """Values in one of the types that are easily written."""
    wide = values.astype(np.float32)
    if kind == "F32":
        data = wide.tobytes()
    elif kind == "F16":
        data = wide.astype("<f2").tobytes()
    elif kind == "BF16":
        data = (wide.view(np.uint32) >> 16).astype("<u2").tobytes()
    else:
        blocks = wide.reshape(-1, 32)
        largest = np.abs(blocks).max(1, keepdims=True)
        d = (largest / {"Q8_0": 127, "Q4_0": 7}[kind]).astype("<f2")
        q = np.rint(blocks / np.where(d == 0, 1, d.astype(np.float32)))
        if kind == "Q8_0":
            packed = q.clip(-127, 127).astype(np.int8).view(np.uint8)
        else:
            halves = (q.clip(-8, 7) + 8).astype(np.uint8)
            packed = halves[:, :16] | halves[:, 16:] << 4
        data = np.concatenate([d.view(np.uint8), packed], 1).tobytes()
    return Stored(kind, values.shape, data)


def header_of(metadata: dict[str, Any], tensors: dict[str, Stored]) -> bytes:
    """Everything before the first tensor."""
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    parts += [text(key) + value(each) for key, each in metadata.items()]
    offset = 0
    for name, tensor in tensors.items():
        sizes = tensor.shape[::-1]
        parts += [text(name), struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)]
        parts.append(struct.pack("<IQ", NUMBERS[tensor.type], offset))
        offset += len(tensor.data) + -len(tensor.data) % ALIGNMENT
    return padded(b"".join(parts))


def write_gguf(path: Path, metadata: dict[str, Any], tensors: dict[str, Stored]) -> Path:
    """A file of version 3."""
    with path.open("wb") as stream:
        stream.write(header_of(metadata, tensors))
        stream.writelines(padded(tensor.data) for tensor in tensors.values())
    return path


def write_parts(folder: Path, metadata: dict[str, Any], parts: list[dict[str, Stored]]) -> Path:
    """A model in several files; the first of them."""
    total = sum(map(len, parts))
    paths = [folder / f"m-{n:05}-of-{len(parts):05}.gguf" for n in range(1, len(parts) + 1)]
    for number, (path, tensors) in enumerate(zip(paths, parts, strict=True)):
        split = {"split.no": number, "split.count": len(parts), "split.tensors.count": total}
        write_gguf(path, (metadata if number == 0 else {}) | split, tensors)
    return paths[0]


def text(content: str) -> bytes:
    return struct.pack("<Q", len(content.encode())) + content.encode()


def value(content: Any) -> bytes:
    """A value with its kind: whole numbers as uint32, in lists as int32."""
    if isinstance(content, bool):
        return struct.pack("<I?", 7, content)
    if isinstance(content, int):
        return struct.pack("<II", 4, content)
    if isinstance(content, np.ndarray):
        assert content.dtype == np.int64
        return struct.pack("<Iq", 11, int(content))
    if isinstance(content, float):
        return struct.pack("<If", 6, content)
    if isinstance(content, str):
        return struct.pack("<I", 8) + text(content)
    assert isinstance(content, list)
    if content and isinstance(content[0], str):
        return struct.pack("<IIQ", 9, 8, len(content)) + b"".join(map(text, content))
    kind, form = (6, "f") if content and isinstance(content[0], float) else (5, "i")
    return struct.pack(f"<IIQ{len(content)}{form}", 9, kind, len(content), *content)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)
