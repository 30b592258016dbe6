"""The dynamic index: prompt, output so far, and the text after the cursor.

Every position is linked to the previous one with the same token, so a lookup walks just the
occurrences of the last token, newest first, and extends each backwards. Growth costs one link
per token; nothing is ever removed while a request lasts.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import Source, TokenArray
from accel.sources.protocol import Continuations

SEPARATOR = -1
"""Stands between the text after the cursor and the prompt: no match crosses it."""

MAX_VISITED = 4096
"""Occurrences looked at in one lookup, newest first: bounds the time in very long contexts."""


@njit(nogil=True, cache=True)
def _link(
    text: TokenArray, previous: TokenArray, newest: TokenArray, start: int, stop: int
) -> None:
    """Link positions ``start`` to ``stop`` to the last earlier position of the same token."""
    for position in range(start, stop):
        token = text[position]
        if token >= 0:
            previous[position] = newest[token]
            newest[token] = position


@njit(nogil=True, cache=True)
def _lookup(
    text: TokenArray,
    previous: TokenArray,
    stop: int,
    max_match: int,
    limit: int,
    depth: int,
) -> tuple[TokenArray, TokenArray, TokenArray]:
    """Rows, match lengths and start positions of the continuations of ``text[:stop]``."""
    found = np.empty(MAX_VISITED, np.int32)
    lengths = np.empty(MAX_VISITED, np.int32)
    count = 0
    per_length = np.zeros(max_match + 1, np.int32)
    position = previous[stop - 1] if stop else -1
    while position >= 0 and count < MAX_VISITED:
        length = 1
        while (
            length < max_match
            and position - length >= 0
            and text[position - length] == text[stop - 1 - length]
            and text[position - length] >= 0
        ):
            length += 1
        if text[position + 1] >= 0:
            found[count] = position + 1
            lengths[count] = length
            per_length[length] += 1
            count += 1
        position = previous[position]
    # Counting sort: longer matches first, newer first among equals.
    place = np.empty(max_match + 1, np.int32)
    before = 0
    for length in range(max_match, 0, -1):
        place[length] = before
        before += per_length[length]
    kept = min(count, limit)
    rows = np.full((kept, depth), -1, np.int32)
    row_lengths = np.empty(kept, np.int32)
    starts = np.empty(kept, np.int32)
    for item in range(count):
        length = lengths[item]
        row = place[length]
        place[length] += 1
        if row < kept:
            row_lengths[row] = length
            starts[row] = found[item]
            for column in range(min(depth, stop - found[item])):
                token = text[found[item] + column]
                if token < 0:
                    break
                rows[row, column] = token
    return rows, row_lengths, starts


class PromptIndex:
    """Continuations of the context within itself and within the text after the cursor."""

    def __init__(self) -> None:
        self._text = np.empty(0, np.int32)
        self._previous = np.empty(0, np.int32)
        self._newest = np.empty(0, np.int32)
        self._stop = 0
        self._prompt_start = 0

    def begin(self, prompt: TokenArray, suffix: TokenArray) -> None:
        """Forget everything; index ``suffix`` and ``prompt`` (both int32)."""
        self._newest.fill(-1)
        self._stop = 0
        self._append(np.asarray(suffix, np.int32))
        if len(suffix):
            self._append(np.array([SEPARATOR], np.int32))
        self._prompt_start = self._stop
        self._append(np.asarray(prompt, np.int32))

    def extend(self, tokens: TokenArray) -> None:
        """The context grew by ``tokens`` (int32)."""
        self._append(np.asarray(tokens, np.int32))

    @property
    def context(self) -> TokenArray:
        """Prompt and output so far, int32 [m]. A view, valid until the next ``extend``."""
        return self._text[self._prompt_start : self._stop]

    def lookup(self, *, max_match: int, limit: int, depth: int) -> Continuations:
        """Continuations of every match length, longer first, newer first among equals.

        At most ``limit`` rows; ``files`` holds how far back in the context a row starts, in
        tokens, and -1 for rows of the text after the cursor.
        """
        if self._stop == self._prompt_start:
            return Continuations.empty(depth)
        rows, lengths, starts = _lookup(
            self._text, self._previous, self._stop, max_match, limit, depth
        )
        in_prompt = starts >= self._prompt_start
        return Continuations(
            rows,
            lengths,
            np.ones(len(rows), np.float32),
            np.where(in_prompt, np.int8(Source.PROMPT), np.int8(Source.SUFFIX)),
            np.where(in_prompt, self._stop - starts, -1).astype(np.int32),
        )

    def _append(self, tokens: TokenArray) -> None:
        start, stop = self._stop, self._stop + len(tokens)
        if stop > len(self._text):
            self._text = _grown(self._text, 2 * stop + 1024)
            self._previous = _grown(self._previous, len(self._text))
        largest = int(tokens.max(initial=-1))
        if largest >= len(self._newest):
            self._newest = _grown(self._newest, 2 * largest + 1024)
        self._text[start:stop] = tokens
        self._previous[start:stop] = -1
        _link(self._text, self._previous, self._newest, start, stop)
        self._stop = stop


def _grown(array: TokenArray, size: int) -> NDArray[np.int32]:
    """``array`` with room for ``size`` items, new ones -1."""
    grown = np.full(size, -1, np.int32)
    grown[: len(array)] = array
    return grown


def warm_up() -> None:
    """Compile (or load the compiled form of) the index."""
    index = PromptIndex()
    index.begin(np.array([1, 2, 1], np.int32), np.empty(0, np.int32))
    index.lookup(max_match=4, limit=4, depth=4)
