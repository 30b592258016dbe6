"""The dynamic index: prompt, output so far, and the text after the cursor. Every position is linked
to the previous one with the same token."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import Source, TokenArray
from accel.drafting.base import Continuations
from accel.drafting.retrieval.candidate_features import TextView
from accel.native.numba_cache import compiled

SEPARATOR = -1
"""Separates texts that do not belong together: no match crosses it."""

MAX_VISITED = 4096
"""Occurrences looked at in one lookup, newest first: bounds the time in very long contexts."""


@compiled(forceinline=True, borrows=True)
def link(
    tokens: TokenArray,
    previous: TokenArray,
    newest: TokenArray,
    spelt: NDArray[np.int8],
    shapes: NDArray[np.int8],
    added: TokenArray,
    start: int,
) -> None:
    """Write ``added`` from ``start`` on, link each to the last earlier position of the same token,
    and note its shape."""
    for i in range(len(added)):
        position, token = start + i, added[i]
        tokens[position] = token
        previous[position] = -1
        spelt[position] = shapes[token] if 0 <= token < len(shapes) else 0
        if token >= 0:
            previous[position] = newest[token]
            newest[token] = position


@compiled()
def _lookup(
    tokens: TokenArray,
    previous: TokenArray,
    position: int,
    stop: int,
    context: TokenArray,
    max_match: int,
    limit: int,
    depth: int,
) -> tuple[TokenArray, TokenArray, TokenArray]:
    """Return rows, match lengths and start positions of continuations of ``context`` in
    ``tokens[:stop]``; ``position`` is the newest of its last token, -1 without one."""
    visited = np.empty(MAX_VISITED, np.int32)
    lengths = np.empty(MAX_VISITED, np.int32)
    count = 0
    per_length = np.zeros(max_match + 1, np.int32)
    end = len(context)
    while position >= 0 and count < MAX_VISITED:
        if position + 1 < stop and tokens[position + 1] >= 0:
            length = 1
            while (
                length < min(max_match, end)
                and position >= length
                and tokens[position - length] == context[end - 1 - length]
                and tokens[position - length] >= 0
            ):
                length += 1
            visited[count] = position + 1
            lengths[count] = length
            per_length[length] += 1
            count += 1
        position = previous[position]
    # Counting sort: longer matches first, newer first among equals.
    insert_at = np.empty(max_match + 1, np.int32)
    before = 0
    for length in range(max_match, 0, -1):
        insert_at[length] = before
        before += per_length[length]
    row_count = min(count, limit)
    rows = np.full((row_count, depth), -1, np.int32)
    row_lengths = np.empty(row_count, np.int32)
    starts = np.empty(row_count, np.int32)
    for item in range(count):
        length = lengths[item]
        row = insert_at[length]
        insert_at[length] += 1
        if row < row_count:
            row_lengths[row] = length
            starts[row] = visited[item]
            for column in range(min(depth, stop - visited[item])):
                token = tokens[visited[item] + column]
                if token < 0:
                    break
                rows[row, column] = token
    return rows, row_lengths, starts


class PromptIndex:
    """A text that grows, and where its tokens are in it."""

    def __init__(self, shapes: NDArray[np.int8] | None = None) -> None:
        """``shapes``: int8 [vocabulary], those of ``token_shapes``, 0 for tokens beyond."""
        self._shapes = np.zeros(1, np.int8) if shapes is None else shapes
        self._spelt = np.empty(0, np.int8)
        self._tokens = np.empty(0, np.int32)
        self.previous = np.empty(0, np.int32)
        """Position of the earlier occurrence of each position's token, -1 for none."""
        self.newest = np.empty(0, np.int32)
        """Position of each token's last occurrence, -1 for none; another array when it has
        grown."""
        self.start = self.stop = 0
        """Position of the prompt's start among all tokens, and of the output's end."""
        self._prompt_stop = 0

    def begin(self, prompt: TokenArray, suffix: TokenArray) -> None:
        """Forget everything; index ``suffix`` and ``prompt`` (both int32)."""
        self.newest.fill(-1)
        self.stop = 0
        self.extend(suffix)
        if len(suffix):
            self.interrupt()
        self.start = self.stop
        self.extend(prompt)
        self._prompt_stop = self.stop

    def extend(self, tokens: TokenArray) -> None:
        """The context grew by ``tokens`` (int32)."""
        tokens = np.ascontiguousarray(tokens, np.int32)
        stop = self.stop + len(tokens)
        self._reserve(stop)
        largest = int(tokens.max(initial=-1))
        if largest >= len(self.newest):
            self.newest = _grown(self.newest, 2 * largest + 1024)
        own = self._tokens, self.previous, self.newest, self._spelt
        link(*own, self._shapes, tokens, self.stop)
        self.stop = stop

    def interrupt(self) -> None:
        """End the text here: the tokens that follow do not continue it."""
        self.extend(np.array([SEPARATOR], np.int32))

    @property
    def is_empty(self) -> bool:
        """Return whether there is neither prompt nor output."""
        return self.stop == self.start

    @property
    def vocabulary(self) -> int:
        """Token ids are below."""
        return len(self.newest)

    @property
    def context(self) -> TokenArray:
        """Prompt and output so far, int32 [m]. A view, valid until the next ``extend``."""
        return self._tokens[self.start : self.stop]

    @property
    def prompt(self) -> TokenArray:
        """Return the request's prompt, int32. A view, valid until the next ``extend``."""
        return self._tokens[self.start : self._prompt_stop]

    @property
    def output(self) -> TokenArray:
        """Return the tokens added since, int32. A view, valid until the next ``extend``."""
        return self._tokens[self._prompt_stop : self.stop]

    def tokens_with(self, spare: int) -> TokenArray:
        """Return the text's tokens, with ``spare`` places after the end; another array once it has
        grown."""
        self._reserve(self.stop + spare)
        return self._tokens

    def text(self, *, spare: int) -> TextView:
        """Return the index for compiled code, with ``spare`` tokens after the end that it may
        write."""
        self._reserve(self.stop + spare)
        return TextView(
            self._tokens, self.previous, self.newest, self.start, self.stop, self._spelt
        )

    def lookup(
        self, context: TokenArray, *, max_match: int, limit: int, depth: int
    ) -> Continuations:
        """Return continuations of the ends of ``context`` (int32) within the text, at most
        ``limit`` rows: longer matches first, newer first among equals; ``files`` holds -1."""
        last = int(context[-1]) if len(context) else -1
        occurred = 0 <= last < len(self.newest)
        rows, lengths, starts = _lookup(
            self._tokens,
            self.previous,
            int(self.newest[last]) if occurred else -1,
            self.stop,
            np.asarray(context, np.int32),
            max_match,
            limit,
            depth,
        )
        return Continuations(
            rows,
            lengths,
            np.ones(len(rows), np.float32),
            np.where(starts >= self.start, Source.PROMPT, Source.SUFFIX).astype(np.int8),
            np.full(len(rows), -1, np.int32),
        )

    def _reserve(self, size: int) -> None:
        if size > len(self._tokens):
            self._tokens = _grown(self._tokens, 2 * size + 1024)
            self.previous = _grown(self.previous, len(self._tokens))
            self._spelt = _grown(self._spelt, len(self._tokens))


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.full(size, -1, array.dtype)
    grown[: len(array)] = array
    return grown
