"""The lean forward with inputs, keys and output at fixed places, recorded as a graph on CUDA.

A forward of a small model on a GPU is some two hundred launches, each of which takes the CPU longer
than the GPU. Recorded once for a number of rows and of columns of keys, they are launched as one.
Rows are padded to the next recorded number, and columns that are not there yet are masked. Without
CUDA the same computation runs unrecorded, so that it can be tested anywhere.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding

from accel.batch import BLOCKED, ForwardBatch
from accel.models.base import Cache
from accel.models.llama_torch import FusedLlama, LlamaCache
from accel.models.torch_forward import by_torch
from accel.models.tree_attention import repeat_rows

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Numbers of rows that are recorded; more are computed the lean way."""

COLUMNS = 512
"""Columns of keys are recorded in multiples of this."""


class StaticCache(LlamaCache):
    """Keys and values with the steps that are recorded over them."""

    def __init__(self, shape: tuple[int, int, int], capacity: int, like: Tensor) -> None:
        super().__init__(shape, capacity, like)
        self.steps: dict[tuple[int, int, bool], _CapturedForward] = {}

    def reserve(self, rows: int) -> None:
        before = self.buffers[0]
        super().reserve(rows)
        if self.buffers[0] is not before:
            self.steps.clear()


class CudaGraphLlama(FusedLlama):
    """A decoder built like Llama whose forwards repeat in shape. Build it with ``from_module``."""

    @by_torch
    def new_cache(self, capacity: int) -> Cache:
        shape = (len(self._layers), self._kv_heads, self._head_dim)
        return StaticCache(shape, capacity, self._embedding)

    def _logits(self, rows: ForwardBatch, cache: LlamaCache) -> Tensor:
        count, past = len(rows), cache.length
        padded = next((number for number in ROWS if number >= count), 0)
        if not padded:
            return super()._logits(rows, cache)
        assert isinstance(cache, StaticCache)
        columns = -(-(past + padded) // COLUMNS) * COLUMNS
        cache.reserve(columns - past)
        key = padded, columns, rows.logits_from < count
        step = cache.steps.get(key)
        if step is None:
            step = cache.steps[key] = _CapturedForward(self, cache, *key)
        logits = step.run(rows, past, self._rotation_rows(past + padded))
        if rows.logits_from == count:
            return logits.new_empty(0, self.vocabulary_size)
        return logits[rows.logits_from : count]

    def compute(self, step: _CapturedForward, cache: StaticCache) -> Tensor:
        """Logits [rows, vocabulary] of a step's inputs, or its states where none are wanted."""
        x = embedding(step.tokens, self._embedding)
        x = self._through_layers(
            x,
            step.cos,
            step.sin,
            cache,
            step.columns,
            step.places,
            repeat_rows(step.mask, self._heads // self._kv_heads),
        )
        return self._head(self._norm(x)) if step.wants_logits else x

    def _rotation_rows(self, needed: int) -> Tensor:
        """Cosine and signed sine of at least ``needed`` positions. [positions, 2, 1, D]."""
        if needed > len(self._rotations):
            self._rotations = self._rotation_table(max(needed, 2 * len(self._rotations), 1024))
        return self._rotations


class _CapturedForward:
    """A forward of a number of rows over a number of columns: inputs, graph and output."""

    @torch.inference_mode()
    def __init__(
        self, model: CudaGraphLlama, cache: StaticCache, rows: int, columns: int, wants_logits: bool
    ) -> None:
        like = cache.buffers[0]
        self.columns, self.wants_logits = columns, wants_logits
        self.tokens = torch.zeros(rows, dtype=torch.long, device=like.device)
        self.places = torch.zeros(rows, dtype=torch.long, device=like.device)
        self.cos = like.new_zeros((rows, 1, like.shape[-1]))
        self.sin = like.new_zeros((rows, 1, like.shape[-1]))
        self.mask = like.new_zeros((rows, columns))
        self._model, self._cache = model, cache
        self._graph: torch.cuda.CUDAGraph | None = None
        self._output = like.new_empty(0)

    @torch.inference_mode()
    def run(self, rows: ForwardBatch, past: int, rotations: Tensor) -> Tensor:
        """Logits of ``rows`` and of padding behind them; they hold until the next run."""
        self._fill(rows, past, rotations)
        if self.mask.device.type != "cuda":
            return self._model.compute(self, self._cache)
        if self._graph is None:
            self._record()
        assert self._graph is not None
        self._graph.replay()
        return self._output

    def _fill(self, rows: ForwardBatch, past: int, rotations: Tensor) -> None:
        count, padded = len(rows), len(self.tokens)
        device = self.mask.device
        self.tokens[:count] = torch.from_numpy(rows.tokens.copy()).to(device)
        self.places.copy_(torch.arange(past, past + padded, device=device))
        offsets = torch.zeros(padded, dtype=torch.long)
        offsets[:count] = torch.from_numpy(rows.offsets)
        turned = rotations.index_select(0, (offsets + past).to(device))
        self.cos.copy_(turned[:, 0])
        self.sin.copy_(turned[:, 1])
        # A row of padding looks at the text and at itself: a row without columns would give NaN.
        tail = torch.full((padded, padded), float(BLOCKED)).fill_diagonal_(0.0)
        tail[:count, :count] = torch.from_numpy(rows.mask)
        self.mask[:, :past] = 0
        self.mask[:, past + padded :] = float(BLOCKED)
        self.mask[:, past : past + padded] = tail.to(device)

    def _record(self) -> None:
        """Compute once, so that libraries set themselves up, and once more for the record."""
        before, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(before)
        with torch.cuda.stream(side):
            self._model.compute(self, self._cache)
        before.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._output = self._model.compute(self, self._cache)
        self._graph = graph
