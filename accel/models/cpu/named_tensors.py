"""The weights of a decoder, made from tensors by the names of transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from accel.files.folder_architecture import EMBEDDING, HEAD, NORM
from accel.models.cpu.attention import Floats
from accel.models.cpu.decoder import (
    ATTENTION_NORM,
    DOWN,
    GATE_UP,
    MLP_NORM,
    OUTPUT,
    QKV,
    descriptors_of,
    weight_of,
)
from accel.models.cpu.layer_matrices import Matrices
from accel.models.cpu.matmul import packed
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.weights import Weights
from accel.native.aligned_memory import empty


class NamedVectors(Protocol):
    """Norms and biases, those that a model has."""

    def __contains__(self, name: str, /) -> bool: ...

    def values(self, name: str) -> Floats:
        """A copy as float32."""


class NamedTensors(NamedVectors, Protocol):
    """All tensors of a model."""

    @property
    def layers(self) -> int:
        """How many the model has."""

    @property
    def is_tied(self) -> bool:
        """Whether the head is the embedding."""

    def numbers(self, name: str) -> NDArray[Any]:
        """float32 or float16, or the bits of bf16 as int16."""


def widened(numbers: NDArray[Any]) -> Floats:
    """float32 copies of float32 or float16, or of bits of bf16."""
    if numbers.dtype != np.int16:
        return numbers.astype(np.float32)
    return (numbers.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def forward_weights(
    vectors: NamedVectors,
    layers: int,
    stacked: Callable[[Sequence[str]], Matrices],
    *,
    embedding: Matrices,
    head: Matrices,
) -> Weights:
    """Weights with the vectors of all layers, and the matrices that ``stacked`` makes of the parts
    of these names, which are beside each other."""

    def of_all_layers(part: str) -> Floats:
        """float32 [layers, size], [layers, 0] where the model has none."""
        names = [f"model.layers.{layer}.{part}" for layer in range(layers)]
        if names[0] not in vectors:
            return np.empty((layers, 0), np.float32)
        return np.stack([vectors.values(name) for name in names])

    return Weights(
        embedding=embedding,
        attention_norm=of_all_layers(f"{ATTENTION_NORM}.weight"),
        qkv=stacked(QKV),
        qkv_bias=np.concatenate([of_all_layers(f"{part}.bias") for part in QKV], 1),
        query_norm=of_all_layers("self_attn.q_norm.weight"),
        key_norm=of_all_layers("self_attn.k_norm.weight"),
        output=stacked(OUTPUT),
        mlp_norm=of_all_layers(f"{MLP_NORM}.weight"),
        gate_up=stacked(GATE_UP),
        down=stacked(DOWN),
        norm=vectors.values(NORM),
        head=head,
    )


def packed_weights(tensors: NamedTensors) -> Weights:
    """Weights as float32, packed."""

    def stacked(parts: Sequence[str]) -> Matrices:
        """Layer by layer, so that little is in memory twice."""
        whole: NDArray[Any] | None = None
        for layer in range(tensors.layers):
            names = [weight_of(layer, part) for part in parts]
            matrix = packed(np.concatenate([tensors.values(name) for name in names]))
            if whole is None:
                whole = empty((tensors.layers, *matrix.shape), matrix.dtype)
            whole[layer] = matrix
        assert whole is not None
        return whole

    embedding, head = tensors.values(EMBEDDING), packed(tensors.values(HEAD))[None]
    return forward_weights(tensors, tensors.layers, stacked, embedding=embedding, head=head)


def quantised_weights(
    tensors: NamedTensors, refuse: Callable[[str], NoReturn]
) -> tuple[Weights, tuple[QuantisedMatrix, ...]]:
    """Weights rounded to eight bits, and the matrices that hold them. ``refuse`` is called with
    the name of a matrix that has values that are no numbers."""
    matrices: list[QuantisedMatrix] = []

    def matrix_of(name: str) -> QuantisedMatrix:
        numbers = tensors.numbers(name)
        with np.errstate(invalid="ignore", over="ignore"):
            matrix = QuantisedMatrix.from_numbers(
                lambda first, last: widened(numbers[first:last]), *numbers.shape
            )
        if not matrix.is_finite:
            refuse(name)
        matrices.append(matrix)
        return matrix

    def stacked(parts: Sequence[str]) -> Matrices:
        found = []
        for layer in range(tensors.layers):
            names = [weight_of(layer, part) for part in parts]
            found.append([matrix_of(name) for name in names])
        return descriptors_of(found)

    head = descriptors_of([[matrix_of(HEAD)]])
    embedding = head if tensors.is_tied else descriptors_of([[matrix_of(EMBEDDING)]])
    weights = forward_weights(tensors, tensors.layers, stacked, embedding=embedding, head=head)
    return weights, tuple(matrices)
