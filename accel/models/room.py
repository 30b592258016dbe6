"""Whether a model has room in the memory of this machine, judged from its header before it is
loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from accel.errors import OutOfMemory
from accel.free_memory import free_bytes
from accel.models.cpu.quantised.file_blocks import BLOCK_TYPES
from accel.models.gguf.architecture import read_architecture
from accel.models.gguf.file import GgufFile, is_gguf
from accel.models.gguf.weights import GgufWeights
from accel.weights_file import read_header

REPACKED = 1.2
"""Bytes in memory for each of a matrix as it is computed."""
REST_BYTES = 200 << 20
"""The process without the model."""
FEWEST_TOKENS = 256
"""The KV cache has room for so many at least."""

SCALE_BYTES = 4
"""Of the scale of a head's key or value in eight bits."""

BYTES_OF = {"fp32": 4.0, "bf16": 2.0, "int8": 34 / 32}
"""Of a weight, with its share of a scale."""
_SMALLER = {"Q8_0": 34 / 32, "Q6_K": 210 / 256, "Q5_0": 22 / 32, "Q4_0": 18 / 32}
"""Bytes of a weight in types of GGUF files, the largest first."""


@dataclass(frozen=True, slots=True)
class Size:
    """Of a model: how many weights it has, their bytes as they are computed, and the bytes of a
    token's keys and values."""

    weights: int
    nbytes: float
    token_bytes: int

    @property
    def needed(self) -> int:
        """Bytes of memory."""
        return self._with(self.nbytes)

    def _with(self, nbytes: float) -> int:
        return int(REPACKED * nbytes) + FEWEST_TOKENS * self.token_bytes + REST_BYTES

    def what_fits(self, free: int) -> str:
        """What would fit into so many bytes."""
        smaller = self.smaller(free)
        if smaller:
            megabytes = _SMALLER[smaller] * self.weights / 1e6
            return f"a GGUF file of it in {smaller}, some {megabytes:,.0f} MB, would fit"
        most = int(max(free - REST_BYTES, 0) / REPACKED / _SMALLER["Q4_0"] / 1e6)
        if not most:
            return "no model would fit"
        return f"a model of {most:,.0f} million weights in Q4_0 would fit"

    def smaller(self, free: int) -> str:
        """The name of the largest type that fits, empty where none does."""
        for name, each in _SMALLER.items():
            if each * self.weights < self.nbytes and self._with(each * self.weights) <= free:
                return name
        return ""


def check_room(folder: Path, dtype: str, kv_type: str = "f16", *, free: int | None = None) -> None:
    """Raises OutOfMemory, with what would fit, for a model that does not.

    ``dtype``: what a folder's weights are computed in, ``fp32``, ``bf16`` or ``int8``; int8 of a
    GGUF file means as they are stored. ``free``: bytes; what this machine has where None. Raises
    BrokenModel or UnsupportedModel, too.
    """
    size = size_of(folder, dtype, kv_type)
    free = free_bytes() if free is None else free
    if size.needed <= free:
        return
    raise OutOfMemory(
        f"{folder} needs {size.needed / 1e6:,.0f} MB of memory and {free / 1e6:,.0f} MB are free; "
        f"{size.what_fits(free)}, or close other programs"
    )


def size_of(folder: Path, dtype: str, kv_type: str = "f16") -> Size:
    """From the headers of a folder or a GGUF file. Arguments and errors as for ``check_room``."""
    size_in = _file_size if is_gguf(folder) else _folder_size
    return size_in(folder, dtype, kv_type)


def has_room(nbytes: float, token_bytes: int, free: int | None = None) -> bool:
    """Whether weights of ``nbytes`` and a KV cache with ``token_bytes`` a token have room in
    ``free`` bytes; in what this machine has now where None."""
    return Size(0, nbytes, token_bytes).needed <= (free_bytes() if free is None else free)


def _file_size(path: Path, dtype: str, kv_type: str) -> Size:
    with GgufFile(path) as file:
        found = read_architecture(file)
        weights = GgufWeights(file, found)
        counts = {name: prod(part.shape) for name, part in weights.parts.items()}
        nbytes = 0.0
        for name, count in counts.items():
            kind, stored = weights.stored_as(name)
            is_as_stored = dtype == "int8" and kind.name in BLOCK_TYPES
            nbytes += stored if is_as_stored else count * BYTES_OF[dtype]
    token_bytes = _token_bytes(found.layers, found.kv_heads, found.depth, dtype, kv_type)
    return Size(sum(counts.values()), nbytes, token_bytes)


def _folder_size(folder: Path, dtype: str, kv_type: str) -> Size:
    weights = sum(
        prod(tensor.shape)
        for file in _weight_files(folder)
        for tensor in read_header(file).values()
    )
    config = json.loads((folder / "config.json").read_text("utf-8"))
    return Size(weights, weights * BYTES_OF[dtype], _token_bytes_of(config, dtype, kv_type))


def _weight_files(folder: Path) -> Iterator[Path]:
    whole = folder / "model.safetensors"
    yield from [whole] if whole.exists() else sorted(folder.glob("*.safetensors"))


def _token_bytes_of(config: dict[str, Any], dtype: str, kv_type: str) -> int:
    """By what a ``config.json`` says; nothing where it says it in other words."""
    names = "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size"
    found = [config.get(name) for name in (*names, "head_dim")]
    layers, heads, kv_heads, width, depth = (n if isinstance(n, int) else 0 for n in found)
    return _token_bytes(layers, kv_heads or heads, depth or width // max(heads, 1), dtype, kv_type)


def _token_bytes(layers: int, kv_heads: int, depth: int, dtype: str, kv_type: str) -> int:
    head_bytes = depth + SCALE_BYTES if kv_type == "int8" else depth * (4 if dtype == "fp32" else 2)
    return 2 * layers * kv_heads * head_bytes
