"""Which suggestions are offered to somebody who did not ask for them, as far as text alone tells:
none where nothing is missing, and none that says what is there already."""

from __future__ import annotations

import re

from lsp_server.editor.completion.request import CompletionRequest

NOTHING_MISSING = "the line goes on after the cursor: nothing is suggested there unless asked for"

_CLOSES = re.compile(r"\s*[)>}\]\"'`]*\s*[:{;,]?\s*")
"""A rest of a line that closes what is open."""
_OPENS = ("(", "[", "{", ":", ",", "=", "\\", "=>", "->")
"""What a line ends with that goes on below."""


def is_place(ask: CompletionRequest) -> bool:
    """Whether something may be missing at the cursor: nothing is after it in its line, or what
    closes what is open."""
    return _CLOSES.fullmatch(ask.line_after) is not None


def offered(text: str, ask: CompletionRequest) -> str:
    """The text, or nothing where it is no more than a sign, begins a line below one that is whole,
    or is the rest of the line once more, but for a comma or semicolon."""
    bare, line = _bare(text), ask.line_before.rstrip()
    is_sign = len(text.strip()) < 2 and not bare.isalnum()
    is_below = line and text.lstrip(" \t")[:1] in "\r\n" and not line.endswith(_OPENS)
    return "" if not bare or is_sign or is_below or bare == _bare(ask.line_after) else text


def _bare(text: str) -> str:
    return text.strip(",; \t\r\n")
