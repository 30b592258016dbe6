"""The weights of a decoder as the compiled forward takes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from accel.files.model_options import KvType
from accel.models.cpu.attention import Floats
from accel.models.cpu.layer_matrices import Matrices, is_quantised


class Weights(NamedTuple):
    """Matrices are ``layer_matrices.Matrices``; the head's have one layer.

    embedding: stored [vocabulary, hidden_size], or the descriptor of a quantised matrix; norms:
    float32 [layers, hidden_size], the last [hidden_size]; qkv_bias: float32 [layers, out_features];
    query_norm, key_norm: of each head, float32 [layers, head_dim]. What a model lacks is
    [layers, 0].
    """

    embedding: Matrices
    attention_norm: Floats
    qkv: Matrices
    qkv_bias: Floats
    query_norm: Floats
    key_norm: Floats
    output: Matrices
    mlp_norm: Floats
    gate_up: Matrices
    down: Matrices
    norm: Floats
    head: Matrices


def kv_dtype(weights: Weights, kv_type: KvType) -> np.dtype[Any]:
    """Return the dtype of keys and values: int8 for that ``kv_type``, otherwise float32, or the
    bits of fp16 as uint16 for quantised weights."""
    if kv_type == "int8":
        return np.dtype(np.int8)
    return np.dtype(np.uint16 if is_quantised(weights.embedding) else np.float32)
