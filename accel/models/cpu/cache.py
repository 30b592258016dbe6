"""The KV cache of the compiled forward, in the layout that its products need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.models.base import RowCache
from accel.models.cpu.attention import KVCache, Shape, move
from accel.models.cpu.matmul import BLOCK
from accel.native.aligned_memory import zeros


class CompiledCache(RowCache):
    """Keys and values in blocks, see ``attention.KVCache``."""

    is_cut = True

    def __init__(self, layers: int, shape: Shape, capacity: int, dtype: Any) -> None:
        self._layers, self._shape, self._dtype = layers, shape, np.dtype(dtype)
        self._has_scales = self._dtype == np.int8
        self._make(capacity)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.kv)

    def reserve(self, rows: int) -> None:
        needed = self.length + rows
        if needed <= self.capacity:
            return
        old = self.kv
        blocks, positions = old.keys.shape[2], old.values.shape[3]
        self._make(max(needed, self.capacity + self.capacity // 2))
        self.kv.keys[:, :, :blocks] = old.keys
        self.kv.values[:, :, :, :positions] = old.values
        for scales, kv in zip(self.kv[2:], old[2:], strict=True):
            scales[:, :, : kv.shape[2]] = kv

    def state(self) -> list[NDArray[Any]]:
        """Return the blocks in use, in the order of ``_committed``."""
        return self._committed(self.length)

    def restore(self, state: list[NDArray[Any]], length: int) -> None:
        self.length = 0
        self.reserve(length)
        own = self._committed(length)
        if [(array.dtype, array.shape) for array in state] != [
            (array.dtype, array.shape) for array in own
        ]:
            raise ValueError("a KV cache of another shape")
        for target, stored in zip(own, state, strict=True):
            target[...] = stored
        self.length = length

    def rows(self, start: int, end: int) -> list[NDArray[Any]]:
        keys = self.kv.keys[:, :, start // BLOCK : end // BLOCK]
        views = [keys, self.kv.values[:, :, :, start:end]]
        return views + [array[:, :, start:end] for array in self.kv[2:]] * self._has_scales

    def append_rows(self, rows: list[NDArray[Any]]) -> None:
        end = self.length + rows[1].shape[3]
        for array, stored in zip(self.rows(self.length, end), rows, strict=True):
            array[...] = stored
        self.length = end

    def _committed(self, length: int) -> list[NDArray[Any]]:
        """Views of the arrays up to ``length`` rows."""
        blocks = -(-length // BLOCK)
        views = [self.kv.keys[:, :, :blocks], self.kv.values[:, :, :, : blocks * BLOCK]]
        scales = [array[:, :, :length] for array in self.kv[2:]]
        return views + scales if self._has_scales else views

    def _make(self, capacity: int) -> None:
        """Allocate zeros: what lies after the committed rows may be read with weight zero."""
        head_dim, blocks = self._shape.head_dim, -(-capacity // BLOCK)
        heads = (self._layers, self._shape.kv_heads)
        keys = zeros((*heads, blocks, head_dim, BLOCK), self._dtype)
        values = zeros((*heads, head_dim // BLOCK, blocks * BLOCK, BLOCK), self._dtype)
        self.capacity = blocks * BLOCK
        columns = blocks * BLOCK if self._has_scales else 0
        scales = zeros((*heads, columns), np.float32), zeros((*heads, columns), np.float32)
        self.kv = KVCache(keys, values, *scales)
        self.addresses = tuple(array.ctypes.data for array in self.kv)
        """Addresses of its arrays in memory."""

    def _move(self, rows: list[int], start: int) -> None:
        move(self.kv, np.array(rows, np.int64), start)
