"""Keys and values of the rows that a model has seen, written in place and never copied whole."""

from __future__ import annotations

import torch
from torch import Tensor

from accel.models.row_cache import RowCache
from accel.models.torch_forward import by_torch


class TorchKVCache(RowCache):
    """Preallocated rows of keys and values.

    ``buffers`` are tensors whose next to last dimension is the row. The first ``length`` rows are
    the committed text; a forward writes its own rows after them, and ``commit`` moves the accepted
    ones into place. Room grows by half when ``reserve`` asks for more, which is the only copy.
    """

    def __init__(self, capacity: int) -> None:
        self.length = 0
        self.capacity = capacity
        self.buffers: list[Tensor] = []

    @property
    def nbytes(self) -> int:
        return sum(buffer.numel() * buffer.element_size() for buffer in self.buffers)

    @by_torch
    def reserve(self, rows: int) -> None:
        needed = self.length + rows
        if needed <= self.capacity:
            return
        self.capacity = max(needed, self.capacity + self.capacity // 2)
        for index, buffer in enumerate(self.buffers):
            self.buffers[index] = self._grown(buffer)

    @torch.inference_mode()
    def pretend(self, length: int) -> None:
        assert not self.length, "a cache that holds text need not pretend"
        self.reserve(length)
        for buffer in self.buffers:
            buffer.zero_()
        self.length = length

    @torch.inference_mode()
    def _move(self, rows: list[int], start: int) -> None:
        for buffer in self.buffers:
            moved = buffer.index_select(-2, torch.tensor(rows, device=buffer.device))
            buffer.narrow(-2, start, len(rows)).copy_(moved)

    @torch.inference_mode()
    def _grown(self, buffer: Tensor) -> Tensor:
        # Zeros: rows after the committed ones may be read under a mask, and NaN would pass it.
        grown = buffer.new_zeros((*buffer.shape[:-2], self.capacity, buffer.shape[-1]))
        grown.narrow(-2, 0, self.length).copy_(buffer.narrow(-2, 0, self.length))
        return grown
