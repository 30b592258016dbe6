"""The KV cache of the compiled forward, in the layout that its products want."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.attention import Kept, Shape, move
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.thread_state import ThreadState
from accel.models.row_cache import RowCache
from accel.native.aligned_memory import zeros


class CompiledCache(RowCache):
    """Keys and values in blocks, see ``attention.Kept``."""

    def __init__(self, layers: int, shape: Shape, capacity: int, dtype: Any) -> None:
        self._layers, self._shape, self._dtype = layers, shape, np.dtype(dtype)
        self._pair = 2 if self._dtype == np.int16 else 1
        self._has_scales = self._dtype == np.int8
        self._make(capacity)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.kept)

    def pretend(self, length: int) -> None:
        assert not self.length, "a cache that holds text need not pretend"
        self.reserve(length)
        for part in self.kept:
            part[...] = 0
        self.length = length

    def reserve(self, rows: int) -> None:
        needed = self.length + rows
        if needed <= self.capacity:
            return
        old = self.kept
        blocks, places = old.keys.shape[2], old.values.shape[3]
        self._make(max(needed, self.capacity + self.capacity // 2))
        self.kept.keys[:, :, :blocks] = old.keys
        self.kept.values[:, :, :, :places] = old.values
        for scales, kept in zip(self.kept[2:], old[2:], strict=True):
            scales[:, :, : kept.shape[2]] = kept

    def state(self) -> list[NDArray[Any]]:
        """What holds the blocks in use, in the order of ``_committed``."""
        return self._committed(self.length)

    def restore(self, state: list[NDArray[Any]], length: int) -> None:
        self.length = 0
        self.reserve(length)
        own = self._committed(length)
        if [(one.dtype, one.shape) for one in state] != [(one.dtype, one.shape) for one in own]:
            raise ValueError("a KV cache of another form")
        for place, stored in zip(own, state, strict=True):
            place[...] = stored
        self.length = length

    def _committed(self, length: int) -> list[NDArray[Any]]:
        """Views of what holds the first ``length`` rows."""
        blocks = -(-length // BLOCK)
        places = blocks * BLOCK // self._pair
        held = [self.kept.keys[:, :, :blocks], self.kept.values[:, :, :, :places]]
        scales = [part[:, :, :length] for part in self.kept[2:]]
        return held + scales if self._has_scales else held

    def _make(self, capacity: int) -> None:
        """Room of zeros: what lies behind the committed rows may be read with weight zero."""
        depth, blocks = self._shape.depth, -(-capacity // BLOCK)
        pair = self._pair
        heads = (self._layers, self._shape.kv_heads)
        last = pair * BLOCK
        keys = zeros((*heads, blocks, depth // pair, last), self._dtype)
        values = zeros((*heads, depth // BLOCK, blocks * BLOCK // pair, last), self._dtype)
        self.capacity = blocks * BLOCK
        columns = blocks * BLOCK if self._has_scales else 0
        scales = zeros((*heads, columns), np.float32), zeros((*heads, columns), np.float32)
        self.kept = Kept(keys, values, *scales)
        self.thread_states: tuple[ThreadState, ...] = ()
        """What computes with this cache, and the arrays of the model's that it was made for."""
        self.thread_states_made_for: tuple[Any, ...] = ()
        self.words = _words(keys), _words(values)

    def _move(self, rows: list[int], start: int) -> None:
        move(self.kept, np.array(rows, np.int64), start)


def _words(array: NDArray[Any]) -> NDArray[Any]:
    return array.view(np.int32) if array.dtype == np.int16 else array
