"""Recycled logits: what the model once found likely after a token (Token Recycling, Luo 2024).

Every verified row comes with logits, most of them for tokens that were never emitted. The table
keeps the few most likely next tokens of each token as last seen; where nothing else is known,
they make drafts at no cost.
"""

from __future__ import annotations

import numpy as np

from accel.draft_tree import Source, TokenArray
from accel.sources.protocol import Continuations

WIDTH = 4
"""Next tokens kept for each token."""


class RecyclingTable:
    """The last ``WIDTH`` most likely next tokens of every token seen."""

    def __init__(self, vocabulary_size: int) -> None:
        self._next = np.full((vocabulary_size, WIDTH), -1, np.int32)

    def learn(self, tokens: TokenArray, likely: TokenArray) -> None:
        """After ``tokens`` (int32 [n]) the model found ``likely`` (int32 [n, >= WIDTH]) likely,
        best first. Of equal tokens the last one counts."""
        self._next[tokens] = likely[:, :WIDTH]

    def rows(self, last: int, depth: int) -> Continuations:
        """Rows of ``depth`` tokens that begin with what is likely after ``last`` and go on with
        what is likeliest after each token."""
        firsts = self._next[last] if 0 <= last < len(self._next) else self._next[:0, 0]
        firsts = firsts[firsts >= 0]
        rows = np.full((len(firsts), depth), -1, np.int32)
        current = firsts
        for column in range(depth):
            rows[:, column] = current
            current = np.where(current >= 0, self._next[current, 0], -1)
        return Continuations(
            rows,
            np.ones(len(rows), np.int32),
            np.ones(len(rows), np.float32),
            np.full(len(rows), Source.RECYCLED, np.int8),
            np.full(len(rows), -1, np.int32),
        )
