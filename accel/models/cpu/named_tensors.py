"""The weights of a decoder, made from tensors by the names of transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from accel.files.decoder_tensors import EMBEDDING, HEAD, NORM
from accel.files.hybrid import Hybrid
from accel.models.cpu.attention import Floats
from accel.models.cpu.decoder import (
    ATTENTION_NORM,
    DELTA_OUT,
    DOWN,
    GATE_UP,
    MIXED,
    MLP_NORM,
    OUTPUT,
    OUTPUT_GATE,
    QKV,
    descriptors_of,
    weight_of,
)
from accel.models.cpu.delta_net.weights import DeltaWeights
from accel.models.cpu.layer_matrices import Matrices
from accel.models.cpu.matmul import BLOCK, packed
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.weights import Weights
from accel.native.aligned_memory import empty


class NamedTensors(Protocol):
    """All tensors of a model, without the norms and biases that it lacks."""

    def __contains__(self, name: str, /) -> bool: ...

    def values(self, name: str) -> Floats:
        """Return a copy as float32."""

    @property
    def layers(self) -> int:
        """Return the number of the model's layers."""

    @property
    def hybrid(self) -> Hybrid | None:
        """Return the sizes of a hybrid's layers beside attention."""

    @property
    def is_tied(self) -> bool:
        """Return whether the head is the embedding."""


def widened(numbers: NDArray[Any]) -> Floats:
    """Return float32 copies of float32 or float16, or of bits of bf16."""
    if numbers.dtype != np.int16:
        return numbers.astype(np.float32)
    return (numbers.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


Stacked = Callable[[Sequence[str], Sequence[int]], Matrices]
"""Makes the matrices of some layers of the parts of these names, which are beside each other."""


def layers_with(hybrid: Hybrid | None, layers: int) -> Sequence[int]:
    """Return those with attention."""
    return [layer for layer in range(layers) if hybrid is None or layer not in hybrid.layers]


def _of_layers(tensors: NamedTensors, layers: Sequence[int], suffix: str) -> Floats:
    """Return float32 [layers, ..], [layers, 0] where the model has none."""
    names = [f"model.layers.{layer}.{suffix}" for layer in layers]
    if names[0] not in tensors:
        return np.empty((len(layers), 0), np.float32)
    return np.stack([tensors.values(name) for name in names])


def forward_weights(
    tensors: NamedTensors, stacked: Stacked, *, embedding: Matrices, head: Matrices
) -> tuple[Weights, DeltaWeights | None]:
    """Return weights with the vectors and matrices of all layers; of a hybrid those of its layers
    of gated DeltaNet beside them."""
    layers, hybrid = tensors.layers, tensors.hybrid
    every, attention = range(layers), layers_with(hybrid, layers)

    def of_attention(name: str) -> Floats:
        return _of_layers(tensors, attention, name)

    weights = Weights(
        embedding=embedding,
        attention_norm=_of_layers(tensors, every, f"{ATTENTION_NORM}.weight"),
        qkv=stacked(QKV, attention),
        qkv_bias=np.concatenate([of_attention(f"{name}.bias") for name in QKV], 1),
        query_norm=of_attention("self_attn.q_norm.weight"),
        key_norm=of_attention("self_attn.k_norm.weight"),
        output=stacked(OUTPUT, attention),
        mlp_norm=_of_layers(tensors, every, f"{MLP_NORM}.weight"),
        gate_up=stacked(GATE_UP, every),
        down=stacked(DOWN, every),
        norm=tensors.values(NORM),
        head=head,
    )
    return weights, None if hybrid is None else _delta_weights(tensors, stacked, hybrid)


def _delta_weights(tensors: NamedTensors, stacked: Stacked, hybrid: Hybrid) -> DeltaWeights:
    """Betas and gates stay in fp32, as they are small and decide what is forgotten."""
    layers = tensors.layers
    attention, own = layers_with(hybrid, layers), hybrid.layers
    kinds = [
        -1 - own.index(layer) if layer in own else attention.index(layer) for layer in range(layers)
    ]

    def of_own(name: str) -> Floats:
        return _of_layers(tensors, own, f"linear_attn.{name}")

    missing = -hybrid.value_heads % BLOCK
    both = [of_own(f"in_proj_{name}.weight") for name in ("b", "a")]
    stacked_parts = np.concatenate(
        [np.pad(name, [(0, 0), (0, missing), (0, 0)]) for name in both], 1
    )
    kernel = of_own("conv1d.weight").reshape(len(own), hybrid.channels, -1)
    return DeltaWeights(
        kinds=np.array(kinds, np.int64),
        output_gate=stacked(OUTPUT_GATE, attention),
        mixed=stacked(MIXED, own),
        out=stacked(DELTA_OUT, own),
        betas_gates=np.stack([packed(matrix) for matrix in stacked_parts]),
        kernel=np.ascontiguousarray(kernel.swapaxes(1, 2)),
        rate=of_own("A"),
        bias=of_own("dt_bias"),
        norm=of_own("norm.weight"),
    )


def packed_weights(tensors: NamedTensors) -> tuple[Weights, DeltaWeights | None]:
    """Return weights as float32, packed."""

    def stacked(parts_of_layer: Sequence[str], layers: Sequence[int]) -> Matrices:
        """Layer by layer, so that little is in memory twice."""
        stack: NDArray[Any] | None = None
        for index, layer in enumerate(layers):
            names = [weight_of(layer, suffix) for suffix in parts_of_layer]
            matrix = packed(np.concatenate([tensors.values(name) for name in names]))
            if stack is None:
                stack = empty((len(layers), *matrix.shape), matrix.dtype)
            stack[index] = matrix
        assert stack is not None
        return stack

    head = packed(tensors.values(HEAD))[None]
    return forward_weights(tensors, stacked, embedding=tensors.values(EMBEDDING), head=head)


def quantised_weights(
    tensors: NamedTensors, matrix_of: Callable[[str], QuantisedMatrix]
) -> tuple[Weights, DeltaWeights | None]:
    """Return weights with the matrices that ``matrix_of`` gives by their names."""

    def stacked(parts_of_layer: Sequence[str], layers: Sequence[int]) -> Matrices:
        return descriptors_of(
            [[matrix_of(weight_of(layer, name)) for name in parts_of_layer] for layer in layers]
        )

    head = descriptors_of([[matrix_of(HEAD)]])
    embedding = head if tensors.is_tied else descriptors_of([[matrix_of(EMBEDDING)]])
    return forward_weights(tensors, stacked, embedding=embedding, head=head)
