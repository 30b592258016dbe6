"""Logits that NumPy holds, and those of a forward that verified its draft tree itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray


class ArrayLogits:
    """Logits float32 [rows, vocabulary] in memory. See ``base.Logits``."""

    def __init__(self, numbers: NDArray[np.float32]) -> None:
        self._numbers = numbers

    def argmax(self) -> Sequence[int]:
        """Of equals the first."""
        tokens: list[int] = self._numbers.argmax(-1).tolist()
        return tokens

    def row(self, index: int) -> NDArray[np.float32]:
        """Return a view."""
        row: NDArray[np.float32] = self._numbers[index]
        return row


class VerifiedLogits:
    """The tokens of a greedy verification, and logits that are computed when they are read. See
    ``base.Logits``."""

    def __init__(
        self,
        path: list[int],
        tokens: TokenArray,
        rows: int,
        numbers: Callable[[], NDArray[np.float32]],
    ) -> None:
        """path, tokens: those of ``verify_tree`` with the argmax of every row, int32; rows: of the
        batch; ``numbers`` computes the logits of all rows."""
        self.path, self.tokens = path, tokens
        self._rows, self._make_numbers = rows, numbers
        self._numbers: NDArray[np.float32] | None = None

    def argmax(self) -> Sequence[int]:
        """Return a row that verification did not visit is computed when it is read."""
        chosen = [-1] * self._rows
        for node, token in zip([-1, *self.path], self.tokens.tolist(), strict=True):
            chosen[node + 1] = token
        return _ChosenTokens(chosen, self)

    def row(self, index: int) -> NDArray[np.float32]:
        """Return the first call computes all rows."""
        if self._numbers is None:
            self._numbers = self._make_numbers()
        row: NDArray[np.float32] = self._numbers[index]
        return row


class _ChosenTokens(Sequence[int]):
    """The argmax of every row, see ``VerifiedLogits.argmax``."""

    def __init__(self, chosen: list[int], logits: VerifiedLogits) -> None:
        """chosen: of each row the argmax or -1."""
        self._chosen, self._logits = chosen, logits

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        token = self._chosen[index]
        return token if token >= 0 else int(self._logits.row(index).argmax())
