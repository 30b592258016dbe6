"""Attention over a tree of rows, without copying keys and values for grouped queries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

NAME = "redraft"
"""Name under which the function is registered with transformers."""

FOLDED_ROWS = 128
"""Above this many rows the mask repeated for every group costs more than it saves."""


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_ignored: Any,
) -> tuple[Tensor, None]:
    """Return an attention function for transformers (``AttentionInterface``).

    query [1, heads, T, D], key and value [1, kv_heads, KV, D]; the mask is additive,
    [1, 1, T, KV], and may be left out when there is one row. Returns [1, T, heads, D].
    """
    kv_heads, groups = key.shape[1], query.shape[1] // key.shape[1]
    batch, heads, rows, _ = query.shape
    assert attention_mask is not None or rows == 1, "several rows need a mask"
    is_capped = softcap is not None or s_aux is not None
    if rows > FOLDED_ROWS and not is_capped:
        output = scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=groups > 1
        )
    else:
        # The queries of a group become rows, each with the whole mask.
        folded, mask = query.reshape(batch, kv_heads, groups * rows, -1), attention_mask
        if mask is not None and groups > 1:
            mask = torch.cat([mask] * groups, dim=-2)
        if is_capped:
            output = _capped(folded, key, value, mask, scaling, softcap, s_aux)
        else:
            output = scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scaling)
    return output.reshape(batch, heads, rows, value.shape[-1]).transpose(1, 2).contiguous(), None


def _capped(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float | None,
    softcap: float | None,
    s_aux: Tensor | None,
) -> Tensor:
    scores = query @ key.transpose(-1, -2) * (scaling or query.shape[-1] ** -0.5)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = scores + mask
    if s_aux is not None:
        rows_per_head = scores.shape[1] * scores.shape[2] // len(s_aux)
        sink = s_aux.repeat_interleave(rows_per_head).view(1, *scores.shape[1:3], 1)
        scores = torch.cat([scores, sink.expand(scores.shape[0], -1, -1, 1).to(scores)], dim=-1)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(value.dtype)
    return weights[..., : key.shape[-2]] @ value


def register() -> None:
    """Make the function known to transformers under ``NAME``."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attend)
