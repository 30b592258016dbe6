"""A folder's decoder for the compiled forward, read without torch and transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel import torch_extra
from accel.models.cpu.attention import Floats, Shape
from accel.models.cpu.decoder import (
    ATTENTION_NORM,
    DOWN,
    GATE_UP,
    MLP_NORM,
    MOST_BYTES,
    OUTPUT,
    QKV,
    Decoder,
    descriptors_of,
    weight_of,
)
from accel.models.cpu.layer_matrices import Matrices
from accel.models.cpu.matmul import packed, rounded_bits
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.weights import Weights
from accel.models.folder_architecture import (
    EMBEDDING,
    HEAD,
    NORM,
    FolderArchitecture,
    folder_architecture,
)
from accel.models.rope import rope_table
from accel.native.aligned_memory import empty
from accel.native.deterministic_sum import MOST_SUMMED
from accel.weights_file import first_byte

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
    return _Reader(found, dtype).decoder()


def can_be_read(folder: Path, dtype: str) -> bool:
    """Whether ``read_decoder`` has a decoder for a folder."""
    return _readable(folder, dtype) is not None


def _readable(folder: Path, dtype: str) -> FolderArchitecture | None:
    found = folder_architecture(folder)
    if found is None or dtype == "int8" or found.nbytes <= MOST_BYTES:
        return found
    return None if torch_extra.is_installed() else found


class _Reader:
    """The weights of a folder, matrix by matrix."""

    def __init__(self, found: FolderArchitecture, dtype: str) -> None:
        self._found, self._dtype, self._layers = found, dtype, range(found.layers)
        self._files = {
            file: np.memmap(file, np.uint8, "r", offset=first_byte(file))
            for file in {file for file, _ in found.tensors.values()}
        }

    def decoder(self) -> Decoder:
        """All of it."""
        found = self._found
        matrices: dict[str, QuantisedMatrix] = {}
        weights = self._quantised(matrices) if self._dtype == "int8" else self._packed()
        return Decoder(
            shape=Shape(
                found.heads, found.kv_heads, found.head_dim, found.eps, found.head_dim**-0.5
            ),
            weights=weights,
            vocabulary_size=found.vocabulary,
            max_positions=min(found.positions, MOST_SUMMED),
            dtype=self._dtype,
            cos_sin=lambda positions: rope_table(found.frequencies, 1.0, positions),
            matrices=tuple(matrices.values()),
            end_tokens=found.end_tokens,
        )

    def _packed(self) -> Weights:
        def stacked(parts: Sequence[str]) -> Matrices:
            """Layer by layer, so that little is in memory twice."""
            whole: NDArray[Any] | None = None
            for layer in self._layers:
                names = [weight_of(layer, part) for part in parts]
                matrix = packed(np.concatenate([self._numbers(name) for name in names]))
                if whole is None:
                    whole = empty((len(self._layers), *matrix.shape), matrix.dtype)
                whole[layer] = matrix
            assert whole is not None
            return whole

        embedding = self._numbers(EMBEDDING).copy()
        return self._weights(embedding, packed(self._numbers(HEAD))[None], stacked)

    def _quantised(self, matrices: dict[str, QuantisedMatrix]) -> Weights:
        """The weights rounded to eight bits. Adds the matrices to ``matrices``."""

        def matrix_of(name: str) -> QuantisedMatrix:
            numbers = self._numbers(name)
            matrices[name] = QuantisedMatrix.from_numbers(
                lambda first, last: _widened(numbers[first:last]), *numbers.shape
            )
            return matrices[name]

        def stacked(parts: Sequence[str]) -> Matrices:
            return descriptors_of(
                [[matrix_of(weight_of(layer, part)) for part in parts] for layer in self._layers]
            )

        head = descriptors_of([[matrix_of(HEAD)]])
        is_tied = self._found.tensors[HEAD] == self._found.tensors[EMBEDDING]
        return self._weights(
            head if is_tied else descriptors_of([[matrix_of(EMBEDDING)]]), head, stacked
        )

    def _weights(self, embedding: Matrices, head: Matrices, stacked: Any) -> Weights:
        """stacked: has the matrices of all layers that consist of parts of these names."""
        return Weights(
            embedding=embedding,
            attention_norm=self._of_all_layers(ATTENTION_NORM),
            qkv=stacked(QKV),
            qkv_bias=self._biases(),
            query_norm=self._of_all_layers("self_attn.q_norm"),
            key_norm=self._of_all_layers("self_attn.k_norm"),
            output=stacked(OUTPUT),
            mlp_norm=self._of_all_layers(MLP_NORM),
            gate_up=stacked(GATE_UP),
            down=stacked(DOWN),
            norm=_widened(self._numbers(NORM)),
            head=head,
        )

    def _of_all_layers(self, part: str) -> Floats:
        """float32 [layers, size], [layers, 0] where the model has none."""
        names = [weight_of(layer, part) for layer in self._layers]
        if names[0] not in self._found.tensors:
            return np.empty((len(names), 0), np.float32)
        return np.stack([_widened(self._numbers(name)) for name in names])

    def _biases(self) -> Floats:
        """float32 [layers, queries + 2 * keys], [layers, 0] where the model has none."""
        names = [[f"model.layers.{layer}.{part}.bias" for part in QKV] for layer in self._layers]
        if names[0][0] not in self._found.tensors:
            return np.empty((len(names), 0), np.float32)
        return np.stack(
            [np.concatenate([_widened(self._numbers(name)) for name in each]) for each in names]
        )

    def _numbers(self, name: str) -> NDArray[Any]:
        """Of a tensor, as the forward wants them: float32, or the bits of bf16 as int16."""
        file, entry = self._found.tensors[name]
        stored = self._files[file][entry.start : entry.end].view(_TYPES[entry.dtype])
        return _as(_WANTED[self._dtype], stored.reshape(entry.shape))


def _as(wanted: str, numbers: NDArray[Any]) -> NDArray[Any]:
    if numbers.dtype == _TYPES[wanted]:
        return numbers
    wide = _widened(numbers)
    return wide if wanted == "F32" else rounded_bits(wide)


def _widened(numbers: NDArray[Any]) -> Floats:
    """float32 copies of float32 or float16, or of bits of bf16."""
    if numbers.dtype != np.int16:
        return numbers.astype(np.float32)
    return (numbers.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
