"""A line of text with a state that runs over it, of a recurrent model or a hybrid.

Of some families the library can take a few rows back, once, before the next forward: enough to
verify a chain, whose rejected rows come last. Of others nothing can be taken back, and a copy of
the state for each forward costs more than a chain saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from accel.models.llama_cpp.context import Context, Placed


class StateLost(Exception):
    """A state that ran on over rows that cannot be taken back: the text is to be computed anew."""


class LineContext(Context):
    """See the module."""

    sequences: ClassVar[int] = 1
    earlier_states: ClassVar[int] = 7
    """Each takes as much memory as the state itself."""
    _behind = 0
    """Rows of the last forward, as long as none is committed."""
    _rewinds_now = 0
    """Rows that can be taken back before the next forward."""

    def _open(self, capacity: int) -> None:
        super()._open(capacity)
        self._rewinds_now = 0

    def _place(self, parents: NDArray[np.int32], meant: int) -> list[Placed]:
        assert (parents[:meant] == np.arange(-1, meant - 1)).all(), "a chain"
        if self._behind:
            self._forget_forward()
        self._behind = len(parents)
        return [((0,), self.length + row) for row in range(len(parents))]

    def _decode(
        self, tokens: NDArray[np.int32], placed: list[Placed], rows: range, first: int
    ) -> int:
        self._rewinds_now = min(len(rows) - 1, self.rewinds)
        return super()._decode(tokens, placed, rows, first)

    def commit(self, path: Sequence[int]) -> None:
        """See ``base.Cache.commit``. Raises StateLost."""
        keep = self.length + len(path)
        if not self._rewind(keep):
            self._forget_forward()
        self.length, self._behind = keep, 0

    def _trim(self, length: int) -> bool:
        can_be = self._rewind(length)
        self._behind = 0
        return can_be

    def _forget_all(self) -> None:
        super()._forget_all()
        self._behind = 0

    def _rewind(self, length: int) -> bool:
        rows_back = self.length + self._behind - length
        if not rows_back:
            return True
        if rows_back > self._rewinds_now or not self._remove(0, length):
            return False
        # The library takes back once between two forwards.
        self._rewinds_now = 0
        return True

    def _forget_forward(self) -> None:
        """Raise StateLost: there is no copy of the state before a forward."""
        self._forget_all()
        self._behind = 0
        raise StateLost("llama.cpp cannot take back what it computed; the text is computed anew")
