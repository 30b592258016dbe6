"""Attention by an ``AttentionPlan`` in plain operations of torch, on any device.

What ``attention_kernels`` computes on CUDA; each work's weighted values and their sum are merged in
fp32 in the order of the text.
"""

from __future__ import annotations

import torch
from torch import Tensor

from accel.models.cuda.attention_plan import (
    FIELDS,
    FIRST_WORK,
    LANE,
    POSITION,
    TAIL_LANE,
    TAIL_WORK,
    TAIL_WORKS,
    WORK_FIELDS,
    WORKS,
    Splits,
)


def attend(query: Tensor, kv: Tensor, plan: Tensor, splits: Splits, scale: float) -> Tensor:
    """Attention output [width, heads, head_dim] of query [width, heads, head_dim] over a layer of
    the pool [places, 2, kv_heads, head_dim]; zero for rows that attend nothing.

    plan: ``AttentionPlan.numbers`` as a tensor.
    """
    width, heads, head_dim = query.shape
    kv_heads, block = kv.shape[2], splits.block
    table = plan[: FIELDS * width].view(FIELDS, width).long()
    count, listed = plan[FIELDS * width : FIELDS * width + 2].tolist()
    # Without rows there is no work: the first one's numbers are zero then.
    count = max(count, 1)
    works = plan[FIELDS * width + 2 :][: WORK_FIELDS * count].view(count, WORK_FIELDS).long()
    first, rows, begin, start = (field[:, None] for field in works.unbind(1))
    lanes = torch.arange(block, device=plan.device)
    columns = torch.arange(splits.split, device=plan.device)
    row = torch.where(lanes < rows, first + lanes, first)
    positions = torch.where(lanes < rows, table[POSITION][row], -1)
    column = start + columns
    is_seen = column[:, None] <= positions[:, :, None]
    is_key = is_seen.any(1)
    places = plan[(listed + begin + columns).where(is_key, 0)].long().where(is_key, 0)
    keys, values = kv[places].unbind(2)
    grouped = query[row].unflatten(2, (kv_heads, -1))
    scores = torch.einsum("wrhgd,wshd->whrgs", grouped, keys).float() * scale
    scores.masked_fill_(~is_seen[:, None, :, None], -torch.inf)
    most = scores.amax(-1)
    weights = torch.exp(scores - most.nan_to_num(neginf=0.0)[..., None])
    summed = torch.einsum("whrgs,wshd->whrgd", weights.to(values.dtype), values).float()
    merged = _merged(table, most, weights.sum(-1), summed)
    return merged.view(width, heads, head_dim).to(query.dtype)


def _merged(table: Tensor, most: Tensor, total: Tensor, summed: Tensor) -> Tensor:
    """Each row's works as one, [width, kv_heads, group, D]. most, total: greatest score and sum of
    weights, [works, kv_heads, block, group]; summed: weighted values, [..., D]."""
    shared, tails = table[WORKS], table[TAIL_WORKS]
    order = torch.arange(max(int((shared + tails).max()), 1), device=table.device)[:, None]
    is_shared, is_there = order < shared, order < shared + tails
    work = torch.where(is_shared, table[FIRST_WORK] + order, table[TAIL_WORK] + order - shared)
    lane = torch.where(is_shared, table[LANE], table[TAIL_LANE])
    work, lane = work.where(is_there, 0), lane.where(is_there, 0)
    most = most.transpose(1, 2)[work, lane].where(is_there[..., None, None], -torch.inf)
    share = torch.exp(most - most.amax(0).nan_to_num(neginf=0.0))
    total = (share * total.transpose(1, 2)[work, lane]).sum(0)
    values = (share[..., None] * summed.transpose(1, 2)[work, lane]).sum(0)
    return torch.where(total[..., None] > 0, values / total[..., None], 0.0)
