"""Which characters a model reads and writes as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from accel.text.tokenizer import Tokenizer


def legible_to(tokenizer: Tokenizer) -> Callable[[str], bool]:
    """Whether a vocabulary carries a piece of text: some lose or normalise characters."""

    @cache
    def legible(text: str) -> bool:
        return text.isascii() or tokenizer.decode(tokenizer.encode(text)) == text

    return legible
