"""FastCoder's context- and model-preference-aware cache of token sequences."""

from __future__ import annotations

import numpy as np

from accel.draft_tree import TokenArray

BORDER = -1


class SequenceCache:
    """Sequences that were verified or generated, searched for the longest match of a context.

    Kept as one array with a border after each sequence, so that a search is a few array
    operations. The cache is of use from ``activation_size`` sequences on (paper, section IV-B).
    """

    def __init__(self, activation_size: int) -> None:
        self._activation_size = activation_size
        self._tokens = np.full(1024, BORDER, np.int32)
        self._end = 1
        self._sequences = 0

    def __len__(self) -> int:
        return self._sequences

    @property
    def active(self) -> bool:
        """Whether enough sequences have come together."""
        return self._sequences >= self._activation_size

    def add(self, sequence: TokenArray) -> None:
        """Keep ``sequence`` (int32 [n])."""
        needed = self._end + len(sequence) + 1
        if needed > len(self._tokens):
            grown = np.full(2 * needed, BORDER, np.int32)
            grown[: self._end] = self._tokens[: self._end]
            self._tokens = grown
        self._tokens[self._end : needed - 1] = sequence
        self._tokens[needed - 1] = BORDER
        self._end = needed
        self._sequences += 1

    def search(self, context: TokenArray, longest: int, shortest: int) -> list[TokenArray]:
        """What followed the longest match of the end of ``context``, up to each sequence's end.

        All occurrences of the one longest length between ``longest`` and ``shortest`` that has a
        continuation, in the order in which they were added.
        """
        longest = min(longest, len(context))
        if longest < shortest:
            return []
        tokens = self._tokens[: self._end]
        ends = np.flatnonzero(tokens[:-1] == context[-1])
        ends = ends[tokens[ends + 1] != BORDER]
        length = 1
        while length < longest and len(ends):
            # A border equals no token and stands first of all, so no match crosses one.
            longer = ends[tokens[np.maximum(ends - length, 0)] == context[-length - 1]]
            if not len(longer):
                break
            ends = longer
            length += 1
        if length < shortest or not len(ends):
            return []
        borders = np.flatnonzero(tokens == BORDER)
        stops = borders[np.searchsorted(borders, ends)]
        return [tokens[end + 1 : stop] for end, stop in zip(ends, stops, strict=True)]
