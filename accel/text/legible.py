"""Which characters a model reads and writes as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from accel.text.special_tokens import edit_format
from accel.text.tokenizer import Tokenizer


def legible_to(tokenizer: Tokenizer) -> Callable[[str], bool]:
    """Whether a model can be trusted to read and to copy a piece of text.

    A vocabulary that loses or normalises characters cannot carry them. A vocabulary with Redraft's
    own edit tokens spells every text in bytes, but its small models learnt few of the characters
    that are more than one token: they drop them or write others.
    """
    small = edit_format(tokenizer) is not None

    @cache
    def legible(text: str) -> bool:
        if text.isascii():
            return True
        if small:
            return all(len(tokenizer.encode(character)) == 1 for character in text)
        return tokenizer.decode(tokenizer.encode(text)) == text

    return legible


def wants_spaces(tokenizer: Tokenizer) -> bool:
    """Whether the model learnt code that is indented by spaces only."""
    return edit_format(tokenizer) is not None
