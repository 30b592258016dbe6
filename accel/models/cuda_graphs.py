"""The lean forward with inputs, keys and output at fixed places, recorded as a graph on CUDA, since
a forward of a small model is some two hundred launches. Without CUDA, and where a recording fails,
the same computation runs unrecorded."""

from __future__ import annotations

import logging

import torch
from torch import Tensor
from torch.nn.functional import embedding

from accel.batch import BLOCKED, ForwardBatch
from accel.models.base import Cache
from accel.models.llama_torch import FusedLlama, LlamaCache
from accel.models.recorded_graphs import RecordedGraph
from accel.models.torch_forward import by_torch, is_out_of_memory
from accel.models.tree_attention import repeat_rows

logger = logging.getLogger(__name__)

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Numbers of rows that are recorded; more are computed the lean way."""

COLUMNS = 512
"""Columns of keys are recorded in multiples of this."""


class StaticCache(LlamaCache):
    """Keys and values with the steps that are recorded over them."""

    def __init__(self, shape: tuple[int, int, int], capacity: int, like: Tensor) -> None:
        super().__init__(shape, capacity, like)
        self.steps: dict[tuple[int, int, bool], StaticStep] = {}

    def reserve(self, rows: int) -> None:
        before = self.buffers[0]
        super().reserve(rows)
        if self.buffers[0] is not before:
            self.steps.clear()


class CudaGraphLlama(FusedLlama):
    """A decoder built like Llama whose forwards repeat in shape. Build it with ``from_module``."""

    _records_nothing = False
    """A recording has failed: from then on steps are computed without."""

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
            step = cache.steps[key] = StaticStep(cache.buffers[0], *key)
        step.fill(rows, past, self._rope_rows(past + padded))
        logits = self._output(step, cache)
        if rows.logits_from == count:
            return logits.new_empty(0, self.vocabulary_size)
        return logits[rows.logits_from : count]

    def _output(self, step: StaticStep, cache: StaticCache) -> Tensor:
        """What a step's inputs give, by its graph where it has one or one can be recorded."""
        if step.graph is None and self.records_graphs:
            try:
                step.graph = RecordedGraph(lambda: self.compute(step, cache))
            except RuntimeError as error:
                if _was_full(error):
                    raise MemoryError(str(error)) from error
                self._do_without(error)
        return self.compute(step, cache) if step.graph is None else step.graph.replay()

    @property
    def records_graphs(self) -> bool:
        """Whether steps are recorded: on CUDA, until that fails."""
        return self.device == "cuda" and not self._records_nothing

    def _do_without(self, error: RuntimeError) -> None:
        """A recording failed. What was recorded before goes on being used."""
        self._records_nothing = True
        cause = (str(error).strip() or type(error).__name__).splitlines()[0]
        logger.warning("no further CUDA graphs: a recording failed", exc_info=error)
        self.notices += (f"forwards are slower: no CUDA graph can be recorded ({cause})",)

    def compute(self, step: StaticStep, cache: StaticCache) -> Tensor:
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

    def _rope_rows(self, needed: int) -> Tensor:
        """Cosine and signed sine of at least ``needed`` positions. [positions, 2, 1, D]."""
        if needed > len(self._cos_sin):
            self._cos_sin = self._rope_table(max(needed, 2 * len(self._cos_sin), 1024))
        return self._cos_sin


class StaticStep:
    """A forward of a number of rows over a number of columns: its inputs, and its graph.

    It does not refer to the cache, which refers to it: a cache is freed with its last reference,
    and not when garbage is collected.
    """

    @torch.inference_mode()
    def __init__(self, like: Tensor, rows: int, columns: int, wants_logits: bool) -> None:
        """``like``: the keys, whose device and number format are those of the inputs."""
        self.columns, self.wants_logits = columns, wants_logits
        self.tokens = torch.zeros(rows, dtype=torch.long, device=like.device)
        self.places = torch.zeros(rows, dtype=torch.long, device=like.device)
        self.cos = like.new_zeros((rows, 1, like.shape[-1]))
        self.sin = like.new_zeros((rows, 1, like.shape[-1]))
        self.mask = like.new_zeros((rows, columns))
        self.graph: RecordedGraph | None = None

    @torch.inference_mode()
    def fill(self, rows: ForwardBatch, past: int, cos_sin: Tensor) -> None:
        """Have ``rows`` behind ``past`` tokens as inputs, with padding behind them. cos_sin:
        [positions, 2, 1, D]."""
        count, padded = len(rows), len(self.tokens)
        device = self.mask.device
        self.tokens[:count] = torch.from_numpy(rows.tokens.copy()).to(device)
        self.places.copy_(torch.arange(past, past + padded, device=device))
        offsets = torch.zeros(padded, dtype=torch.long)
        offsets[:count] = torch.from_numpy(rows.offsets)
        table = cos_sin.index_select(0, (offsets + past).to(device))
        self.cos.copy_(table[:, 0])
        self.sin.copy_(table[:, 1])
        # A row of padding looks at the text and at itself: a row without columns would give NaN.
        tail = torch.full((padded, padded), float(BLOCKED)).fill_diagonal_(0.0)
        tail[:count, :count] = torch.from_numpy(rows.mask)
        self.mask[:, :past] = 0
        self.mask[:, past + padded :] = float(BLOCKED)
        self.mask[:, past : past + padded] = tail.to(device)


def _was_full(error: BaseException | None) -> bool:
    """Whether the device was full where a recording failed: the error of its end hides that."""
    while error is not None:
        if is_out_of_memory(error):
            return True
        error = error.__cause__ or error.__context__
    return False
