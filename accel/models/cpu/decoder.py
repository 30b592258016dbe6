"""A decoder for the compiled forward: shape, weights and RoPE tables, from a file of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from accel.files.decoder_tensors import Architecture
from accel.models.cpu.attention import Floats, Shape
from accel.models.cpu.delta_net.shape import DeltaShape, delta_shape
from accel.models.cpu.delta_net.weights import DeltaWeights
from accel.models.cpu.layer_matrices import is_quantised
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.quantised.packed_layouts import COLUMNS
from accel.models.cpu.weights import Weights

QKV = "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"
OUTPUT = ("self_attn.o_proj",)
GATE_UP = "mlp.gate_proj", "mlp.up_proj"
DOWN = ("mlp.down_proj",)
OUTPUT_GATE = ("self_attn.output_gate",)
MIXED = "linear_attn.in_proj_qkv", "linear_attn.in_proj_z"
DELTA_OUT = ("linear_attn.out_proj",)
"""The parts of a layer's matrices, by the names of transformers."""
ATTENTION_NORM, MLP_NORM = "input_layernorm", "post_attention_layernorm"


@dataclass(frozen=True)
class Decoder:
    """A decoder like Llama.

    dtype: the name of its weights' format; cos_sin: makes the RoPE table of a number of positions,
    float32 [positions, 2, head_dim / 2]; matrices: the quantised matrices whose descriptors
    ``weights`` holds; end_tokens: those that the file names.
    """

    shape: Shape
    weights: Weights
    vocabulary_size: int
    max_positions: int
    dtype: str
    cos_sin: Callable[[int], NDArray[np.float32]]
    matrices: tuple[QuantisedMatrix, ...] = ()
    end_tokens: frozenset[int] = frozenset()
    adaptive_tokens: tuple[int, ...] = ()
    """Ids of inputs that the vocabulary has not (``accel.files.adaptive_tokens``)."""
    delta: DeltaWeights | None = None
    """Of a hybrid, the layers of gated DeltaNet."""
    delta_shape: DeltaShape | None = None


def decoder_for(
    architecture: Architecture,
    weights: tuple[Weights, DeltaWeights | None],
    dtype: str,
    *,
    cos_sin: Callable[[int], NDArray[np.float32]],
    matrices: tuple[QuantisedMatrix, ...],
    end_tokens: frozenset[int],
) -> Decoder:
    """Return the decoder of an architecture with its weights, see ``Decoder``."""
    return Decoder(
        shape=Shape(
            architecture.heads,
            architecture.kv_heads,
            architecture.head_dim,
            architecture.eps,
            architecture.attention_scale,
        ),
        weights=weights[0],
        vocabulary_size=architecture.vocabulary,
        max_positions=architecture.positions,
        dtype=dtype,
        cos_sin=cos_sin,
        matrices=matrices,
        end_tokens=end_tokens,
        delta=weights[1],
        delta_shape=delta_shape(architecture.hybrid, architecture.eps),
    )


def with_adaptive_tokens(decoder: Decoder, embeddings: Floats) -> Decoder:
    """Return a decoder that reads adaptive tokens, too. embeddings: float32 [tokens, hidden_size];
    where its own are quantised they are a second table, in eight bits."""
    embedding, matrices = decoder.weights.embedding, decoder.matrices
    if is_quantised(embedding):
        matrix = QuantisedMatrix.from_numbers(
            lambda first, last: embeddings[first:last], *embeddings.shape
        )
        matrices = *matrices, matrix
        first, tables = int(embedding[0, 0, 3]) * COLUMNS, [embedding, descriptors_of([[matrix]])]
    else:
        first, tables = len(embedding), [embedding, embeddings]
    return replace(
        decoder,
        weights=decoder.weights._replace(embedding=np.concatenate(tables)),
        matrices=matrices,
        adaptive_tokens=tuple(range(first, first + len(embeddings))),
    )


def descriptors_of(layers: Sequence[Sequence[QuantisedMatrix]]) -> NDArray[np.int64]:
    """``layer_matrices.Matrices`` of quantised matrices. layers: for each layer the matrices whose
    columns are beside each other."""
    return np.stack([np.stack([matrix.descriptor() for matrix in layer]) for layer in layers])


def weight_of(layer: int, name: str) -> str:
    """Return the name of a weight of a layer."""
    return f"model.layers.{layer}.{name}.weight"
