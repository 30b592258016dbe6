"""Rules for suggestions that the user did not ask for: none in comments and prose or where nothing
is missing, and none that repeats present text."""

from __future__ import annotations

import re

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.roles import PROSE, Role
from lsp_server.text.syntax.tree import SyntaxTree

NOTHING_MISSING = "the line goes on after the cursor: nothing is suggested there unless asked for"
IN_PROSE = "nothing is suggested in comments and prose unless asked for"

_CLOSES = re.compile(r"\s*[)>}\]\"'`]*\s*[:{;,]?\s*")
"""A rest of a line that closes what is open."""
_OPENS = ("(", "[", "{", ":", ",", "=", "\\", "=>", "->")
"""What a line ends with that goes on below."""
_COMMENT_SIGN = re.compile(r"#|//|--|/\*|<!|^\s*\*|[;%'\"]")
"""One of them is in each line that ends in a comment."""
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


def is_prose(ask: CompletionRequest) -> bool:
    """Return True if the cursor is in a comment, or in a text as Markdown, outside of its code."""
    grammar, line = grammar_of(ask.language, ask.path), ask.line_before
    if grammar in PROSE:
        return len(_FENCE.findall(ask.prefix)) % 2 == 0 or line.lstrip().startswith(("`", "~"))
    if not grammar or _COMMENT_SIGN.search(line) is None:
        return False
    tree = SyntaxTree.parsed(line + ask.line_after, grammar)
    role = tree.role_at(len(line.rstrip()) - 1)
    return role is Role.COMMENT or _is_in_block(ask.prefix)


def _is_in_block(prefix: str) -> bool:
    """Return True if the last line goes on with a comment whose lines begin with asterisks."""
    for line in reversed(prefix.split("\n")):
        text = line.strip()
        if text.startswith("/*") or not text.startswith("*"):
            return text.startswith("/*") and "*/" not in text
    return False


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
