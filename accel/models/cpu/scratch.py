"""Activations of the compiled forward: one set of buffers that every layer writes again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel.models.cpu.attention import Floats, Shape
from accel.models.cpu.layer_matrices import blocks_of, is_quantised
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.activations import Q8_BYTES, Q8Blocks
from accel.models.cpu.quantised.packed_layouts import BLOCK as QUANTISED_BLOCK
from accel.models.cpu.weights import Weights
from accel.native.aligned_memory import empty


class Scratch(NamedTuple):
    """Activations of some rows. q8: inputs of the next product with quantised matrices, quantised;
    ``gated_q8``: the same for the down projection."""

    x: Floats
    added: Floats
    normed: Floats
    qkv: Floats
    queries: Floats
    attended: Floats
    gate_up: Floats
    gated: Floats
    q8: Q8Blocks
    gated_q8: Q8Blocks

    @classmethod
    def allocate(cls, rows: int, weights: Weights, shape: Shape) -> Scratch:
        """Buffers for ``rows`` rows."""
        hidden_size = len(weights.norm)
        attended = shape.heads * shape.head_dim
        qkv, gate_up = blocks_of(weights.qkv) * BLOCK, blocks_of(weights.gate_up) * BLOCK
        projected = (rows, blocks_of(weights.output) * BLOCK)
        has_q8 = is_quantised(weights.qkv)
        most_inputs = max(hidden_size, attended) if has_q8 else 0
        gated = gate_up // 2 if has_q8 else 0
        return cls(
            x=empty((rows, hidden_size), np.float32),
            added=empty(projected, np.float32),
            normed=empty((rows, hidden_size), np.float32),
            qkv=empty((rows, qkv), np.float32),
            queries=empty((rows * shape.heads, shape.head_dim), np.float32),
            attended=empty((rows, attended), np.float32),
            gate_up=empty((rows, gate_up), np.float32),
            gated=empty((rows, gate_up // 2), np.float32),
            q8=empty((rows, most_inputs // QUANTISED_BLOCK * Q8_BYTES), np.int8),
            gated_q8=empty((rows, gated // QUANTISED_BLOCK * Q8_BYTES), np.int8),
        )
