"""Finds characters that a reader does not see and that make text read otherwise than it runs
("Trojan Source", CVE-2021-42574; zero-width ones)."""

from __future__ import annotations

import re

_HIDDEN = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def first_hidden(text: str, known: str) -> int | None:
    """Index of the first hidden character that does not occur in ``known``."""
    if text.isascii():
        return None
    for found in _HIDDEN.finditer(text):
        if found.group() not in known:
            return found.start()
    return None


def hidden_warning(old: str, new: str) -> str:
    """A line for the user when ``new`` adds hidden characters; empty otherwise."""
    place = first_hidden(new, old)
    if place is None:
        return ""
    line = new.count("\n", 0, place) + 1
    return f"line {line} of the new text holds the hidden character U+{ord(new[place]):04X}"
