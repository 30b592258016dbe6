"""A forward of a fixed number of rows: inputs in one copy, and a graph that is recorded once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from accel.models.cuda.attention import attend
from accel.models.cuda.attention_plan import (
    FIELDS,
    PLACE,
    POSITION,
    TOKEN,
    AttentionPlan,
    PooledRows,
    Splits,
)
from accel.models.cuda.kv_pool import KVPool
from accel.models.recorded_graphs import RecordedGraph

AttendLayer = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Attention output [width, heads, D] of a query, a layer of the pool and a plan's numbers."""


class FixedForward:
    """Inputs and results of a forward of ``width`` rows, at fixed addresses."""

    def __init__(
        self, width: int, splits: Splits, pool: KVPool, longest: int, heads: int, scale: float
    ) -> None:
        """longest: tokens of a text at most; heads: of queries; scale: of scores."""
        self.width, self._splits, self._scale = width, splits, scale
        self.plan = AttentionPlan(splits, width, pool.places, longest)
        device = pool.layers[0].device
        self.numbers = torch.zeros(len(self.plan.numbers), dtype=torch.int32, device=device)
        table = self.numbers[: FIELDS * width].view(FIELDS, width)
        self.tokens, self.positions, self.places = table[TOKEN], table[POSITION], table[PLACE]
        self.likeliest = torch.zeros(width, dtype=torch.long, device=device)
        self._pool, self._heads = pool, heads
        self._written = self.places.long()
        self._kernels: AttendLayer | None = None
        self.graph: RecordedGraph | None = None

    def use_kernels(self) -> None:
        """Attend by kernels of Triton from now on. Raises ImportError where that is missing."""
        from accel.models.cuda.attention_kernels import SplitAttention

        works, kv = self.plan.most_works, self._pool.layers[0]
        self._kernels = SplitAttention(self._splits, works, self._heads, kv, self._scale)

    def do_without_kernels(self) -> None:
        """Attend by operations of torch."""
        self._kernels = None

    def fill(self, rows: PooledRows, first: int, behind: int) -> None:
        """Have the rows from ``first`` on that come before ``behind`` as inputs."""
        used = self.plan.fill(rows, first, behind)
        self.numbers[: len(used)].copy_(torch.from_numpy(used))

    def begin(self) -> None:
        """The computation of the inputs begins."""
        self._written = self.places.long()

    def attend(self, layer: int, query: Tensor, own: Tensor) -> Tensor:
        """``llama_torch.Attend`` over the pool, to which the rows' ``own`` keys and values
        [width, 2, kv_heads, D] are written."""
        kv = self._pool.layers[layer]
        kv.index_copy_(0, self._written, own)
        if self._kernels is not None:
            return self._kernels(query, kv, self.numbers).flatten(1)
        return attend(query, kv, self.numbers, self._splits, self._scale).flatten(1)
