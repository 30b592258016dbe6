"""The compiled forward as a model: weights packed, caches in its own layout."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.files.model_options import KvType
from accel.models.array_logits import ArrayLogits, VerifiedLogits
from accel.models.base import BatchKind, Cache, Capability, Logits, Model
from accel.models.batch import ForwardBatch, chain_batch
from accel.models.cpu.attention import AttentionBuffers
from accel.models.cpu.barrier import MOST_THREADS
from accel.models.cpu.cache import CompiledCache
from accel.models.cpu.decoder import Decoder
from accel.models.cpu.forward import forward, num_steps
from accel.models.cpu.layer_matrices import blocks_of, is_quantised
from accel.models.cpu.lm_head import COLUMNS, HEAD_ROWS, GreedyVerification, all_logits
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS, chosen
from accel.models.cpu.request_table import FIRST, NUMBERS, ROWS, VERIFIES, WANTED, line_of
from accel.models.cpu.scratch import Scratch, TileBuffers
from accel.models.cpu.thread_pool import ThreadPool
from accel.models.cpu.thread_state import ThreadState, thread_state_of
from accel.models.cpu.weights import kv_dtype
from accel.native.aligned_memory import empty
from accel.native.numba_cache import State
from operating_system.machine import cores

_LOGIT_ROWS = 16
"""Rows of the logits buffer, which every forward uses again."""

_KEPT_LOGITS_BYTES = 32 << 20
"""A larger buffer than this is let go after its forward. Fresh memory may cost as much as the
forward: the system clears it page by page."""

_HEAD_ITEMS = 64
"""Tiles that the lm head is cut into at most."""

MOST_REQUESTS = 32
"""Requests whose rows one forward computes at most."""

_Buffers = tuple[AttentionBuffers, TileBuffers, NDArray[np.float32]]
"""Of a thread."""


class ForwardCall(NamedTuple):
    """The arguments of a forward: its requests, for each of them a line of a ``RequestTable``, a
    buffer for the numbers that are asked for, and the rest of ``ForwardOutput``."""

    batches: Sequence[ForwardBatch]
    caches: Sequence[Cache]
    lines: list[list[int]]
    logits: NDArray[np.float32]
    outputs: int
    most_nodes: int


class CompiledLlama(Model):
    """A decoder like Llama or Qwen2 on some cores."""

    def __init__(self, decoder: Decoder, kv_type: KvType = "f16") -> None:
        self.capability = Capability(BatchKind.TREE, requests=MOST_REQUESTS)
        self.dtype = decoder.dtype
        self.kv_type = kv_type
        self.device = "cpu"
        self.vocabulary_size = decoder.vocabulary_size
        self.adaptive_tokens = decoder.adaptive_tokens
        self.max_positions = decoder.max_positions
        # The matrices that it holds stay as long as the model does.
        self._decoder, self._shape, self._weights = decoder, decoder.shape, decoder.weights
        self._columns = blocks_of(self._weights.head) * BLOCK
        """Logits of a row, with those of no token after the vocabulary."""
        self._cos_sin = decoder.cos_sin(0)
        self._buffers = list[_Buffers]()
        """Buffers of each thread."""
        self._logits = np.empty((_LOGIT_ROWS, self._columns), np.float32)
        self._allocate(BLOCK, 1)
        self._one_block = self.new_cache(BLOCK)
        """A cache with the form of all caches."""
        self._fields = list[ThreadState]()
        self._states: tuple[State, ...] = ()
        self._states_made_for: tuple[Any, ...] = (None, None, None)
        self._pool = ThreadPool()
        # Compile, or load the compiled form, before the first request waits for it.
        self.forward(chain_batch(np.zeros(1, np.int32), 0), [self.new_cache(BLOCK)])

    def new_cache(self, capacity: int) -> CompiledCache:
        dtype = kv_dtype(self._weights, self.kv_type)
        return CompiledCache(len(self._weights.qkv), self._shape, capacity, dtype)

    def forward(self, batch: ForwardBatch, caches: Sequence[Cache]) -> Logits:
        (logits,) = self.forward_all([batch], caches)
        return logits

    def forward_all(self, batches: Sequence[ForwardBatch], caches: Sequence[Cache]) -> list[Logits]:
        lines, first, outputs, numbers, most_nodes = [], 0, 0, 0, -1
        for batch, cache in zip(batches, caches, strict=True):
            assert isinstance(cache, CompiledCache)
            cache.reserve(len(batch))
            lines.append(line_of(batch, cache, first, numbers))
            first, count = first + len(batch), len(batch) - batch.logits_from
            outputs += count
            if batch.wants_numbers:
                numbers += count
            elif count:
                most_nodes = max(most_nodes, count - 1)
        self._reserve(first, max(line[-1] for line in lines))
        logits = self._logits_buffer(numbers)
        self._compute(ForwardCall(batches, caches, lines, logits, outputs, most_nodes))
        return [self._logits_for(request, line, logits) for request, line in enumerate(lines)]

    def _logits_for(self, request: int, line: list[int], logits: NDArray[np.float32]) -> Logits:
        """Return the logits of a request in the last forward."""
        first, count = line[WANTED], line[FIRST] + line[ROWS] - line[WANTED]
        if not line[VERIFIES]:
            own = logits[line[NUMBERS] : line[NUMBERS] + count]
            return ArrayLogits(own[:, : self.vocabulary_size])
        verification = self._verification
        last = first + verification.length(request)
        path, tokens = verification.path[first : last - 1], verification.chosen[first:last]
        return VerifiedLogits(
            path.tolist(), tokens.copy(), count, lambda: self._logits_of(first, count)
        )

    def interrupt(self) -> None:
        self._pool.interrupt()

    def _logits_buffer(self, rows: int) -> NDArray[np.float32]:
        """Return a buffer for ``rows`` rows of logits."""
        if rows > len(self._logits):
            larger = np.empty((rows, self._columns), np.float32)
            if larger.nbytes > _KEPT_LOGITS_BYTES:
                return larger
            self._logits = larger
        return self._logits[:rows]

    def _logits_of(self, first: int, count: int) -> NDArray[np.float32]:
        """Return the numbers of rows of the last forward, after it."""
        logits = np.empty((count, self._columns), np.float32)
        states, q8 = self._scratch.normed, self._scratch.q8
        all_logits(states, q8, first, count, self._weights.head, logits)
        return logits[:, : self.vocabulary_size]

    def _compute(self, call: ForwardCall) -> None:
        """Run ``forward``, by ``threads`` threads. The buffers are large enough."""
        steps = num_steps(len(self._weights.qkv), call.outputs, call.most_nodes)
        arguments = *self._arguments(call), steps
        self._pool.run(forward, arguments, self._thread_states()[: self.threads], steps)

    def _arguments(self, call: ForwardCall) -> tuple[Any, ...]:
        """Return those of a compiled forward that all models have."""
        batches = call.batches
        return (
            joined([batch.tokens for batch in batches]),
            joined([batch.offsets for batch in batches]),
            *(np.array(call.lines, np.int64), call.logits),
            joined([batch.parents - np.int32(batch.logits_from + 1) for batch in batches]),
            *(call.outputs, call.most_nodes),
        )

    def _thread_states(self) -> tuple[State, ...]:
        """Return the states of at least ``threads`` threads."""
        while len(self._buffers) < self.threads:
            self._buffers = [*self._buffers, self._thread_buffers()]
        made_for = self._cos_sin, self._buffers, self._scratch
        if any(map(operator.is_not, made_for, self._states_made_for)):
            like = self._one_block
            shared = (
                *(self._weights, self._shape, self.vocabulary_size, min(cores(), MOST_THREADS)),
                *(self._cos_sin, like.kv, self._scratch, self._verification),
            )
            self._fields = [ThreadState(*shared, *own) for own in self._buffers]
            self._states = tuple(map(thread_state_of, self._fields))
            self._states_made_for = made_for
        return self._states

    def _thread_buffers(self) -> _Buffers:
        columns, rows = self._most
        logits = empty((len(self._verification.block), COLUMNS), np.float32)
        tile_buffers = TileBuffers.allocate(rows, self._shape)
        return AttentionBuffers.of(columns, self._shape), tile_buffers, logits

    def _allocate(self, columns: int, rows: int) -> None:
        """Allocate buffers for ``rows`` rows, and for attention to ``columns`` columns."""
        self._most = columns, rows
        self._scratch = scratch = Scratch.allocate(rows, self._weights, self._shape)
        # As many rows of the head as cost like one.
        quantised = is_quantised(self._weights.head)
        most = INSTRUCTION_SETS[chosen()].rows if quantised else HEAD_ROWS
        self._verification = GreedyVerification.allocate(
            MOST_REQUESTS, rows, most, _HEAD_ITEMS, scratch.normed, scratch.q8
        )
        self._buffers = [self._thread_buffers()]

    def _reserve(self, rows: int, capacity: int) -> None:
        """Allocate buffers for ``rows`` rows and caches of ``capacity``, if they are too small."""
        columns, most_rows = self._most
        if capacity > columns or rows > most_rows:
            self._allocate(max(capacity, columns), max(rows, most_rows))
        if capacity > len(self._cos_sin):
            self._cos_sin = self._decoder.cos_sin(capacity)


def joined(arrays: list[TokenArray]) -> TokenArray:
    """Arrays one after the other."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
