"""The steps after the query, key and value projection, head by head: bias, norm, RoPE, and the
write to the KV cache."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.attention import Floats, Shape, Stored, apply_rope, store_key, store_value
from accel.models.cpu.kv_quantisation import absmax_quantise
from accel.models.cpu.rms_norm import rms_norm_head
from accel.native.numba_cache import compiled


@compiled(borrows=True)
def qkv_epilogue(
    head: int,
    first: int,
    rows: int,
    projected: Floats,
    bias: Floats,
    query_norm: Floats,
    key_norm: Floats,
    offsets: NDArray[np.int32],
    past: int,
    shape: Shape,
    cos_sin: Floats,
    keys: Stored,
    scales: Floats,
    queries: Floats,
) -> None:
    """Finish one head of a request's projected rows, ``rows`` from ``first`` on: add its bias, and
    for queries and keys apply the head's norm and RoPE. Queries are written as ``attend`` reads
    them, keys and values to ``keys``, with their scales: the head's of its KV cache, after
    ``past`` rows. Query heads come first, then key heads, then value heads.
    """
    heads, kv_heads, head_dim = shape.heads, shape.kv_heads, shape.head_dim
    group, stride = heads // kv_heads, projected.shape[1]
    for row in range(first, first + rows):
        position, start = past + offsets[row], row * stride
        if len(bias) > 0:
            for i in range(head_dim):
                projected[row, i] += bias[i]
        if head < heads:
            rms_norm_head(projected, start, query_norm, shape.eps)
            to = (head // group * len(offsets) + row) * group + head % group
            apply_rope(projected, start, cos_sin, position, queries, to * head_dim)
            continue
        if head < heads + kv_heads:
            rms_norm_head(projected, start, key_norm, shape.eps)
            apply_rope(projected, start, cos_sin, position, projected, start)
        slot, vector = past + row - first, projected[row, :head_dim]
        if len(scales) > 0:
            scales[slot] = absmax_quantise(projected, start, head_dim)
        if head < heads + kv_heads:
            store_key(keys, slot, vector)
        else:
            store_value(keys, slot, vector)
