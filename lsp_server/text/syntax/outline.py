"""Outlines a file: its definitions, line by line, in little text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lsp_server.text.syntax.languages import TABLE

_HEADING = re.compile(TABLE["patterns"]["heading"], re.MULTILINE)
LONGEST_LINE = 160
SCANNED_CHARACTERS = 60_000
"""Of a long file only so much is looked through: it costs milliseconds."""


def is_heading(line: str) -> bool:
    """Return whether a line begins a definition, or gives a constant its value."""
    return _HEADING.match(line) is not None


def defined_names(text: str) -> list[str]:
    """Return the names of the functions, classes and types that a text defines, in order."""
    return [heading["name"] for heading in _HEADING.finditer(text) if heading["name"]]


def outline(text: str, budget: int, names: Iterable[str] = ()) -> str:
    """At most ``budget`` characters: the whole text when it fits, else its definitions, those of
    ``names`` first, in the order of the file."""
    if len(text) <= budget:
        return text
    text = text[:SCANNED_CHARACTERS]
    wanted_names = frozenset(names)
    lines: list[str] = []
    first: list[int] = []
    inside = -1
    for heading in _HEADING.finditer(text):
        indent = len(heading["indent"].expandtabs(8))
        if (heading["name"] or heading["constant"]) in wanted_names:
            inside = indent
            first.append(len(lines))
        elif inside >= 0 and indent > inside:
            first.append(len(lines))
        else:
            inside = -1
        lines.append(heading.group()[:LONGEST_LINE].rstrip())
    fitting: set[int] = set()
    chosen = frozenset(first)
    for number in [*first, *(index for index in range(len(lines)) if index not in chosen)]:
        budget -= len(lines[number]) + 1
        if budget < 0:
            break
        fitting.add(number)
    return "\n".join(lines[number] for number in sorted(fitting))
