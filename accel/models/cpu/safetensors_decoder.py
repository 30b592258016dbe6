"""A folder's decoder for the compiled forward, read without torch and transformers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel import torch_extra
from accel.files.folder_architecture import (
    EMBEDDING,
    HEAD,
    FolderArchitecture,
    folder_architecture,
)
from accel.files.rope import rope_table
from accel.files.safetensors import first_byte
from accel.models.cpu.attention import Floats, Shape
from accel.models.cpu.decoder import MOST_BYTES, Decoder
from accel.models.cpu.matmul import rounded_bits
from accel.models.cpu.named_tensors import packed_weights, quantised_weights, widened
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.native.deterministic_sum import MOST_SUMMED

_TYPES: dict[str, np.dtype[Any]] = {
    "BF16": np.dtype(np.int16),
    "F16": np.dtype(np.float16),
    "F32": np.dtype(np.float32),
}
"""The dtype of stored numbers: bf16 as bits."""
_WANTED = {"bf16": "BF16", "fp32": "F32", "int8": "BF16"}


def read_decoder(folder: Path, dtype: str, *, layers: int | None = None) -> Decoder | None:
    """The decoder of a folder in ``fp32``, ``bf16`` or ``int8``; None where it is another model, or
    has something about it that only transformers knows: that reads it, or says what is wrong.
    ``layers``: the first so many of it alone."""
    found = _readable(folder, dtype)
    if found is None:
        return None
    if layers is not None:
        found = replace(found, layers=min(layers, found.layers))
    tensors, matrices = _FolderTensors(found, dtype), tuple[QuantisedMatrix, ...]()
    if dtype == "int8":
        weights, matrices = quantised_weights(tensors)
    else:
        weights = packed_weights(tensors)
    return Decoder(
        shape=Shape(found.heads, found.kv_heads, found.head_dim, found.eps, found.head_dim**-0.5),
        weights=weights,
        vocabulary_size=found.vocabulary,
        max_positions=min(found.positions, MOST_SUMMED),
        dtype=dtype,
        cos_sin=lambda positions: rope_table(found.frequencies, 1.0, positions),
        matrices=matrices,
        end_tokens=found.end_tokens,
    )


def can_be_read(folder: Path, dtype: str) -> bool:
    """Whether ``read_decoder`` has a decoder for a folder."""
    return _readable(folder, dtype) is not None


def _readable(folder: Path, dtype: str) -> FolderArchitecture | None:
    found = folder_architecture(folder)
    if found is None or dtype == "int8" or found.nbytes <= MOST_BYTES:
        return found
    return None if torch_extra.is_installed() else found


class _FolderTensors:
    """The tensors of a folder, as the forward wants their numbers."""

    def __init__(self, found: FolderArchitecture, dtype: str) -> None:
        self._found, self._dtype, self.layers = found, dtype, found.layers
        self.is_tied = found.tensors[HEAD] == found.tensors[EMBEDDING]
        self._files = {
            file: np.memmap(file, np.uint8, "r", offset=first_byte(file))
            for file in {file for file, _ in found.tensors.values()}
        }

    def __contains__(self, name: str) -> bool:
        return name in self._found.tensors

    def numbers(self, name: str) -> NDArray[Any]:
        file, entry = self._found.tensors[name]
        stored = self._files[file][entry.start : entry.end].view(_TYPES[entry.dtype])
        return _as(_WANTED[self._dtype], stored.reshape(entry.shape))

    def values(self, name: str) -> Floats:
        return widened(self.numbers(name))

    def release(self, name: str) -> None:
        """It is in a file."""


def _as(wanted: str, numbers: NDArray[Any]) -> NDArray[Any]:
    if numbers.dtype == _TYPES[wanted]:
        return numbers
    wide = widened(numbers)
    return wide if wanted == "F32" else rounded_bits(wide)
