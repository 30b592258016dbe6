"""A GGUF file's decoder for the compiled forward: its weights as they are stored, or in fp32."""

from __future__ import annotations

import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from accel.errors import BrokenModel
from accel.files.decoder_tensors import EMBEDDING, HEAD
from accel.files.gguf.dequantise import dequantise
from accel.files.gguf.file import GgufFile
from accel.files.gguf.metadata import AGAIN
from accel.files.gguf.rope_frequencies import RopeFrequencies, read_rope_frequencies
from accel.files.gguf.weights import GgufWeights
from accel.files.rope import rope_table
from accel.models.cpu.attention import Floats
from accel.models.cpu.decoder import (
    DELTA_OUT,
    DOWN,
    GATE_UP,
    MIXED,
    OUTPUT,
    OUTPUT_GATE,
    QKV,
    Decoder,
    decoder_for,
    weight_of,
)
from accel.models.cpu.delta_net.weights import DeltaWeights
from accel.models.cpu.kept_weights import KeptWeights
from accel.models.cpu.named_tensors import layers_with, packed_weights, quantised_weights
from accel.models.cpu.quantised.file_blocks import BLOCK_TYPES, layout_for
from accel.models.cpu.quantised.instruction_sets import layout_of
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.quantised.packed_layouts import EIGHT, PackedLayout
from accel.models.cpu.weights import Weights
from accel.models.model_file import GgufModel, model_file
from operating_system.machine import cores

_log = logging.getLogger(__name__)

IN_FP32 = "in_proj_a.weight", "in_proj_b.weight", "conv1d.weight"
"""Suffixes of the names of matrices that are computed in fp32."""


def read_decoder(model: GgufModel, dtype: str = "int8") -> Decoder:
    """Return the decoder of a file that is known. ``dtype``: ``int8`` takes weights as they are
    stored, ``fp32`` dequantised. Raises BrokenModel or UnsupportedModel."""
    with GgufFile(model.path) as file:
        reader = _Reader(model, GgufWeights(file, model.architecture))
        rope = read_rope_frequencies(file, model.architecture)
        if dtype == "fp32":
            return reader.decoder(packed_weights(reader), dtype, rope)
        return reader.as_stored(rope)


def layouts_of(path: Path) -> set[PackedLayout]:
    """Layouts of the matrices that ``read_decoder`` makes of a file, empty where it makes none.
    Raises BrokenModel."""
    model = model_file(path)
    assert isinstance(model, GgufModel)
    if not model.is_known:
        return set()
    kinds = {
        (model.weights.stored_as(name)[0].name, source.scale)
        for name, source in model.weights.parts.items()
        if len(source.shape) == 2 and not name.endswith(IN_FP32)
    }
    return {layout_of(layout_for(*each) if each[0] in BLOCK_TYPES else EIGHT) for each in kinds}


class _Reader:
    """The weights of one file, matrix by matrix."""

    def __init__(self, model: GgufModel, weights: GgufWeights) -> None:
        self._model, self._architecture, self._weights = model, model.architecture, weights
        self.layers, self.hybrid = model.architecture.layers, model.architecture.hybrid
        self.is_tied = HEAD not in weights
        self._head = EMBEDDING if self.is_tied else HEAD
        self._rounded: set[str] = set()
        """Types whose weights were rounded to eight bits."""

    def as_stored(self, rope: RopeFrequencies) -> Decoder:
        """Return all of it, matrices packed as they are."""
        hybrid, layers = self.hybrid, range(self.layers)
        attention = layers_with(hybrid, len(layers))
        gate = OUTPUT_GATE if hybrid else ()
        groups = [
            *((layer, GATE_UP + DOWN) for layer in layers),
            *((layer, QKV + OUTPUT + gate) for layer in attention),
            *((layer, MIXED + DELTA_OUT) for layer in (hybrid.layers if hybrid else ())),
        ]
        names = [weight_of(layer, name) for layer, some in groups for name in some]
        every = list(dict.fromkeys([self._head, EMBEDDING, *names]))
        cache = KeptWeights(self._model.path)
        if (matrices := cache.read(every, self._packed_anew)) is None:
            with ThreadPoolExecutor(cores()) as pool:
                matrices = dict(zip(every, pool.map(self._matrix, every), strict=True))
            cache.write_later(matrices)
        if self._rounded:
            kinds = ", ".join(sorted(self._rounded))
            _log.info("%s: weights of type %s are rounded to eight bits", self._model.path, kinds)

        weights = quantised_weights(
            self, lambda name: matrices[self._head if name == HEAD else name]
        )
        return self.decoder(weights, self._commonest_type(), rope, tuple(matrices.values()))

    def _packed_anew(self, name: str) -> QuantisedMatrix:
        with GgufFile(self._model.path) as file:
            return _Reader(self._model, GgufWeights(file, self._architecture))._matrix(name)

    def __contains__(self, name: str) -> bool:
        return name in self._weights

    def values(self, name: str) -> Floats:
        return self._weights.values(self._head if name == HEAD else name)

    def decoder(
        self,
        weights: tuple[Weights, DeltaWeights | None],
        dtype: str,
        rope: RopeFrequencies,
        matrices: tuple[QuantisedMatrix, ...] = (),
    ) -> Decoder:
        """Return the file's decoder with weights as they are made of it."""
        return decoder_for(
            *(self._architecture, weights, dtype),
            cos_sin=lambda positions: rope_table(rope.frequencies, rope.scale, positions),
            matrices=matrices,
            end_tokens=self._model.end_tokens,
        )

    def _commonest_type(self) -> str:
        """Return the type that most bytes are of."""
        count: Counter[str] = Counter()
        for name in self._weights.parts:
            kind, nbytes = self._weights.stored_as(name)
            count[kind.name] += nbytes
        return count.most_common(1)[0][0]

    def _matrix(self, name: str) -> QuantisedMatrix:
        data, kind = self._weights.rows(name)
        source = self._weights.parts[name]
        out, in_features = source.shape
        with np.errstate(invalid="ignore", over="ignore"):
            if kind.name in BLOCK_TYPES:
                matrix = QuantisedMatrix.from_file(kind.name, data, in_features, source.scale)
            else:
                self._rounded.add(kind.name)
                matrix = QuantisedMatrix.from_numbers(
                    lambda first, last: dequantise(data[first:last], kind) * source.scale,
                    out,
                    in_features,
                )
        if not matrix.is_finite:
            raise BrokenModel(
                f"{self._model.path}: {source.tensor} has values that are no numbers", AGAIN
            )
        return matrix
