"""Applies answers that are differences: unified diffs, patches, and search-and-replace blocks.

They are applied where they fit exactly, in one place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lsp_server.shared.errors import EditRefused

_HEADER = re.compile(r"^@@(?: -(?P<line>\d+)(?:,\d+)? \+\d+(?:,\d+)? @@| ?@@| .*|)", re.MULTILINE)
_NUMBERED = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_FILES = re.compile(r"^--- .*\n\+\+\+ ", re.MULTILINE)
_PATCH = re.compile(r"^\*\*\* (?:Begin Patch|Update File)", re.MULTILINE)
_SEARCH = re.compile(
    r"^<{5,}[ \t]*(?:SEARCH|ORIGINAL)\b[^\n]*\n(?P<old>.*?)^={5,}[ \t]*\n(?P<new>.*?)"
    r"^>{5,}[ \t]*(?:REPLACE|UPDATED)\b[^\n]*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_SKIPPED = re.compile(
    r"(?:--- |\+\+\+ |diff |index |\*\*\* |new file|deleted file|old mode|new mode|similarity |\\ )"
)
_LANGUAGES = ("diff", "patch", "udiff")
DOES_NOT_FIT = "the model answered with a diff that does not fit the selection; edit again"


@dataclass(slots=True)
class _Hunk:
    """Lines that are there, and lines in their place; ``line``: where, from 1, 0 where untold."""

    line: int = 0
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        return self.old != self.new


def is_diff(text: str, language: str, original: str) -> bool:
    """Whether a block is a difference and no text; never where the original looks like one."""
    if _looks(original):
        return False
    if _looks(text):
        return True
    lines = [line for line in text.split("\n") if line.strip()]
    return (
        language in _LANGUAGES
        and any(line.startswith(("+", "-")) for line in lines)
        and all(line[0] in "+- \t@\\" or _SKIPPED.match(line) for line in lines)
    )


def _looks(text: str) -> bool:
    return any(found.search(text) for found in (_NUMBERED, _FILES, _PATCH, _SEARCH))


def patched(text: str, original: str, before: str = "", after: str = "") -> str:
    """The original after the changes of a difference; before, after: what surrounds it, which a
    difference may show and not change.

    Raises EditRefused where it does not fit exactly, in one place.
    """
    above, lines, below = _lines(before), _lines(original), _lines(after)
    if before.endswith("\n"):
        above = above[:-1]
    if below and original.endswith("\n"):
        # The empty line after the last line end is where the text after it begins.
        lines = lines[:-1]
    whole = [*above, *lines, *below]
    first, last = len(above), len(above) + len(lines)
    hunks = [hunk for hunk in _hunks(text) if hunk.changes]
    if not hunks:
        raise EditRefused(DOES_NOT_FIT)
    made: list[str] = []
    place = 0
    for hunk in hunks:
        at = _place_of(hunk, whole, place, first, last)
        changed_from, changed_to = _changed(hunk)
        if at + changed_from < first or at + changed_to > last:
            raise EditRefused(DOES_NOT_FIT)
        made += [*whole[place:at], *_with_unchanged(whole[at : at + len(hunk.old)], hunk)]
        place = at + len(hunk.old)
    made += whole[place:]
    edited = made[first : len(made) - len(below)]
    return "\n".join([*edited, ""] if below and original.endswith("\n") else edited)


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _place_of(hunk: _Hunk, lines: list[str], place: int, first: int, last: int) -> int:
    """Where the old lines of a hunk are. Raises EditRefused where that is not one place."""
    old, size = hunk.old, len(hunk.old)
    if not size:
        raise EditRefused(DOES_NOT_FIT)
    found = [
        at
        for at in range(place, len(lines) - size + 1)
        if all(_same(one, other) for one, other in zip(lines[at : at + size], old, strict=True))
    ]
    inside = [at for at in found if first <= at and at + size <= last] or found
    if len(inside) > 1:
        # The numbers count from the selection, which is all that the model was to edit.
        inside = [at for at in inside if hunk.line and at == first + hunk.line - 1]
    if len(inside) != 1:
        raise EditRefused(DOES_NOT_FIT)
    return inside[0]


def _same(line: str, shown: str) -> bool:
    """Whether a line is one of a difference. Blanks at its end are not shown to models."""
    return line.rstrip() == shown.rstrip()


def _changed(hunk: _Hunk) -> tuple[int, int]:
    most = min(len(hunk.old), len(hunk.new))
    head = next((n for n in range(most) if hunk.old[n] != hunk.new[n]), most)
    tail = next(
        (n for n in range(most - head) if hunk.old[-1 - n] != hunk.new[-1 - n]), most - head
    )
    return head, len(hunk.old) - tail


def _with_unchanged(lines: Sequence[str], hunk: _Hunk) -> list[str]:
    """The new lines, with those at both ends as they are in the text."""
    start, end = _changed(hunk)
    tail = len(hunk.old) - end
    return [*lines[:start], *hunk.new[start : len(hunk.new) - tail], *lines[end:]]


def _hunks(text: str) -> list[_Hunk]:
    if searched := list(_SEARCH.finditer(text)):
        return [_Hunk(0, _block(one["old"]), _block(one["new"])) for one in searched]
    hunks: list[_Hunk] = []
    for line in text.split("\n"):
        header = _HEADER.match(line)
        if header is not None:
            hunks.append(_Hunk(int(header["line"] or 0)))
            continue
        if line.strip() in ("...", "…"):
            hunks.append(_Hunk())
            continue
        if line.startswith(("*** ", "\\")) or (not hunks and _SKIPPED.match(line)):
            continue
        if not hunks:
            hunks.append(_Hunk())
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
