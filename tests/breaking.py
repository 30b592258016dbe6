"""A small model folder, ways to break it, and what has to be said about a broken one."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 8,
    "hidden_size": 4,
    "intermediate_size": 4,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
TOKENIZER = {"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
PAGE = b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n"
SHAPES = {
    "model.embed_tokens.weight": (8, 4),
    "model.layers.0.mlp.up_proj.weight": (4, 4),
    "model.layers.1.mlp.up_proj.weight": (4, 4),
    "model.norm.weight": (4,),
}

Make = Callable[[Path], str]


@dataclass(frozen=True)
class Broken:
    """One kind: ``make(folder)`` makes it below an empty folder and gives what a user writes."""

    name: str
    make: Make
    cause: str
    """What the cause names."""
    remedy: str
    """What the remedy names."""


class Kinds(list[Broken]):
    """Kinds of broken models; a function becomes one by ``@kinds.add(cause, remedy)``."""

    def add(self, cause: str, remedy: str) -> Callable[[Make], Make]:
        def added(make: Make) -> Make:
            self.append(Broken(make.__name__, make, cause, remedy))
            return make

        return added


def weights(shapes: dict[str, tuple[int, ...]] | None = None, dtype: str = "F32") -> bytes:
    """A safetensors file of zeros."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, shape in (SHAPES if shapes is None else shapes).items():
        size = 4
        for length in shape:
            size *= length
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + bytes(place)


def with_header(header: Any, data: int = 0) -> bytes:
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + bytes(data)


def sound(folder: Path) -> str:
    """A folder about which nothing can be said by names and headers."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (folder / "model.safetensors").write_bytes(weights())
    return str(folder)


def with_config(folder: Path, **changed: Any) -> str:
    model = sound(folder / "model")
    (folder / "model" / "config.json").write_text(json.dumps(CONFIG | changed))
    return model


def with_file(folder: Path, name: str, content: bytes) -> str:
    model = sound(folder / "model")
    (folder / "model" / name).write_bytes(content)
    return model


def without(folder: Path, *names: str) -> str:
    model = sound(folder / "model")
    for name in names:
        (folder / "model" / name).unlink()
    return model
