"""The head of a speculator: columns of the tokens that a text is likely to go on with.

A text goes on with tokens that it holds, or with frequent ones: these few hundred of a vocabulary
are all that is guessed. Ninety-seven of a hundred tokens that the embedded model writes are among
them, and its whole head would take twenty times as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel import speculator
from accel.draft_tree import TokenArray
from accel.int8 import Int8
from accel.matmul import BLOCK
from accel.memory import copied, zeros
from accel.sources.compiled import compiled_with
from accel.speculator import Floats, Speculator

MOST_COLUMNS = 64 * BLOCK
"""Tokens that the head covers at most. Of a text with more, the first."""


class Head(NamedTuple):
    """Tokens that can be guessed, and their columns.

    slots: int32 [vocabulary], the column of a token, -1 for none; tokens: int32 [columns]; columns:
    theirs; bias: float32 [columns]; counts: int64 [2], how many, and up to where
    the text's tokens are among them.
    """

    slots: TokenArray
    tokens: TokenArray
    columns: Int8
    bias: Floats
    counts: NDArray[np.int64]

    @classmethod
    def room(cls, tables: Speculator) -> Head:
        """No tokens yet."""
        return cls(
            np.full(len(tables.bias), -1, np.int32),
            np.empty(MOST_COLUMNS, np.int32),
            Int8(
                zeros((MOST_COLUMNS // BLOCK, tables.words.shape[1], BLOCK), np.int32),
                zeros((MOST_COLUMNS,), np.float32),
            ),
            copied(np.full(MOST_COLUMNS, -np.inf, np.float32)),
            np.zeros(2, np.int64),
        )


@compiled_with(speculator, borrows=True)
def _cover(tables: Speculator, head: Head, token: int) -> None:
    """Give a token a column where there is room."""
    count = head.counts[0]
    if token < 0 or token >= len(head.slots) or head.slots[token] >= 0 or count == MOST_COLUMNS:
        return
    head.slots[token], head.tokens[count] = count, token
    block, column = count // BLOCK, count % BLOCK
    for word in range(tables.words.shape[1]):
        head.columns.words[block, word, column] = tables.words[token, word]
    head.columns.scales[count] = tables.word_scales[token]
    head.bias[count] = tables.bias[token]
    head.counts[0] = count + 1


@compiled_with(speculator, borrows=True)
def forget(tables: Speculator, head: Head) -> None:
    """Cover the frequent tokens alone."""
    for column in range(head.counts[0]):
        head.slots[head.tokens[column]] = -1
        head.bias[column] = -np.inf
    head.counts[:] = 0
    for token in tables.frequent:
        _cover(tables, head, token)


@compiled_with(speculator, borrows=True)
def cover(tables: Speculator, head: Head, text: TokenArray, stop: int) -> None:
    """Cover the text's tokens up to ``stop``, too."""
    for place in range(head.counts[1], stop):
        _cover(tables, head, text[place])
    head.counts[1] = stop


__all__ = ["MOST_COLUMNS", "Head", "cover", "forget"]
