"""Reads a snippet: hunks of lines, with place holders between them for what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lsp_server.tasks.editing.elided_code import place_holder


class Hunk(NamedTuple):
    """Lines of a snippet with no place holder among them. ``first``: their first, from 0."""

    first: int
    lines: tuple[str, ...]


class SnippetHunks(NamedTuple):
    """open_top, open_end: no place holder stands above the first hunk, or below the last."""

    hunks: tuple[Hunk, ...]
    open_top: bool
    open_end: bool


_DOTS = ("...", "…")


def read_snippet(lines: Sequence[str], file: Sequence[str]) -> SnippetHunks:
    """The hunks of a snippet. A line that the file has as often is no place holder."""
    holders = {number for number in range(len(lines)) if _is_holder(lines, number, file)}
    hunks: list[Hunk] = []
    first = 0
    for number in [*sorted(holders), len(lines)]:
        if any(line.strip() for line in lines[first:number]):
            hunks.append(Hunk(first, tuple(lines[first:number])))
        first = number + 1
    is_open = [
        bool(hunks) and not any(number in holders for number in numbers)
        for numbers in (
            range(hunks[0].first if hunks else 0),
            range(hunks[-1].first if hunks else 0, len(lines)),
        )
    ]
    return SnippetHunks(tuple(hunks), is_open[0], is_open[1])


def _is_holder(lines: Sequence[str], number: int, file: Sequence[str]) -> bool:
    line = lines[number]
    text = line.strip()
    if not text or not place_holder(line):
        return False
    known = [at for at, one in enumerate(file) if one.strip() == text]
    if text not in _DOTS:
        return not known
    above = lines[number - 1].strip() if number else ""
    return not any(at and file[at - 1].strip() == above for at in known)
