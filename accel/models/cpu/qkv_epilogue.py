"""What follows the query, key and value projection, head by head: bias, norm, RoPE, and the write
to the KV cache."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu import attention as compiled_attention
from accel.models.cpu import kv_quantisation, matmul, rms_norm
from accel.models.cpu.attention import (
    Floats,
    KVCache,
    Shape,
    Stored,
    apply_rope,
    store_key,
    store_value,
)
from accel.models.cpu.kv_quantisation import absmax_quantise
from accel.models.cpu.rms_norm import rms_norm_head
from accel.native import simd
from accel.native.numba_cache import compiled_with


@compiled_with(simd, matmul, compiled_attention, kv_quantisation, rms_norm, borrows=True)
def qkv_epilogue(
    layer: int,
    head: int,
    qkv: Floats,
    bias: Floats,
    query_norm: Floats,
    key_norm: Floats,
    offsets: NDArray[np.int32],
    past: int,
    shape: Shape,
    cos_sin: Floats,
    kv: KVCache,
    queries: Stored,
) -> None:
    """Finish one head of the projected rows: add the bias, and for queries and keys apply the
    head's norm and RoPE. Queries are written as ``attend`` reads them, keys and values to the KV
    cache of the layer behind ``past`` rows. Query heads come first, then key heads, then value
    heads.
    """
    heads, kv_heads, head_dim = shape.heads, shape.kv_heads, shape.head_dim
    rows, group, stride = len(offsets), heads // kv_heads, qkv.shape[1]
    start = head * head_dim
    for row in range(rows):
        position, at = past + offsets[row], row * stride + start
        if len(bias) > 0:
            for i in range(start, start + head_dim):
                qkv[row, i] += bias[i]
        if head < heads:
            rms_norm_head(qkv, at, query_norm, shape.eps)
            to = (head // group * rows + row) * group + head % group
            apply_rope(qkv, at, cos_sin, position, queries, to * head_dim)
        elif head < heads + kv_heads:
            rms_norm_head(qkv, at, key_norm, shape.eps)
            apply_rope(qkv, at, cos_sin, position, qkv, at)
            kv_head = head - heads
            if kv.key_scales.shape[2] > 0:
                kv.key_scales[layer, kv_head, past + row] = absmax_quantise(qkv, at, head_dim)
            store_key(kv.keys[layer, kv_head], past + row, qkv[row, start : start + head_dim])
        else:
            kv_head = head - heads - kv_heads
            if kv.value_scales.shape[2] > 0:
                kv.value_scales[layer, kv_head, past + row] = absmax_quantise(qkv, at, head_dim)
            store_value(kv.values[layer, kv_head], past + row, qkv[row, start : start + head_dim])


__all__ = ["qkv_epilogue"]
