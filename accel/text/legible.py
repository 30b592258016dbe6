"""Characters that a model reads and writes unchanged."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from accel.text.tokenizer import Tokenizer


def legible_to(tokenizer: Tokenizer) -> Callable[[str], bool]:
    """Return a check for texts that the vocabulary carries unchanged: some lose or normalise
    characters."""

    @cache
    def legible(text: str) -> bool:
        return text.isascii() or tokenizer.decode(tokenizer.encode(text)) == text

    return legible
