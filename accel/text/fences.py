"""Fences of backticks around code in an answer (CommonMark 0.31, fenced code blocks)."""

from __future__ import annotations

import re

_RUN = re.compile(r"`+")
_LINE = re.compile(r"^(`{3,})([^`\n]*)(\n?)", re.MULTILINE)


def fence_for(*texts: str) -> str:
    """Return a fence longer than any in the texts."""
    runs = (len(run) for text in texts for run in _RUN.findall(text))
    return "`" * max(3, max(runs, default=0) + 1)


def closing_place(answer: str, fence: str) -> int | None:
    """Return the start of the line that closes the block of an answer, None if there is none yet. A
    shorter fence is a part of the code, and so is a block with a fence of its own that names its
    language. A last line without its end may still become such a fence."""
    if fence not in answer:
        return None
    inside = False
    for match in _LINE.finditer(answer):
        marks, info, end = match.groups()
        if len(marks) < len(fence):
            continue
        if info.strip():
            inside = True
        elif inside and end:
            inside = False
        elif end:
            return match.start()
    return None
