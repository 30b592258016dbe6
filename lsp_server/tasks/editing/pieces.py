"""Cuts a selection that is too long for one answer where definitions begin."""

from __future__ import annotations

import re
from collections.abc import Callable

_BLOCK = re.compile(
    r"\s*(?:@|async\s+def\b|def\b|class\b|function\b|fn\b|func\b|pub\b|impl\b|struct\b|enum\b|"
    r"interface\b|export\b|public\b|private\b|protected\b|static\b|type\b|module\b|trait\b)"
)
_NEVER = 1 << 20


def split_at_definitions(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Pieces of whole lines that make up ``text``, each of which ``fits`` where that can be: cut
    before definitions, the least indented first, else at blank lines."""
    if fits(text):
        return [text]
    lines = text.splitlines(keepends=True)
    cut = _best_cut(lines)
    if cut is None:
        return [text]
    head, tail = "".join(lines[:cut]), "".join(lines[cut:])
    return _joined([*split_at_definitions(head, fits), *split_at_definitions(tail, fits)], fits)


def _best_cut(lines: list[str]) -> int | None:
    """Return the best line to cut before: by kind of border, then by nearness to the middle."""
    cuts = [
        (rank, abs(2 * number - len(lines)), number)
        for number in range(1, len(lines))
        if (rank := _rank(lines, number)) is not None
    ]
    return min(cuts)[2] if cuts else None


_BELONG_TO_NEXT = ("@", "#", "//", "*", "/*", '"""')


def _rank(lines: list[str], number: int) -> int | None:
    """Return the quality of a cut before a line: lower is better, None for no cut."""
    line, before = lines[number], lines[number - 1]
    indent = len(line) - len(line.lstrip())
    if not line.strip():
        return None
    touching = before.lstrip().startswith(_BELONG_TO_NEXT)
    if _BLOCK.match(line) and not touching:
        return indent
    return None if before.strip() else _NEVER + indent


def _joined(pieces: list[str], fits: Callable[[str], bool]) -> list[str]:
    """Neighbours put together again where both fit into one."""
    joined = [pieces[0]]
    for piece in pieces[1:]:
        if fits(joined[-1] + piece):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined
