"""Rules, by text alone, for suggestions that the user did not ask for: none where nothing is
missing, and none that repeats present text."""

from __future__ import annotations

import re

from lsp_server.editor.completion.request import CompletionRequest

NOTHING_MISSING = "the line goes on after the cursor: nothing is suggested there unless asked for"

_CLOSES = re.compile(r"\s*[)>}\]\"'`]*\s*[:{;,]?\s*")
"""A rest of a line that closes what is open."""
_OPENS = ("(", "[", "{", ":", ",", "=", "\\", "=>", "->")
"""What a line ends with that goes on below."""


def is_place(ask: CompletionRequest) -> bool:
    """Return True if text may be missing at the cursor: nothing follows in its line but closing
    brackets and quotes."""
    return _CLOSES.fullmatch(ask.line_after) is not None


def offered(text: str, ask: CompletionRequest) -> str:
    """Return the text, or nothing where it is no more than a sign, begins a line below one that is
    whole, or is the rest of the line once more, but for a comma or semicolon."""
    bare, line = _bare(text), ask.line_before.rstrip()
    is_sign = len(text.strip()) < 2 and not bare.isalnum()
    is_below = line and text.lstrip(" \t")[:1] in "\r\n" and not line.endswith(_OPENS)
    return "" if not bare or is_sign or is_below or bare == _bare(ask.line_after) else text


def _bare(text: str) -> str:
    return text.strip(",; \t\r\n")
