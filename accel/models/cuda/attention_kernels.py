"""Attention by an ``AttentionPlan`` in two kernels of Triton: all works, then each row's as one.

The order of every sum is fixed by the text alone: tiles of keys, and of works, lie at fixed places.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
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

KEYS = 64
"""Keys of a step within a work."""
MERGED = 16
"""Works that are merged in a step."""
PROGRAMS = 8
"""Programs for each processor of the GPU, which take works in turn."""


class SplitAttention:
    """Attention with room for the results of works. Its launches may be recorded."""

    def __init__(self, splits: Splits, works: int, heads: int, kv: Tensor, scale: float) -> None:
        """works: at most; kv: a layer of the pool."""
        self._splits, self._scale = splits, scale
        self._kv_heads, self._head_dim = kv.shape[2:]
        self._group = heads // self._kv_heads
        self._lanes = max(splits.block * triton.next_power_of_2(self._group), 16)
        shape = works, self._kv_heads, self._lanes
        self._summed = torch.zeros((*shape, self._head_dim), device=kv.device)
        self._most, self._total = (torch.zeros(shape, device=kv.device) for _ in range(2))
        processors = 1
        if kv.is_cuda:
            processors = torch.cuda.get_device_properties(kv.device).multi_processor_count
        self._programs = max(PROGRAMS * processors // self._kv_heads, 1)

    def __call__(self, query: Tensor, kv: Tensor, plan: Tensor) -> Tensor:
        """See ``attention.attend``."""
        assert query.is_contiguous()
        assert kv.is_contiguous()
        width, heads, _ = query.shape
        output = torch.empty_like(query)
        sizes = self._kv_heads, self._group, triton.next_power_of_2(self._group), self._head_dim
        dim = max(triton.next_power_of_2(self._head_dim), 16)
        _compute_works[self._programs, self._kv_heads](
            *(query, kv, plan, self._summed, self._most, self._total),
            *(self._scale, width, *sizes, dim, self._splits.split, self._lanes, KEYS),
            *(self._programs, FIELDS, POSITION, WORK_FIELDS),
        )
        _merge_works[width, heads](
            *(plan, self._summed, self._most, self._total, output),
            *(width, *sizes, dim, self._lanes, MERGED, FIRST_WORK, WORKS, LANE),
            *(TAIL_WORK, TAIL_WORKS, TAIL_LANE),
        )
        return output


@triton.jit
def _compute_works(  # type: ignore[no-untyped-def]
    query, kv, plan, summed, most, total, scale,
    WIDTH: tl.constexpr, KV_HEADS: tl.constexpr, GROUP: tl.constexpr, GROUP_LANES: tl.constexpr,
    HEAD_DIM: tl.constexpr, DIM: tl.constexpr, SPLIT: tl.constexpr, LANES: tl.constexpr,
    KEYS: tl.constexpr, PROGRAMS: tl.constexpr, FIELDS: tl.constexpr, POSITION: tl.constexpr,
    WORK_FIELDS: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    works = tl.load(plan + FIELDS * WIDTH)
    listed = plan + tl.load(plan + FIELDS * WIDTH + 1)
    lane, d = tl.arange(0, LANES), tl.arange(0, DIM)
    lane_row, lane_head = lane // GROUP_LANES, lane % GROUP_LANES
    for work in range(tl.program_id(0), works, PROGRAMS):
        fields = plan + FIELDS * WIDTH + 2 + WORK_FIELDS * work
        rows = tl.load(fields + 1)
        row = tl.load(fields) + lane_row
        places = listed + tl.load(fields + 2)
        start = tl.load(fields + 3)
        is_lane = (lane_row < rows) & (lane_head < GROUP)
        position = tl.load(plan + POSITION * WIDTH + row, mask=is_lane, other=-1)
        last = tl.max(position, 0)
        heads = (row * KV_HEADS + head) * GROUP + lane_head
        q = tl.load(
            query + heads[:, None] * HEAD_DIM + d[None, :],
            mask=is_lane[:, None] & (d < HEAD_DIM)[None, :],
            other=0.0,
        )
        highest = tl.full([LANES], float("-inf"), tl.float32)
        weight = tl.zeros([LANES], tl.float32)
        values = tl.zeros([LANES, DIM], tl.float32)
        for first in range(0, tl.minimum(SPLIT, last - start + 1), KEYS):
            column = first + tl.arange(0, KEYS)
            is_key = start + column <= last
            place = tl.load(places + column, mask=is_key, other=0).to(tl.int64)
            at = (place * 2 * KV_HEADS + head) * HEAD_DIM
            is_number = is_key[:, None] & (d < HEAD_DIM)[None, :]
            k = tl.load(kv + at[:, None] + d[None, :], mask=is_number, other=0.0)
            v = tl.load(
                kv + KV_HEADS * HEAD_DIM + at[:, None] + d[None, :], mask=is_number, other=0.0
            )
            scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            is_seen = start + column[None, :] <= position[:, None]
            scores = tl.where(is_seen, scores, float("-inf"))
            higher = tl.maximum(highest, tl.max(scores, 1))
            level = tl.where(higher == float("-inf"), 0.0, higher)
            before = tl.exp(highest - level)
            share = tl.exp(scores - level[:, None])
            weight = weight * before + tl.sum(share, 1)
            values = values * before[:, None]
            values += tl.dot(share.to(v.dtype), v, input_precision="ieee")
            highest = higher
        to = (work * KV_HEADS + head) * LANES + lane
        tl.store(most + to, highest)
        tl.store(total + to, weight)
        tl.store(
            summed + to.to(tl.int64)[:, None] * HEAD_DIM + d[None, :],
            values,
            mask=(d < HEAD_DIM)[None, :],
        )


@triton.jit
def _merge_works(  # type: ignore[no-untyped-def]
    plan, summed, most, total, output,
    WIDTH: tl.constexpr, KV_HEADS: tl.constexpr, GROUP: tl.constexpr, GROUP_LANES: tl.constexpr,
    HEAD_DIM: tl.constexpr, DIM: tl.constexpr, LANES: tl.constexpr, MERGED: tl.constexpr,
    FIRST_WORK: tl.constexpr, WORKS: tl.constexpr, LANE: tl.constexpr, TAIL_WORK: tl.constexpr,
    TAIL_WORKS: tl.constexpr, TAIL_LANE: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    first_work, shared = (
        tl.load(plan + FIRST_WORK * WIDTH + row),
        tl.load(plan + WORKS * WIDTH + row),
    )
    tail_work = tl.load(plan + TAIL_WORK * WIDTH + row)
    works = shared + tl.load(plan + TAIL_WORKS * WIDTH + row)
    lane = tl.load(plan + LANE * WIDTH + row) * GROUP_LANES + head % GROUP
    tail_lane = tl.load(plan + TAIL_LANE * WIDTH + row) * GROUP_LANES + head % GROUP
    d = tl.arange(0, DIM)
    highest = tl.full([1], float("-inf"), tl.float32)
    weight = tl.zeros([1], tl.float32)
    values = tl.zeros([DIM], tl.float32)
    for first in range(0, works, MERGED):
        order = first + tl.arange(0, MERGED)
        is_there = order < works
        work = tl.where(order < shared, first_work + order, tail_work + order - shared)
        at = (work * KV_HEADS + head // GROUP) * LANES + tl.where(order < shared, lane, tail_lane)
        part = tl.load(most + at, mask=is_there, other=float("-inf"))
        higher = tl.maximum(highest, tl.max(part, 0))
        before, share = tl.exp(highest - higher), tl.exp(part - higher)
        sums = tl.load(total + at, mask=is_there, other=0.0)
        parts = tl.load(
            summed + at.to(tl.int64)[:, None] * HEAD_DIM + d[None, :],
            mask=is_there[:, None] & (d < HEAD_DIM)[None, :],
            other=0.0,
        )
        weight = weight * before + tl.sum(share * sums, 0)
        values = values * before + tl.sum(share[:, None] * parts, 0)
        highest = higher
    # A row without keys has no meaning: zero is a number at least.
    values = tl.where(weight > 0, values / weight, 0.0)
    to = (row * KV_HEADS * GROUP + head) * HEAD_DIM
    tl.store(output + to + d, values.to(output.dtype.element_ty), mask=d < HEAD_DIM)
