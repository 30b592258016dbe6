"""A cache with a row for each token."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from accel.models.base import Cache


class RowCache(Cache):
    """Rows of committed text, after which a forward writes its own; ``commit`` moves the accepted
    ones into place."""

    def commit(self, path: Sequence[int]) -> None:
        start, count = self.length, len(path)
        prefix = count
        if count and path[-1] != count - 1:
            prefix = next(i for i, row in enumerate(path) if row != i)
        if prefix < count:
            self._move([start + row for row in path[prefix:]], start + prefix)
        self.length = start + count

    def trim(self, length: int) -> None:
        assert length <= self.length, "a cache cannot be trimmed to more than it holds"
        self.length = length

    @abstractmethod
    def _move(self, rows: list[int], start: int) -> None:
        """Copy rows, in ascending order, to those from ``start`` on."""
