"""Where markers stand in the prompts of models with edit tokens.

Where a prompt marks the places of an edit, its text is cut there before it is tokenised. So a name
is spelt in the same tokens at each of its places, whatever stands before it, and as in the
instruction: what follows a mark can be copied token by token.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Sequence


def cut(text: str, places: Sequence[tuple[int, int]]) -> list[str]:
    """``text`` outside and inside of the places, by turns, outside first and last.

    places: characters, in their order, not overlapping.
    """
    borders = [0, *(border for place in places for border in place), len(text)]
    assert borders == sorted(borders), "places overlap"
    return [text[a:b] for a, b in itertools.pairwise(borders)]


def cut_at(text: str, values: Sequence[str]) -> list[str]:
    """What is put in, cut around whole words that fill slots of the instruction."""
    whole = [
        ("" if not value[0].isidentifier() else r"(?<!\w)")
        + re.escape(value)
        + (r"(?!\w)" if value[-1].isalnum() else "")
        for value in sorted(values, key=len, reverse=True)
        if value
    ]
    return [piece for piece in re.split(f"({'|'.join(whole)})", text) if piece] if whole else [text]


NEAR_HOLE = 4
"""Tokens that stand between the middle token and the hole at least, where the text has them."""


def middle_place(prefix: Sequence[int], newlines: Container[int]) -> int:
    """How many tokens of the prefix stand before the middle token: those before the line of the
    hole, or, where fewer than ``NEAR_HOLE`` tokens of that line are there, before the line above.

    newlines: tokens that begin with a line break. The place stays while a line is typed, so that
    the KV cache can be reused.
    """
    for place in range(len(prefix) - NEAR_HOLE, 0, -1):
        if prefix[place] in newlines:
            return place
    return 0
