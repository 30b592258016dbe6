"""A folder's Llama for the compiled forward, read without torch and transformers: to import these
takes most of a start."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.errors import ModelError
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
from accel.models.cpu.matmul import BLOCK, packed, rounded_bits
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.weights import Weights
from accel.models.end_tokens import named_ends
from accel.models.rope import rope_frequencies, rope_table
from accel.native.aligned_memory import empty
from accel.native.deterministic_sum import MOST_SUMMED
from accel.weights_file import first_byte, read_header

_WEIGHTS = "model.safetensors"
_ADAPTIVE = "adaptive.safetensors"

_TYPES: dict[str, np.dtype[Any]] = {"BF16": np.dtype(np.int16), "F32": np.dtype(np.float32)}
"""The dtype of stored numbers: bf16 as bits."""
_WANTED = {"bf16": "BF16", "fp32": "F32", "int8": "BF16"}

_EMBEDDING, _HEAD, _NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"


def read_decoder(folder: Path, dtype: str) -> Decoder | None:
    """The decoder of a folder in ``fp32``, ``bf16`` or ``int8``; None where it is another model, or
    has something about it that only transformers knows: that reads it, or says what is wrong."""
    try:
        file = _SafetensorsLlama(folder, dtype)
        return file.decoder() if file.is_known() else None
    except (OSError, ValueError, TypeError, KeyError, ModelError):
        return None


def can_be_read(folder: Path, dtype: str) -> bool:
    """Whether ``read_decoder`` has a decoder for a folder."""
    try:
        return _SafetensorsLlama(folder, dtype).is_known()
    except (OSError, ValueError, TypeError, KeyError, ModelError):
        return False


class _SafetensorsLlama:
    """The configuration and the weights of a folder."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self._folder, self._dtype = folder, dtype
        self._config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
        file = folder / _WEIGHTS
        self._entries = read_header(file)
        self._bytes = np.memmap(file, np.uint8, "r", offset=first_byte(file))
        if self._config["tie_word_embeddings"]:
            self._entries[_HEAD] = self._entries[_EMBEDDING]
        self._layers = range(self._config["num_hidden_layers"])

    def is_known(self) -> bool:
        """Whether there is all that a Llama has, and nothing else, in numbers that are read."""
        config, head_dim = self._config, self._config["head_dim"]
        matrices = [name for name in self._names() if name not in self._norms()]
        size = sum(entry.end - entry.start for entry in self._entries.values())
        return (
            config["model_type"] == "llama"
            and config["hidden_act"] == "silu"
            and config["rope_parameters"]["rope_type"] == "default"
            and "partial_rotary_factor" not in config["rope_parameters"]
            and not (config["attention_bias"] or config["mlp_bias"])
            and "quantization_config" not in config
            and not (self._folder / _ADAPTIVE).exists()
            and self._entries.keys() == set(self._names())
            and all(entry.dtype in _TYPES for entry in self._entries.values())
            and (self._dtype == "int8" or size <= MOST_BYTES)
            and head_dim % BLOCK == 0
            and all(self._entries[name].shape[1] % BLOCK == 0 for name in matrices)
        )

    def _names(self) -> list[str]:
        parts = (*QKV, *OUTPUT, *GATE_UP, *DOWN)
        matrices = [weight_of(layer, part) for layer in self._layers for part in parts]
        return [*matrices, *self._norms(), _EMBEDDING, _HEAD]

    def _norms(self) -> list[str]:
        parts = ATTENTION_NORM, MLP_NORM
        return [weight_of(layer, part) for layer in self._layers for part in parts] + [_NORM]

    def decoder(self) -> Decoder:
        """All of it."""
        config, first, head_dim = self._config, self._layers[0], self._config["head_dim"]
        heads, kv_heads = (
            self._entries[weight_of(first, part)].shape[0] // head_dim for part in QKV[:2]
        )
        frequencies = rope_frequencies(config["rope_parameters"]["rope_theta"], head_dim)
        matrices: dict[str, QuantisedMatrix] = {}
        weights = self._quantised(matrices) if self._dtype == "int8" else self._packed()
        return Decoder(
            shape=Shape(heads, kv_heads, head_dim, config["rms_norm_eps"], head_dim**-0.5),
            weights=weights,
            vocabulary_size=self._entries[_HEAD].shape[0],
            max_positions=min(config["max_position_embeddings"], MOST_SUMMED),
            dtype=self._dtype,
            cos_sin=lambda positions: rope_table(frequencies, 1.0, positions),
            matrices=tuple(matrices.values()),
            end_tokens=self._end_tokens(),
        )

    def _end_tokens(self) -> frozenset[int]:
        """Ids that end a text, from the generation config and the config."""
        file = self._folder / "generation_config.json"
        generation = json.loads(file.read_text("utf-8")) if file.exists() else {}
        ids = [config.get("eos_token_id") for config in (generation, self._config)]
        return named_ends(ids, self._entries[_HEAD].shape[0], self._folder)

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

        embedding = self._numbers(_EMBEDDING).copy()
        return self._weights(embedding, packed(self._numbers(_HEAD))[None], stacked)

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

        head = descriptors_of([[matrix_of(_HEAD)]])
        is_tied = self._entries[_HEAD] is self._entries[_EMBEDDING]
        return self._weights(
            head if is_tied else descriptors_of([[matrix_of(_EMBEDDING)]]), head, stacked
        )

    def _weights(self, embedding: Matrices, head: Matrices, stacked: Any) -> Weights:
        """stacked: has the matrices of all layers that consist of parts of these names."""
        none = np.empty((len(self._layers), 0), np.float32)

        def norms(part: str) -> Floats:
            names = (weight_of(layer, part) for layer in self._layers)
            return np.stack([_widened(self._numbers(name)) for name in names])

        return Weights(
            embedding=embedding,
            attention_norm=norms(ATTENTION_NORM),
            qkv=stacked(QKV),
            qkv_bias=none,
            query_norm=none,
            key_norm=none,
            output=stacked(OUTPUT),
            mlp_norm=norms(MLP_NORM),
            gate_up=stacked(GATE_UP),
            down=stacked(DOWN),
            norm=_widened(self._numbers(_NORM)),
            head=head,
        )

    def _numbers(self, name: str) -> NDArray[Any]:
        """Of a tensor, as the forward wants them: float32, or the bits of bf16 as int16."""
        entry = self._entries[name]
        stored = self._bytes[entry.start : entry.end].view(_TYPES[entry.dtype])
        return _as(_WANTED[self._dtype], stored.reshape(entry.shape))


def _as(wanted: str, numbers: NDArray[Any]) -> NDArray[Any]:
    if numbers.dtype == _TYPES[wanted]:
        return numbers
    return _widened(numbers) if wanted == "F32" else rounded_bits(numbers)


def _widened(numbers: NDArray[Any]) -> Floats:
    """float32 copies of float32, or of bits of bf16."""
    if numbers.dtype == np.float32:
        return np.array(numbers)
    return (numbers.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


__all__ = ["can_be_read", "read_decoder"]
