"""Reads texts that are differences: unified diffs, patches, and search-and-replace blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HEADER = re.compile(r"^@@(?: -(?P<line>\d+)(?:,\d+)? \+\d+(?:,\d+)? @@| ?@@| .*|)", re.MULTILINE)
_NUMBERED = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_FILES = re.compile(r"^--- .*\n\+\+\+ ", re.MULTILINE)
_PATCH = re.compile(r"^\*\*\* (?:Begin Patch|Update File)", re.MULTILINE)
_SEARCH = re.compile(
    r"^<{5,}[ \t]*(?:SEARCH|ORIGINAL)\b[^\n]*\n(?P<old>.*?)^={5,}[ \t]*\n(?P<new>.*?)"
    r"^>{5,}[ \t]*(?:REPLACE|UPDATED)\b[^\n]*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
SKIPPED = re.compile(
    r"(?:--- |\+\+\+ |diff |index |\*\*\* |new file|deleted file|old mode|new mode|similarity |\\ )"
)


@dataclass(slots=True)
class DiffHunk:
    """Lines that are there, and lines in their place; ``line``: where, from 1, 0 where untold."""

    line: int = 0
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        return self.old != self.new


def looks_like_diff(text: str) -> bool:
    """Whether a text has the marks of a difference."""
    return any(found.search(text) for found in (_NUMBERED, _FILES, _PATCH, _SEARCH))


def diff_hunks(text: str) -> list[DiffHunk]:
    """What a difference changes, in its order."""
    if searched := list(_SEARCH.finditer(text)):
        return [DiffHunk(0, _block(one["old"]), _block(one["new"])) for one in searched]
    hunks: list[DiffHunk] = []
    for line in text.split("\n"):
        header = _HEADER.match(line)
        if header is not None:
            hunks.append(DiffHunk(int(header["line"] or 0)))
            continue
        if line.strip() in ("...", "…"):
            hunks.append(DiffHunk())
            continue
        if line.startswith(("*** ", "\\")) or (not hunks and SKIPPED.match(line)):
            continue
        if not hunks:
            hunks.append(DiffHunk())
        hunk = hunks[-1]
        if not line.startswith("+"):
            hunk.old.append(line[1:])
        if not line.startswith("-"):
            hunk.new.append(line[1:])
    for hunk in hunks:
        # A difference ends with its last line, and what is empty after it is none of its lines.
        while hunk.old and hunk.new and not hunk.old[-1].strip() and not hunk.new[-1].strip():
            hunk.old.pop()
            hunk.new.pop()
    return hunks


def _block(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
