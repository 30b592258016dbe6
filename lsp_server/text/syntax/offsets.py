"""Places in a text as the parser counts them (bytes of UTF-16) and as Python does."""

from __future__ import annotations

import re
from bisect import bisect_left

_LONE_RETURN = re.compile(r"\r(?!\n)")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


class Offsets:
    """Converts between indices of a text and bytes of its UTF-16 form, either way in O(log n). Only
    characters beyond U+FFFF take two units there; most texts have none."""

    def __init__(self, text: str) -> None:
        self._astral = [] if text.isascii() else [match.start() for match in _ASTRAL.finditer(text)]
        self._astral_units = [offset + before for before, offset in enumerate(self._astral)]

    def byte(self, index: int) -> int:
        """Return the byte at which the character ``index`` starts."""
        return 2 * (index + bisect_left(self._astral, index))

    def index(self, byte: int) -> int:
        """Return the character that holds ``byte``."""
        if not self._astral:
            return byte // 2
        units = byte // 2
        return units - bisect_left(self._astral_units, units)


def encoded(text: str) -> bytes:
    """Return a text as the parser reads it; halves of surrogate pairs pass, NUL is no end. A lone
    carriage return, which many grammars do not know, ends a line."""
    if "\r" in text:
        text = _LONE_RETURN.sub("\n", text)
    return text.replace("\0", " ").encode("utf-16-le", "surrogatepass")


def end_point(text: str) -> tuple[int, int]:
    """Return where a text ends as the parser counts: the row, and the bytes of that."""
    text = _LONE_RETURN.sub("\n", text) if "\r" in text else text
    return text.count("\n"), len(encoded(text[text.rfind("\n") + 1 :]))
