"""Logits that NumPy holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


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
