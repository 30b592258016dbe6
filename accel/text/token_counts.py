"""Tells of texts that have far too many tokens before all of them is cut into tokens."""

from __future__ import annotations

from collections.abc import Sequence

from accel.text.tokenizer import Tokenizer

CHARACTERS = 8
"""Of code, that a token hardly ever spells on average."""


def tokens_beyond(tokenizer: Tokenizer, texts: Sequence[str], most: int) -> int:
    """Return a lower bound of the tokens of all texts, once it exceeds ``most`` by their length or
    by a beginning; else 0. None of the texts is empty."""
    length = sum(map(len, texts))
    least = max(len(texts), length // tokenizer.longest_token)
    beginning = CHARACTERS * most
    while least <= most and beginning < length:
        # The last tokens of a beginning may be others in the whole.
        least = len(tokenizer.encode_prompt("".join(texts)[:beginning])) * 7 // 8
        beginning *= 4
    return least if least > most else 0
