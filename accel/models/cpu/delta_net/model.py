"""A hybrid of gated DeltaNet and attention as a model of the compiled forward."""

from __future__ import annotations

import operator
import weakref
from typing import Any

import numpy as np

from accel.files.model_options import KvType
from accel.models.cpu.attention import Floats
from accel.models.cpu.decoder import Decoder
from accel.models.cpu.delta_net.cache import HybridCache, LastRows
from accel.models.cpu.delta_net.forward import close_chunk, hybrid_forward, num_hybrid_steps
from accel.models.cpu.delta_net.kept_rows import KeptRows, StoredRows
from accel.models.cpu.delta_net.row_plan import COLUMNS, plan_rows
from accel.models.cpu.delta_net.shape import CHUNK, TAPS, DeltaBuffers
from accel.models.cpu.delta_net.weights import DeltaScratch, HybridState, hybrid_state_of
from accel.models.cpu.llama import CompiledLlama, ForwardCall
from accel.models.cpu.weights import kv_dtype
from accel.native.numba_cache import State


class CompiledHybrid(CompiledLlama):
    """A decoder like Qwen3.5 on some cores."""

    def __init__(self, decoder: Decoder, kv_type: KvType = "f16") -> None:
        assert decoder.delta is not None
        assert decoder.delta_shape is not None
        self._delta, self._delta_shape = decoder.delta, decoder.delta_shape
        self._delta_layers = int((decoder.delta.kinds < 0).sum())
        self._inputs_dtype = kv_dtype(decoder.weights, "f16")
        self._row_buffers = list[DeltaBuffers]()
        self._room, self._wrapped = (1, 1), tuple[State, ...]()
        self._wrapped_for: tuple[Any, ...] = ()
        self._closing = DeltaBuffers.of(1, 1, decoder.delta_shape)
        self._stored = self._new_store(1)
        self._asked: list[weakref.ref[HybridCache]] = []
        """Caches of the last forward."""
        super().__init__(decoder, kv_type)

    def new_cache(self, capacity: int) -> HybridCache:
        return HybridCache(
            (len(self._weights.qkv), self._delta_layers),
            (self._shape, self._delta_shape),
            capacity,
            (kv_dtype(self._weights, self.kv_type), self._inputs_dtype),
            self._close,
        )

    def _close(self, rows_since: KeptRows, after: Floats) -> None:
        close_chunk(rows_since, self._delta_shape, self._closing, after)

    def _compute(self, call: ForwardCall) -> None:
        batches, caches = call.batches, call.caches
        rows = sum(map(len, batches))
        plan, origins = np.empty((rows, COLUMNS), np.int32), np.zeros(rows, np.int32)
        first, stored_at, most_made = 0, 0, 0
        written = list[tuple[HybridCache, int, int, int]]()
        for batch, cache, line in zip(batches, caches, call.lines, strict=True):
            assert isinstance(cache, HybridCache)
            count, is_prompt = len(batch), batch.logits_from == len(batch)
            own = slice(first, first + count)
            ended = plan_rows(batch.parents, cache.held, is_prompt, plan[own], origins[own])
            # Of a prompt all becomes text, and nobody goes back to what is before the last chunks.
            chunks = ended if is_prompt else 0
            stored_from = max(max(chunks - 1, min(chunks, 1)) * CHUNK - cache.held - TAPS, 0)
            spare = cache.spare_addresses(ended) if is_prompt else (0, 0)
            line.extend([*cache.kept_addresses, cache.held])
            line.extend([stored_at, stored_from, ended, *spare])
            written.append((cache, stored_at, stored_from, chunks))
            first, stored_at = first + count, stored_at + count - stored_from
            most_made = max(most_made, ended)
        stored = self._store_for(stored_at, [cache for cache, *_ in written])
        states = self._hybrid_states(max(map(len, batches)), most_made)
        steps = num_hybrid_steps(self._delta.kinds, call.outputs, call.most_nodes)
        arguments = *self._arguments(call), plan, origins, *stored, steps
        self._pool.run(hybrid_forward, arguments, states[: self.threads], steps)
        for cache, first_stored, stored_from, chunks in written:
            cache.last_rows = LastRows(stored, first_stored, stored_from, chunks)
        self._asked = [weakref.ref(cache) for cache, *_ in written]

    def _new_store(self, rows: int) -> StoredRows:
        return StoredRows.of(self._delta_layers, rows, self._delta_shape, self._inputs_dtype)

    def _store_for(self, rows: int, caches: list[HybridCache]) -> StoredRows:
        """Return a store whose rows no cache can still commit."""
        for cache in caches:
            cache.last_rows = None
        others = (other for ref in self._asked if (other := ref()) is not None)
        is_taken = any(other.last_rows is not None for other in others)
        if is_taken or self._stored.keys.shape[1] < rows:
            self._stored = self._new_store(max(rows, self._stored.keys.shape[1]))
        return self._stored

    def _hybrid_states(self, rows: int, chunks: int) -> tuple[State, ...]:
        """Return the states of at least ``threads`` threads, with buffers for a request of ``rows``
        rows, of which ``chunks`` chunks are made."""
        self._thread_states()
        plain = self._fields
        if rows > self._room[0] or chunks > self._room[1]:
            self._room = max(rows, self._room[0]), max(chunks, self._room[1])
            self._row_buffers = []
        while len(self._row_buffers) < len(plain):
            self._row_buffers = [
                *self._row_buffers,
                DeltaBuffers.of(*self._room, self._delta_shape),
            ]
        made_for = plain, self._row_buffers
        if len(self._wrapped_for) == 0 or any(map(operator.is_not, made_for, self._wrapped_for)):
            scratch = DeltaScratch.allocate(
                len(self._scratch.x), self._delta, self._delta_shape, self._shape
            )
            like = self._one_block
            assert isinstance(like, HybridCache)
            shared = self._delta, self._delta_shape, like.kept, scratch
            both = zip(plain, self._row_buffers, strict=False)
            self._wrapped = tuple(
                hybrid_state_of(HybridState(fields, *shared, own)) for fields, own in both
            )
            self._wrapped_for = made_for
        return self._wrapped
