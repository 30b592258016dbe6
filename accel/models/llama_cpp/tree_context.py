"""A line of text whose sequences are the leaves of a draft tree.

A node belongs to the leaves below it; accepting a path renames sequences and moves no row. Rejected
rows go to a sequence of their own: were they freed, later rows would fill their places, and sums
would be made in another order. Where their places are needed, the text is moved together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from accel.files.model_options import ModelOptions
from accel.models.llama_cpp.context import SLACK, Context, Placed
from accel.models.llama_cpp.library import Library

LEAVES = 8
TILED_ROWS = 64
"""From so many rows on, attention adds values by tiles of places: where the text lies counts."""
_REJECTED, _PADDING = LEAVES, LEAVES + 1
"""Sequences beside those of the leaves."""


class TreeContext(Context):
    """See the module."""

    sequences: ClassVar[int] = LEAVES + 2

    def __init__(self, library: Library, model: int, capacity: int, options: ModelOptions) -> None:
        super().__init__(library, model, capacity, options)
        self._last: list[list[int]] = []
        """Of every row of the last forward that means something: its leaves."""
        self._rejected = self._first_rejected = 0
        """Rows that hold places, and the length of the text that the first of them came after."""

    def _hold(self, state: Any) -> None:
        super()._hold(state)
        self._rejected = 0
        for leaf in range(1, LEAVES):
            self._library.llama_memory_seq_cp(self._memory, 0, leaf, -1, -1)

    def _place(self, parents: NDArray[np.int32], meant: int) -> list[Placed]:
        if self._last:
            self._forget_forward()
        fits = self.length + self._rejected + len(parents) <= self.capacity + SLACK
        if not fits or len(parents) >= TILED_ROWS:
            self._move_together()
        self._last, depths = _leaves(parents[:meant]), _depths(parents[:meant])
        placed: list[Placed] = [
            (leaves, self.length + depth) for leaves, depth in zip(self._last, depths, strict=True)
        ]
        return placed + [([_PADDING], row) for row in range(len(parents) - meant)]

    def _decode(
        self, tokens: NDArray[np.int32], placed: list[Placed], rows: range, first: int
    ) -> int:
        code = super()._decode(tokens, placed, rows, first)
        if rows[-1] >= len(self._last):
            self._remove(_PADDING, 0)
        return code

    def commit(self, path: Sequence[int]) -> None:
        past, rows = self.length, self._last
        keep = past + len(path)
        if len(path) < len(rows):
            shared = [sum(leaf in rows[row] for row in path) for leaf in range(LEAVES)]
            for leaf in range(LEAVES):
                self._reject(leaf, past + shared[leaf])
            source = shared.index(len(path))
            for leaf in range(LEAVES):
                if shared[leaf] < len(path):
                    positions = past + shared[leaf]
                    self._library.llama_memory_seq_cp(self._memory, source, leaf, positions, keep)
            if not self._rejected:
                self._first_rejected = past
            self._rejected += len(rows) - len(path)
        self.length, self._last = keep, []

    def _reject(self, leaf: int, first: int) -> None:
        """Take rows from a leaf, which keep their places."""
        self._library.llama_memory_seq_cp(self._memory, leaf, _REJECTED, first, -1)
        self._remove(leaf, first)

    def _trim(self, length: int) -> bool:
        self._last = []
        if self._rejected and length <= self._first_rejected:
            # All of the text that is left comes before them.
            self._remove(_REJECTED, -1)
            self._rejected = 0
        return all(self._remove(leaf, length) for leaf in range(LEAVES))

    def _forget_all(self) -> None:
        super()._forget_all()
        self._last, self._rejected = [], 0

    def _forget_forward(self) -> None:
        for leaf in range(LEAVES):
            self._remove(leaf, self.length)
        self._last = []

    def _move_together(self) -> None:
        if self._rejected:
            state = self._text()
            self._library.llama_memory_clear(self._memory, False)
            self._hold(state)


def _leaves(parents: NDArray[np.int32]) -> list[list[int]]:
    """Return the leaves below every row, ascending. The first leaf has the numbers that are
    left."""
    count = len(parents)
    leaves: list[list[int]] = [[] for _ in range(count)]
    inner = set(parents.tolist())
    ends = [row for row in range(count) if row not in inner]
    assert len(ends) <= LEAVES, "a tree with more leaves than there are sequences"
    for number, end in enumerate(ends):
        own = [number, *(range(len(ends), LEAVES) if not number else ())]
        row = end
        while row >= 0:
            leaves[row] += own
            row = int(parents[row])
    return [sorted(each) for each in leaves]


def _depths(parents: NDArray[np.int32]) -> list[int]:
    depths: list[int] = []
    for parent in parents.tolist():
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
    return depths
