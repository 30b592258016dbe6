"""Finds old texts that are replaced by new ones, as agents' edit tools do: where one stands as it
is, else where it stands but for white space, else where nearly all its lines stand.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence

from lsp_server.tasks.apply.placing import Lines, Span, placed
from lsp_server.text.line_diff import opcodes

NEARLY = 0.7
"""The share of an old text's lines that a region has to have."""
ALIKE = 0.75
"""So alike are other lines at the same places."""


def places_of(lines: Lines, old: Lines) -> list[Span]:
    """Where an old text stands: exactly, else but for white space, else nearly."""
    size = len(old)
    exact = [at for at in _windows(lines, old) if lines[at : at + size] == old]
    if exact:
        return [(at, at + size) for at in exact]
    texts = [line.split() for line in lines]
    wanted = [line.split() for line in old]
    spaced = [at for at in range(len(lines) - size + 1) if texts[at : at + size] == wanted]
    return [(at, at + size) for at in spaced or _nearly(texts, wanted)]


def _windows(lines: Lines, old: Lines) -> Iterator[int]:
    return (at for at in range(len(lines) - len(old) + 1) if lines[at] == old[0])


def _nearly(texts: list[list[str]], wanted: list[list[str]]) -> list[int]:
    """The places of the most lines that are the same, if those are nearly all and the rest are
    alike."""
    size = len(wanted)
    code = [number for number, line in enumerate(wanted) if line]
    same: Counter[int] = Counter()
    for at in range(len(texts) - size + 1):
        same[at] = sum(texts[at + number] == wanted[number] for number in code)
    most = max(same.values(), default=0)
    if not code or most < NEARLY * len(code):
        return []
    return [
        at
        for at, count in same.items()
        if count == most and all(_alike(texts[at + n], wanted[n]) for n in range(size))
    ]


def _alike(one: list[str], other: list[str]) -> bool:
    if one == other:
        return True
    matcher = difflib.SequenceMatcher(None, " ".join(one), " ".join(other), autojunk=False)
    return bool(one and other) and matcher.ratio() >= ALIKE


def replaced_lines(region: Lines, old: Lines, new: Lines) -> Lines | None:
    """The lines of a region with the change from an old text to a new one; what the change leaves
    alone stays as it is in the region. None where it is not clear how deep the new lines are."""
    made = placed([new], [region])
    if made is None:
        return None
    kept: list[str] = []
    for kind, start, end, at, to in opcodes(old, new):
        kept += region[start:end] if kind == "equal" else made[0][at:to]
    return tuple(kept)


def lines_at(text: str, old: str) -> Sequence[int]:
    """The numbers of the lines, from 1, at which an old text begins."""
    found = []
    at = text.find(old)
    while at >= 0:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + 1)
    return found
