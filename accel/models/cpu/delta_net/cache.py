"""The cache of a hybrid: keys and values of its layers of attention, and of the others a state and
the rows since.

States are at multiples of a chunk, where the chunk's form makes them. A cache keeps a few of those
before: going back to a text before the chunk under way starts from the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.attention import Floats, Shape, Stored
from accel.models.cpu.cache import CompiledCache
from accel.models.cpu.delta_net.kept_rows import KeptRows, StoredRows, empty_state
from accel.models.cpu.delta_net.shape import CHUNK, TAPS, DeltaShape

MOST_KEPT = 4
"""States of chunks before that are kept."""

Close = Callable[[KeptRows, Floats], None]
"""Writes the state after a whole chunk of kept rows."""


class _Mark(NamedTuple):
    """A state that is kept: after ``tokens`` tokens, with the convolution's inputs before them."""

    tokens: int
    state: Floats
    inputs: Stored


class LastRows(NamedTuple):
    """Rows of the last forward in the store: from row ``first`` on, there from ``at`` on; ``made``:
    chunks that end among them, where the state after the last was made by the forward."""

    stored: StoredRows
    at: int
    first: int
    made: int


class HybridCache(CompiledCache):
    """Use it with the model that made it."""

    is_cut = False

    def __init__(
        self,
        layers: tuple[int, int],
        shapes: tuple[Shape, DeltaShape],
        capacity: int,
        dtypes: tuple[Any, Any],
        close: Close,
    ) -> None:
        """layers: of attention and of gated DeltaNet; dtypes: of keys and values, and of inputs of
        the convolution."""
        super().__init__(layers[0], shapes[0], capacity, dtypes[0])
        self._delta_layers, self._delta_shape, self._close = layers[1], shapes[1], close
        self._hold(KeptRows.empty(layers[1], shapes[1], dtypes[1]), 0)
        self._marks = list[_Mark]()
        """In the order of their tokens."""
        self._spares = list[Floats]()
        self.last_rows: LastRows | None = None
        """Rows that ``commit`` may make text."""

    @property
    def held(self) -> int:
        """Committed rows of the chunk under way."""
        return self.length - self._begin

    @property
    def nbytes(self) -> int:
        nbytes_since = sum(array.nbytes for array in self.kept)
        marks = sum(mark.state.nbytes + mark.inputs.nbytes for mark in self._marks)
        return super().nbytes + nbytes_since + marks + sum(spare.nbytes for spare in self._spares)

    def spare_addresses(self, chunks: int) -> tuple[int, int]:
        """Return the addresses for the last two states of a forward that ends ``chunks`` chunks, 0
        for none."""
        while len(self._spares) < min(chunks, 2):
            self._spares.append(empty_state(self._delta_layers, self._delta_shape))
        last, before = [*[spare.ctypes.data for spare in self._spares[: min(chunks, 2)]], 0, 0][:2]
        return last, before

    def commit(self, path: Sequence[int]) -> None:
        last, self.last_rows = self.last_rows, None
        if not path:
            return
        assert last is not None, "rows of another forward are in their place"
        if last.made:
            self._commit_chunks(last, len(path))
        else:
            self._append(last, np.array(path))
        super().commit(path)

    def trim(self, length: int) -> None:
        self.last_rows = None
        if length >= self._begin:
            super().trim(length)
            return
        marks = [mark for mark in self._marks if mark.tokens <= length]
        self._spares += [mark.state for mark in self._marks[len(marks) :]]
        self._spares = [*self._spares, self.kept.state][:2]
        if marks:
            back = marks.pop()
            state, tokens, inputs = back.state, back.tokens, back.inputs
        else:
            state, tokens = empty_state(self._delta_layers, self._delta_shape), 0
            inputs = np.zeros_like(self.kept.inputs[:, :TAPS])
        self._marks = marks
        self.kept.inputs[:, :TAPS] = inputs
        self._hold(self.kept._replace(state=state), tokens)
        super().trim(tokens)

    def state(self) -> list[NDArray[Any]]:
        """Return what is committed, and the states that are kept of chunks before."""
        marks = self._marks
        states = np.zeros((len(marks), *self.kept.state.shape), np.float32)
        inputs = np.zeros((len(marks), *self.kept.inputs[:, :TAPS].shape), self.kept.inputs.dtype)
        for i, mark in enumerate(marks):
            states[i], inputs[i] = mark.state, mark.inputs
        tokens = np.array([mark.tokens for mark in marks], np.int64)
        return [*self._committed(self.length), tokens, states, inputs]

    def restore(self, state: list[NDArray[Any]], length: int) -> None:
        self.trim(0)
        self._begin = length // CHUNK * CHUNK
        own = len(self._committed(0))
        try:
            super().restore(state[:own], length)
            self._marks = self._marks_of(state[own:])
        except (ValueError, MemoryError):
            self._begin = self.length = 0
            raise

    def _marks_of(self, stored: list[NDArray[Any]]) -> list[_Mark]:
        """Return the marks that ``state`` gave, none where it gave none. Raises ValueError for
        those of other shapes."""
        if not stored:
            return []
        own = (), self.kept.state.shape, self.kept.inputs[:, :TAPS].shape
        if tuple(array.shape[1:] for array in stored) != own or len(set(map(len, stored))) > 1:
            raise ValueError("states of another shape")
        tokens, states, inputs = stored
        marks = []
        for i, count in enumerate(tokens.tolist()):
            state = empty_state(self._delta_layers, self._delta_shape)
            state[...] = states[i]
            marks.append(_Mark(count, state, inputs[i].astype(self.kept.inputs.dtype)))
        return marks

    def _committed(self, length: int) -> list[NDArray[Any]]:
        held, rows_since = length - self._begin, self.kept
        rows = [
            rows_since.keys[:, :held],
            rows_since.updates[:, :held],
            rows_since.totals[:, :, :held],
        ]
        return [
            *super()._committed(length),
            rows_since.state,
            *rows,
            rows_since.inputs[:, : TAPS + held],
        ]

    def _hold(self, rows_since: KeptRows, begin: int) -> None:
        self.kept, self._begin = rows_since, begin
        self.kept_addresses = tuple(array.ctypes.data for array in rows_since)
        """Addresses of its arrays in memory."""

    def _append(self, last: LastRows, rows: NDArray[np.int64]) -> None:
        """Take rows over, one chunk after another."""
        held, rows = self.held, rows + (last.at - last.first)
        while len(rows):
            count = min(CHUNK - held, len(rows))
            self._copy(last.stored, rows[:count], held)
            held, rows = held + count, rows[count:]
            if held == CHUNK:
                spares = self._spares or [empty_state(self._delta_layers, self._delta_shape)]
                after = spares.pop()
                self._close(self.kept, after)
                inputs = self.kept.inputs[:, CHUNK:].copy()
                self._go_on(_Mark(self._begin + CHUNK, after, inputs))
                held = 0

    def _copy(self, stored: StoredRows, rows: NDArray[np.int64], to: int) -> None:
        rows_since, end = self.kept, to + len(rows)
        rows_since.keys[:, to:end] = stored.keys[:, rows]
        rows_since.updates[:, to:end] = stored.updates[:, rows]
        rows_since.totals[:, :, to:end] = stored.totals[:, rows].swapaxes(1, 2)
        rows_since.inputs[:, TAPS + to : TAPS + end] = stored.inputs[:, rows]

    def _commit_chunks(self, last: LastRows, count: int) -> None:
        """Take all rows of a part of a prompt over, in which chunks end."""
        stored, stored_at, first, chunks = last
        begin = chunks * CHUNK - self.held
        """The first row of the chunk that is under way then."""
        rows_before = self.kept.inputs[:, : TAPS + self.held]
        inputs = np.concatenate(
            [rows_before, stored.inputs[:, stored_at : stored_at + count - first]], 1
        )
        end = inputs.shape[1] - (count - begin)
        """Of the inputs before that row."""
        tokens = self._begin + chunks * CHUNK
        states = [self._spares.pop(0) for _ in range(min(chunks, 2))]
        for back in range(len(states) - 1, -1, -1):
            stop = end - back * CHUNK
            before = inputs[:, stop - TAPS : stop].copy()
            self._go_on(_Mark(tokens - back * CHUNK, states[back], before))
        self._copy(stored, np.arange(stored_at + begin - first, stored_at + count - first), 0)

    def _go_on(self, new: _Mark) -> None:
        """Have a new chunk under way, after a state, and keep that of the one before."""
        if self._begin:
            mark = _Mark(self._begin, self.kept.state, self.kept.inputs[:, :TAPS].copy())
            self._marks.append(mark)
        else:
            self._spares = [*self._spares, self.kept.state][:2]
        if len(self._marks) > MOST_KEPT:
            self._spares = [*self._spares, self._marks.pop(self._least_missed(new.tokens)).state]
        self._spares = self._spares[:2]
        self.kept.inputs[:, :TAPS] = new.inputs
        self._hold(self.kept._replace(state=new.state), new.tokens)

    def _least_missed(self, tokens: int) -> int:
        """Return the mark that is missed least: many are near, few far away."""
        back = [tokens, *[tokens - mark.tokens for mark in self._marks], 0]
        gaps = [(back[i - 1] - back[i + 1]) / back[i - 1] for i in range(1, len(back) - 1)]
        return gaps.index(min(gaps))
