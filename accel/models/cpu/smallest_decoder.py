"""The smallest decoder that the compiled forward computes: what compiles it needs no model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accel.files.rope import rope_frequencies, rope_table
from accel.models.cpu.attention import Shape
from accel.models.cpu.decoder import Decoder, descriptors_of
from accel.models.cpu.delta_net.shape import TAPS, DeltaShape
from accel.models.cpu.delta_net.weights import DeltaWeights
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.file_blocks import BLOCK_TYPES
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.weights import Weights

_FILE_TYPE = "Q8_0"


def smallest_hybrid() -> Decoder:
    """Return ``smallest_decoder`` with a layer of gated DeltaNet before its own."""
    plain = smallest_decoder()
    both = {
        name: np.concatenate([getattr(plain.weights, name)] * 2)
        for name in ("attention_norm", "mlp_norm", "gate_up", "down")
    }
    matrix, unit_norm = plain.weights.output, np.ones((1, BLOCK), np.float32)
    delta = DeltaWeights(
        kinds=np.array([-1, 0]),
        output_gate=matrix,
        mixed=np.concatenate([matrix] * 4, 1),
        out=matrix,
        betas_gates=np.zeros((1, 2, BLOCK, BLOCK), np.float32),
        kernel=np.zeros((1, TAPS + 1, 3 * BLOCK), np.float32),
        rate=np.zeros((1, 1), np.float32),
        bias=np.zeros((1, 1), np.float32),
        norm=unit_norm,
    )
    shape = DeltaShape(1, 1, BLOCK, BLOCK, 1, 1, plain.shape.eps)
    weights = plain.weights._replace(**both, query_norm=unit_norm, key_norm=unit_norm)
    return replace(plain, weights=weights, delta=delta, delta_shape=shape)


def smallest_decoder() -> Decoder:
    """One layer of one head, whose weights are zeros, in blocks as files have them and in numbers
    that were rounded."""
    blocks = np.zeros((BLOCK, BLOCK_TYPES[_FILE_TYPE].size), np.uint8)
    stored = QuantisedMatrix.from_file(_FILE_TYPE, blocks, BLOCK)
    rounded = QuantisedMatrix.from_numbers(
        lambda first, last: np.zeros((last - first, BLOCK), np.float32), BLOCK, BLOCK
    )
    matrix, norm = descriptors_of([[stored]]), np.ones((1, BLOCK), np.float32)
    none = np.empty((1, 0), np.float32)
    weights = Weights(
        embedding=matrix,
        attention_norm=norm,
        qkv=descriptors_of([[stored] * 3]),
        qkv_bias=none,
        query_norm=none,
        key_norm=none,
        output=matrix,
        mlp_norm=norm,
        gate_up=descriptors_of([[stored] * 2]),
        down=matrix,
        norm=norm[0],
        head=descriptors_of([[rounded]]),
    )
    frequencies = rope_frequencies(10_000.0, BLOCK)
    return Decoder(
        shape=Shape(heads=1, kv_heads=1, head_dim=BLOCK, eps=1e-5, scaling=1.0),
        weights=weights,
        vocabulary_size=BLOCK,
        max_positions=4 * BLOCK,
        dtype=_FILE_TYPE,
        cos_sin=lambda positions: rope_table(frequencies, 1.0, positions),
        matrices=(stored, rounded),
    )
