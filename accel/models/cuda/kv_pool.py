"""One pool of keys and values, owned by a model; the caches of its sessions hold places in it."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accel.models.base import Cache
from accel.models.row_cache import RowCache

PLACES_AT_ONCE = 64
"""A cache takes places in multiples of this."""


class KVPool:
    """Places of one token each. Place 0 is nobody's: rows without meaning are written there.

    ``layers``: for each layer keys and values [places, 2, kv_heads, head_dim], at fixed addresses.
    """

    def __init__(self, shape: tuple[int, int, int], places: int, like: Tensor) -> None:
        """shape: layers, kv_heads, head_dim; ``like`` says number format and device. Raises what
        torch does where the device is full."""
        layers, kv_heads, head_dim = shape
        self.layers = like.new_zeros((layers, places, 2, kv_heads, head_dim)).unbind(0)
        self.token_bytes = 2 * layers * kv_heads * head_dim * like.element_size()
        self.places = places
        self._free = np.arange(places - 1, 0, -1, dtype=np.int32)
        """Its first ``_left`` places are free; the last of them is taken first."""
        self._left = places - 1
        self._returned: deque[NDArray[np.int32]] = deque()
        """Places of caches that are gone, whichever thread let go of them."""

    @property
    def left(self) -> int:
        """Places that nobody holds."""
        while self._returned:
            places = self._returned.popleft()
            self._free[self._left : self._left + len(places)] = places[::-1]
            self._left += len(places)
        return self._left

    def take(self, count: int) -> NDArray[np.int32]:
        """So many places. Raises MemoryError where fewer are left."""
        if count > self.left:
            raise MemoryError(f"{count} tokens do not fit: {self.left} places are left")
        self._left -= count
        return self._free[self._left : self._left + count][::-1].copy()

    @torch.inference_mode()
    def copy(self, source: NDArray[np.int32], target: NDArray[np.int32]) -> None:
        """Have places hold what others hold."""
        device = self.layers[0].device
        rows, to = (torch.from_numpy(places).to(device).long() for places in (source, target))
        for layer in self.layers:
            layer[to] = layer[rows]

    def give_back(self, places: NDArray[np.int32]) -> None:
        """Let others have places. For all threads."""
        self._returned.append(places)


class PooledCache(RowCache):
    """The places of one text, in its order. Accepted rows stay where they were written: to commit
    is to reorder the list."""

    def __init__(self, pool: KVPool) -> None:
        self.pool = pool
        self._held: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
        # The list is referred to from here, too, and outlives this object.
        weakref.finalize(self, _give_back, pool, self._held).atexit = False

    @property
    def places(self) -> NDArray[np.int32]:
        """Of the committed tokens, and after them of rows to come. int32 [n]."""
        return self._held[0]

    @property
    def nbytes(self) -> int:
        return len(self.places) * self.pool.token_bytes

    def reserve(self, rows: int) -> None:
        missing = self.length + rows - len(self.places)
        if missing > 0:
            rounded = -(-missing // PLACES_AT_ONCE) * PLACES_AT_ONCE
            more = self.pool.take(missing if rounded > self.pool.left else rounded)
            self._held[0] = np.concatenate([self.places, more])

    def copy(self, other: Cache) -> bool:
        assert isinstance(other, PooledCache)
        self.length = 0
        self.reserve(other.length)
        self.pool.copy(other.places[: other.length], self.places[: other.length])
        self.length = other.length
        return True

    def pretend(self, length: int) -> None:
        assert not self.length, "a cache that holds text need not pretend"
        self.reserve(length)
        self.length = length

    def _move(self, rows: list[int], start: int) -> None:
        """The places of ``rows`` come first, those between them after."""
        first, last = start, rows[-1] + 1
        window = self.places[first:last]
        chosen = np.zeros(last - first, np.bool_)
        chosen[np.array(rows) - first] = True
        window[:] = np.concatenate([window[chosen], window[~chosen]])


def _give_back(pool: KVPool, held: list[Any]) -> None:
    pool.give_back(held.pop())
