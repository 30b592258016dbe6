"""Finds which of some short words occur in a text, in one pass over it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from repo_index.compiled import compiled


@compiled()
def _find(
    text: NDArray[np.uint8],
    folded: NDArray[np.uint8],
    first: NDArray[np.int16],
    following: NDArray[np.int16],
    letters: NDArray[np.uint8],
    lengths: NDArray[np.int64],
    occurs: NDArray[np.bool_],
) -> None:
    """first: int16 [65536], the first mark that begins with a pair of letters, -1 for none;
    following: int16 [marks], the next one that begins so; letters: uint8 [marks, longest]."""
    if not len(text):
        return
    left = folded[text[0]]
    for i in range(1, len(text)):
        right = folded[text[i]]
        mark = first[(np.int64(left) << 8) | right]
        while mark >= 0:
            length = lengths[mark]
            if not occurs[mark] and i - 1 + length <= len(text):
                second = 2
                while second < length and folded[text[i - 1 + second]] == letters[mark, second]:
                    second += 1
                occurs[mark] = second == length
            mark = following[mark]
        left = right


class Marks:
    """Words of two or more ASCII characters, looked for without regard to case."""

    def __init__(self, marks: Sequence[str]) -> None:
        """``marks``: in the order in which they are to be given."""
        assert all(len(mark) >= 2 and mark.isascii() for mark in marks)
        self._marks = list(marks)
        self._folded = np.arange(256, dtype=np.uint8)
        self._folded[ord("A") : ord("Z") + 1] += 32
        self._first = np.full(1 << 16, -1, np.int16)
        self._following = np.full(len(marks), -1, np.int16)
        self._lengths = np.array([len(mark) for mark in marks], np.int64)
        self._letters = np.zeros((len(marks), max(map(len, marks))), np.uint8)
        for index, mark in enumerate(marks):
            letters = self._folded[np.frombuffer(mark.encode(), np.uint8)]
            self._letters[index, : len(mark)] = letters
            pair = int(letters[0]) << 8 | int(letters[1])
            self._following[index] = self._first[pair]
            self._first[pair] = index

    def found_in(self, text: str) -> list[str]:
        """Return those that occur in ``text`` in any case of their letters."""
        occurs = np.zeros(len(self._marks), np.bool_)
        data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        _find(
            data, self._folded, self._first, self._following, self._letters, self._lengths, occurs
        )
        return [self._marks[index] for index in np.flatnonzero(occurs)]
