"""Finds characters that a reader does not see and that make text read otherwise than it runs
("Trojan Source", CVE-2021-42574; zero-width ones)."""

from __future__ import annotations

import re

_HIDDEN = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def first_hidden(text: str, shown_before: str) -> int | None:
    """Index of the first hidden character that does not occur in ``shown_before``."""
    if text.isascii():
        return None
    for match in _HIDDEN.finditer(text):
        if match.group() not in shown_before:
            return match.start()
    return None


def hidden_warning(old: str, new: str) -> str:
    """Return a line for the user when ``new`` adds hidden characters; empty otherwise."""
    offset = first_hidden(new, old)
    if offset is None:
        return ""
    line = new.count("\n", 0, offset) + 1
    return f"line {line} of the new text holds the hidden character U+{ord(new[offset]):04X}"
