"""Devices that a library computes on, and the layers of a model that fit there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from accel.files.gguf.file import GgufFile

ALL_LAYERS = 1 << 20
RESERVED_BYTES = 1 << 29
"""Of a GPU's memory: for what is computed there, and for other programs."""
TOKENS = 8192
"""Whose keys and values have to fit beside the weights."""

_LAYER = re.compile(r"blk\.(\d+)\.")
_OF_KEYS_AND_VALUES = {"attn_k.weight": 1.0, "attn_v.weight": 1.0, "attn_qkv.weight": 2 / 3}
"""Names of matrices, and the largest share of their outputs that is cached."""


@dataclass(frozen=True, slots=True)
class Device:
    """``free_bytes``: of its memory, now."""

    name: str
    description: str
    is_gpu: bool = False
    is_integrated: bool = False
    """Whether it is a GPU that shares the main memory."""
    free_bytes: int = 0

    def __str__(self) -> str:
        if self.description in ("", self.name):
            return self.name
        return f"{self.name} ({self.description})"


def used_gpus(devices: list[Device]) -> list[Device]:
    """Return those that layers go to: integrated ones where there are no others."""
    gpus = [device for device in devices if device.is_gpu]
    return [gpu for gpu in gpus if not gpu.is_integrated] or gpus


def layers_that_fit(path: Path, gpus: list[Device], kv_bytes: float) -> int:
    """Return the number of layers of a GGUF file for GPUs, counted as the library does: the head is
    one more. ``kv_bytes``: of a number of keys and values."""
    free = sum(gpu.free_bytes - RESERVED_BYTES for gpu in gpus)
    with GgufFile(path) as file:
        numbers = {int(match[1]) for name in file.tensors if (match := _LAYER.match(name))}
        on_gpu = sum(
            share * tensor.rows
            for name, tensor in file.tensors.items()
            for matrix, share in _OF_KEYS_AND_VALUES.items()
            if name.endswith(matrix)
        )
        needed = file.nbytes + TOKENS * on_gpu * kv_bytes
    if free >= needed:
        return ALL_LAYERS
    return max(0, int(free / needed * (len(numbers) + 1)))
