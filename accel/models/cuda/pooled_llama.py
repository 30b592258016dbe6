"""Decoders built like Llama on CUDA: requests share forwards of two fixed widths, and one pool.

A forward of a small model on a GPU is some hundreds of launches, each of which takes the CPU longer
than the GPU. They are recorded when the model is loaded, once for each width, and launched as one.

A product's last bits hang on its number of rows. So rows whose logits are asked for always go by
the narrow forward, and rows of prompts by the wide one, whatever the company; what is more than a
width takes several. Without CUDA, and where a recording fails, the same is computed unrecorded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from accel.models.base import BatchKind, Cache, Capability, Logits
from accel.models.batch import ForwardBatch
from accel.models.cuda.attention_plan import PooledRows, Splits
from accel.models.cuda.fixed_forward import FixedForward
from accel.models.cuda.kv_pool import KVPool, PooledCache
from accel.models.llama_torch import FusedLlama
from accel.models.recorded_graphs import RecordedGraph
from accel.models.torch_forward import by_torch, is_out_of_memory
from accel.models.torch_logits import TorchLogits

logger = logging.getLogger(__name__)

NARROW, WIDE = 64, 256
"""Rows of the forward whose logits are asked for, and of the one for prompts."""
NARROW_SPLIT, WIDE_SPLIT = 256, 2048
"""Keys that are attended at once: few, so that a single request occupies all of a GPU; rows of
prompts are many, and their results between would take much memory."""
LANES = 32
"""Query vectors of a work: on all GPUs one kind of matrix instruction takes so many."""

MOST_POOL_BYTES = 1 << 33
POOL_BYTES_ON_CPU = 1 << 24
"""Where no GPU is, the pool serves to try this out."""


def _before(model: FusedLlama, *inputs: Any) -> tuple[Tensor, Tensor]:
    """Query [T, heads, D], keys and values [T, 2, kv_heads, D] of a layer's inputs."""
    query, key, value = FusedLlama._before_attention(model, *inputs)
    return query.contiguous(), torch.stack((key, value), 1)


PARTS = _before, FusedLlama._after_attention
"""Of a layer, between which it attends."""


class PooledLlama(FusedLlama):
    """A decoder built like Llama whose caches lie in one pool. Build it with ``from_module``."""

    _records_nothing = False
    """A recording has failed."""

    @by_torch
    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.capability = Capability(BatchKind.TREE, requests=NARROW)
        self._parts = PARTS
        shape = len(self._layers), self._kv_heads, self._head_dim
        token_bytes = 2 * int(np.prod(shape)) * self._embedding.element_size()
        places = min(self._pool_bytes() // token_bytes, NARROW * self.max_positions + 1)
        self.pool = KVPool(shape, places, self._embedding)
        self.kv_bytes = places * token_bytes
        self.max_positions = min(self.max_positions, places - 1)
        self._cos_sin = self._rope_table(self.max_positions)
        group = self._heads // self._kv_heads
        block = max(LANES // (1 << (group - 1).bit_length()), 1)
        self.narrow, self.wide = (
            FixedForward(
                *(width, Splits(split, block), self.pool, self.max_positions),
                *(self._heads, self._scaling),
            )
            for width, split in ((NARROW, NARROW_SPLIT), (WIDE, WIDE_SPLIT))
        )
        self.prepare()

    def _pool_bytes(self) -> int:
        if self.device != "cuda":
            return POOL_BYTES_ON_CPU
        free, _ = torch.cuda.mem_get_info(self._embedding.device)
        return min(free // 2, MOST_POOL_BYTES)

    def new_cache(self, capacity: int) -> Cache:
        """It takes places as it is filled: ``capacity`` says nothing."""
        return PooledCache(self.pool)

    @by_torch
    def prepare(self) -> None:
        """Compile and record both forwards, as far as that goes here."""
        forwards = self.narrow, self.wide
        if self.device == "cuda":
            torch.cuda.set_device(self._embedding.device)
            try:
                self._compile()
                for forward in forwards:
                    forward.use_kernels()
                    self.compute(forward)
            except Exception as error:
                # What compilers raise is not known beforehand.
                if is_out_of_memory(error):
                    raise
                self._do_without_kernels(error)
        for forward in forwards:
            if self.records_graphs:
                self._record(forward)

    def _compile(self) -> None:
        """Have torch fuse what lies between products and attention."""
        before, after = PARTS
        compiled = torch.compile(before, dynamic=False), torch.compile(after, dynamic=False)
        self._parts = compiled

    def _do_without_kernels(self, error: Exception) -> None:
        self._parts = PARTS
        for forward in (self.narrow, self.wide):
            forward.do_without_kernels()
        self._do_without_graphs("no kernel can be compiled", error)

    def _before_attention(self, *inputs: Any) -> tuple[Tensor, ...]:
        return self._parts[0](self, *inputs)

    def _after_attention(self, *inputs: Any) -> Tensor:
        return self._parts[1](self, *inputs)

    @property
    def records_graphs(self) -> bool:
        """Whether forwards are recorded: on CUDA, until that fails."""
        return self.device == "cuda" and not self._records_nothing

    def _record(self, forward: FixedForward) -> None:
        try:
            forward.graph = RecordedGraph(lambda: self.compute(forward))
        except RuntimeError as error:
            if _was_full(error):
                raise MemoryError(str(error)) from error
            self._do_without_graphs("no CUDA graph can be recorded", error)

    def _do_without_graphs(self, what: str, error: Exception) -> None:
        self._records_nothing = True
        cause = (str(error).strip() or type(error).__name__).splitlines()[0]
        logger.warning("forwards are not recorded: %s", what, exc_info=error)
        self.notices += (f"forwards are slower: {what} ({cause})",)

    def compute(self, forward: FixedForward) -> Tensor:
        """Logits [width, vocabulary] of a forward's inputs, and which token is the likeliest; of
        the wide one its states."""
        table = self._cos_sin.index_select(0, forward.positions)
        x = embedding(forward.tokens, self._embedding)
        forward.begin()
        x = self._through_layers(x, table[:, 0], table[:, 1], forward.attend)
        if forward is self.wide:
            return x
        logits = self._head(self._norm(x))
        forward.likeliest.copy_(logits.argmax(-1))
        return logits

    @by_torch
    def forward_all(
        self, batches: Sequence[ForwardBatch], caches: Sequence[Cache]
    ) -> Iterable[Logits]:
        for batch, cache in zip(batches, caches, strict=True):
            cache.reserve(batch.meant)
        pooled = list(zip(batches, cast("Sequence[PooledCache]", caches), strict=True))
        prompts = [pair for pair in pooled if pair[0].logits_from >= pair[0].meant]
        for _ in self._passes(self.wide, prompts):
            pass
        wanted = [pair for pair in pooled if pair[0].logits_from < pair[0].meant]
        logits, likeliest = list[Tensor](), list[int]()
        for count, found in self._passes(self.narrow, wanted):
            # The next pass computes its logits in the same place.
            is_last = len(likeliest) + count == sum(batch.meant for batch, _ in wanted)
            logits.append(found[:count] if is_last else found[:count].clone())
            likeliest += self.narrow.likeliest[:count].tolist()
        every = logits[0] if len(logits) == 1 else torch.cat(logits or [self._embedding[:0]])
        results, row = list[Logits](), 0
        for batch, _ in pooled:
            if batch.logits_from >= batch.meant:
                results.append(TorchLogits(self._embedding.new_empty(0, self.vocabulary_size)))
                continue
            rows = slice(row + batch.logits_from, row + batch.meant)
            results.append(TorchLogits(every[rows], likeliest[rows]))
            row += batch.meant
        return results

    def _passes(
        self, forward: FixedForward, pooled: list[tuple[ForwardBatch, PooledCache]]
    ) -> Iterator[tuple[int, Tensor]]:
        """Compute the rows of requests, a width at a time: their number and what is computed."""
        if not pooled:
            return
        rows = joined(pooled)
        for first in range(0, len(rows.tokens), forward.width):
            behind = min(first + forward.width, len(rows.tokens))
            forward.fill(rows, first, behind)
            graph = forward.graph
            yield behind - first, self.compute(forward) if graph is None else graph.replay()


def joined(pooled: list[tuple[ForwardBatch, PooledCache]]) -> PooledRows:
    """The rows of several requests, each after its cache, whose places they have."""
    batches, caches = zip(*pooled, strict=True)
    counts, lengths = [batch.meant for batch in batches], [cache.length for cache in caches]
    own = list(zip(batches, caches, counts, strict=True))
    return PooledRows(
        np.concatenate([batch.tokens[:count] for batch, _, count in own]),
        np.concatenate([batch.parents[:count] for batch, _, count in own]),
        np.concatenate([cache.length + batch.offsets[:count] for batch, cache, count in own]),
        np.concatenate([cache.places[cache.length :][:count] for _, cache, count in own]),
        np.cumsum([0, *counts], dtype=np.int32),
        np.array(lengths, np.int32),
        np.concatenate([cache.places[: cache.length] for cache in caches]),
        np.cumsum([0, *lengths[:-1]], dtype=np.int32),
    )


def _was_full(error: BaseException | None) -> bool:
    """Whether the device was full where a recording failed: the error of its end hides that."""
    while error is not None:
        if is_out_of_memory(error):
            return True
        error = error.__cause__ or error.__context__
    return False
