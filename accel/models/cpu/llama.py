"""The compiled forward as a model: weights packed, caches in its own layout."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from accel.batch import ForwardBatch, chain_batch
from accel.draft_tree import TokenArray
from accel.models.array_logits import ArrayLogits
from accel.models.base import BatchKind, Cache, Capability, Logits, Model
from accel.models.cpu.attention import Room
from accel.models.cpu.cache import CompiledCache
from accel.models.cpu.decoder import Decoder
from accel.models.cpu.forward import COLUMN_ROWS, forward, meetings_of, shares_of
from accel.models.cpu.layer_matrices import blocks_of
from accel.models.cpu.lm_head import Found, WalkRoom, all_logits
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.parts import Scratch, stored_dtype
from accel.models.cpu.thread_pair import ThreadPair
from accel.models.cpu.worker import Side, side_of
from accel.models.cpu.worker_handoff import LOGIT_ROWS, Job

WOKEN_ROWS = 6
"""Rows below which it takes longer to wake the second thread than it saves."""

_NO_PARENTS = np.empty(0, np.int32)


class CompiledLlama(Model):
    """A decoder like Llama or Qwen2 on one core or two. Build it with ``from_module``."""

    can_share = os.name == "posix"
    """Whether two threads may share a forward."""

    def __init__(self, decoder: Decoder) -> None:
        self.capability = Capability(BatchKind.TREE)
        self.dtype = decoder.dtype
        self.device = "cpu"
        self.vocabulary_size = decoder.vocabulary_size
        self.max_positions = decoder.max_positions
        self.shared_from = 0
        """Rows from which two threads share a forward, 0 for never."""
        # The matrices that it holds stay as long as the model does.
        self._decoder, self._shape, self._weights = decoder, decoder.shape, decoder.weights
        self._columns = blocks_of(self._weights.head) * BLOCK
        """Logits of a row, with those of no token behind the vocabulary."""
        self._rotations = decoder.rotations(0)
        self._found = Found.room()
        self._make_sides(BLOCK, 1)
        self._pair = ThreadPair()
        # Compile, or load the compiled form, before the first request waits for it.
        self.forward(chain_batch(np.zeros(1, np.int32), 0), [self.new_cache(BLOCK)])

    @classmethod
    def from_module(cls, module: Any, *, quantised: bool = False) -> CompiledLlama | None:
        """The compiled form of a module of torch, None where it is too large or has parts of other
        kinds. ``quantised``: with weights rounded to eight bits.

        The module's layers give up their weights.
        """
        from accel.models.cpu.torch_weights import can_be_compiled, decoder_of

        if not can_be_compiled(module, quantised=quantised):
            return None
        return cls(decoder_of(module, quantised=quantised))

    def new_cache(self, capacity: int) -> Cache:
        dtype = stored_dtype(self._weights)
        return CompiledCache(len(self._weights.qkv), self._shape, capacity, dtype)

    def shares_patiently(self, patiently: bool) -> None:
        """Whether to share although the other thread keeps losing its core; to measure that."""
        self._pair.is_patient = patiently

    def forward(self, batch: ForwardBatch, caches: Sequence[Cache]) -> Logits:
        (cache,) = caches
        assert isinstance(cache, CompiledCache)
        first, wanted = batch.logits_from, len(batch) - batch.logits_from
        self._make_room(len(batch), cache)
        if batch.wants_numbers or not wanted:
            logits = self._room_for(wanted)
            self._compute(batch, cache, logits)
            return ArrayLogits(logits[:, : self.vocabulary_size])
        parents = batch.parents[first + 1 :] - np.int32(first + 1)
        count = self._compute(batch, cache, self._job.logits[:0], parents)
        room, chosen = self._walk_room, np.full(wanted, -1, np.int32)
        chosen[0] = room.chosen[0]
        chosen[room.path[: count - 1] + 1] = room.chosen[1:count]
        return _WalkedLogits(chosen, lambda: self._logits_of(first, wanted))

    def _room_for(self, rows: int) -> NDArray[np.float32]:
        """Room for so many rows of logits."""
        if rows <= LOGIT_ROWS:
            return self._job.logits[:rows]
        return np.empty((rows, self._columns), np.float32)

    def _logits_of(self, first: int, count: int) -> NDArray[np.float32]:
        """The numbers of rows of the last forward, after it."""
        logits = np.empty((count, self._columns), np.float32)
        states, records = self._scratch.normed, self._scratch.records
        all_logits(states, records, first, count, self._weights.head, logits)
        return logits[:, : self.vocabulary_size]

    def _compute(
        self,
        batch: ForwardBatch,
        cache: CompiledCache,
        logits: NDArray[np.float32],
        parents: TokenArray | None = None,
    ) -> int:
        """``compiled_forward.forward``, by two threads where that pays; it walks where ``parents``
        are given. There is room for it."""
        count = len(batch)
        arguments = (
            batch.tokens,
            batch.offsets,
            batch.mask,
            cache.length,
            logits,
            _NO_PARENTS if parents is None else parents,
            parents is not None,
        )
        sides, pair = self._sides_for(cache), self._pair
        # Who stands by does not know where to write many logits.
        stands_by = len(logits) <= LOGIT_ROWS
        least = self.shared_from if stands_by else max(self.shared_from, WOKEN_ROWS)
        by_columns, half = shares_of(count)
        is_long = not by_columns
        if not (self.shared_from and least <= count and pair.is_free(is_long=is_long)):
            return forward(*arguments, False, False, 0, count, sides[0], pair.meeting, 0, 0)
        meetings = meetings_of(len(self._weights.qkv), count)
        shared = (*arguments, by_columns, stands_by)
        how = {"stands_by": stands_by, "is_long": is_long}
        return pair.run(forward, shared, half, count, sides, meetings, **how)

    def _sides_for(self, cache: CompiledCache) -> tuple[Side, Side]:
        """What the two threads compute with, for a cache as it is."""
        made_for = self._rotations, self._own
        if cache.sides is None or any(map(operator.is_not, made_for, cache.sides_made_for)):
            shared = (
                *(self._weights, self._shape, self.vocabulary_size),
                *(self._rotations, cache.kept, *cache.words, self._found, self._job),
            )
            held: list[tuple[Any, ...]] = [(*shared, *own) for own in self._own]
            first, second = (side_of(*each) for each in held)
            cache.sides, cache.sides_made_for = (first, second), made_for
        return cache.sides

    def _make_sides(self, columns: int, rows: int) -> None:
        """Room for activations, which two threads share where each computes some of the rows, but
        not all of where each computes some of the columns; and room of each thread's own."""
        self._scratch = Scratch.room(rows, self._weights, self._shape)
        others = Scratch.room(min(rows, COLUMN_ROWS), self._weights, self._shape)
        other_scratch = self._scratch._replace(
            x=others.x, normed=others.normed, gate_up=others.gate_up, records=others.records
        )
        dtype, scratch = stored_dtype(self._weights), self._scratch
        first, second = (
            (
                Room.of(columns, self._shape, dtype),
                WalkRoom.of(rows, scratch.normed, scratch.records),
            )
            for _ in range(2)
        )
        self._own = [
            (self._scratch, self._scratch, *first),
            (self._scratch, other_scratch, *second),
        ]
        self._job = Job.room(rows, self._columns)
        self._walk_room = first[1]
        self._most = columns, rows

    def _make_room(self, rows: int, cache: CompiledCache) -> None:
        cache.reserve(rows)
        columns, most_rows = self._most
        if cache.capacity > columns or rows > most_rows:
            self._make_sides(max(cache.capacity, columns), max(rows, most_rows))
        if cache.capacity > len(self._rotations):
            self._rotations = self._decoder.rotations(cache.capacity)


class _WalkedLogits:
    """Rows of which a walk in the forward has found some tokens. See ``base.Logits``."""

    def __init__(self, chosen: TokenArray, numbers: Callable[[], NDArray[np.float32]]) -> None:
        """chosen: int32 [rows], -1 where the walk did not come; ``numbers``: of all rows."""
        self._chosen = chosen
        self._make_numbers = numbers
        self._numbers: NDArray[np.float32] | None = None

    def argmax(self) -> Sequence[int]:
        """Of rows to which the walk did not come it is found when it is asked for."""
        return _ChosenTokens(self._chosen.tolist(), self)

    def row(self, index: int) -> NDArray[np.float32]:
        """The first that is asked for has all of them computed."""
        if self._numbers is None:
            self._numbers = self._make_numbers()
        row: NDArray[np.float32] = self._numbers[index]
        return row


class _ChosenTokens(Sequence[int]):
    """The likeliest tokens of rows, see ``_WalkedLogits.argmax``."""

    def __init__(self, chosen: list[int], logits: _WalkedLogits) -> None:
        self._chosen, self._logits = chosen, logits

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        token = self._chosen[index]
        return token if token >= 0 else int(self._logits.row(index).argmax())
