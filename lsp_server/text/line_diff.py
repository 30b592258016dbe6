"""A diff by lines: that of ``difflib`` where it is quick, and one of n log n steps for texts whose
lines repeat so often that ``difflib`` would take seconds."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

MOST_PAIRS = 20_000
"""``difflib`` looks at every pair of equal lines, again for each stretch that it finds. Of so many
pairs it is asked."""
MOST_DEPTH = 20
"""So often a stretch between equal lines is divided again."""

Kind = Literal["equal", "replace", "delete", "insert"]
Opcode = tuple[Kind, int, int, int, int]
"""``equal``, ``replace``, ``delete`` or ``insert``, the lines of the old text, those of the new."""


def opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Return the opcodes that turn the old lines into the new ones, in the form of
    ``SequenceMatcher.get_opcodes``."""
    if _pairs(old, new) <= MOST_PAIRS:
        return difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes: list[Opcode] = []
    line, to = 0, 0
    for start, new_start in [*_same(old, new, 0, len(old), 0, len(new)), (len(old), len(new))]:
        if line < start or to < new_start:
            gone, came = line < start, to < new_start
            kind: Kind = "replace" if gone and came else "delete" if gone else "insert"
            changes.append((kind, line, start, to, new_start))
        if start < len(old):
            if changes and changes[-1][0] == "equal":
                changes[-1] = ("equal", changes[-1][1], start + 1, changes[-1][3], new_start + 1)
            else:
                changes.append(("equal", start, start + 1, new_start, new_start + 1))
        line, to = start + 1, new_start + 1
    return changes


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    counts, others = Counter(old), Counter(new)
    return sum(count * others[line] for line, count in counts.items())


def _same(
    old: Sequence[str],
    new: Sequence[str],
    start: int,
    end: int,
    new_start: int,
    new_end: int,
    depth: int = 0,
) -> Iterator[tuple[int, int]]:
    """Pairs of equal lines within two stretches, in order: what both begin with, what both end
    with, and between them lines that are as frequent in both, each with its like in turn."""
    while start < end and new_start < new_end and old[start] == new[new_start]:
        yield start, new_start
        start, new_start = start + 1, new_start + 1
    tail = 0
    most = min(end - start, new_end - new_start)
    while tail < most and old[end - 1 - tail] == new[new_end - 1 - tail]:
        tail += 1
    end, new_end = end - tail, new_end - tail
    yield from _between(old, new, start, end, new_start, new_end, depth)
    yield from ((end + n, new_end + n) for n in range(tail))


def _between(
    old: Sequence[str],
    new: Sequence[str],
    start: int,
    end: int,
    new_start: int,
    new_end: int,
    depth: int,
) -> Iterator[tuple[int, int]]:
    if start == end or new_start == new_end:
        return
    if _pairs(old[start:end], new[new_start:new_end]) <= MOST_PAIRS:
        matcher = difflib.SequenceMatcher(None, old[start:end], new[new_start:new_end], False)
        for line, to, size in matcher.get_matching_blocks():
            yield from ((start + line + n, new_start + to + n) for n in range(size))
        return
    anchors = (
        _longest_rise(_paired(old, new, start, end, new_start, new_end))
        if depth < MOST_DEPTH
        else []
    )
    if not anchors:
        if end - start == new_end - new_start:
            pairs = zip(range(start, end), range(new_start, new_end), strict=True)
            yield from ((line, to) for line, to in pairs if old[line] == new[to])
        return
    for line, to in anchors:
        yield from _same(old, new, start, line, new_start, to, depth + 1)
        yield line, to
        start, new_start = line + 1, to + 1
    yield from _same(old, new, start, end, new_start, new_end, depth + 1)


def _paired(
    old: Sequence[str], new: Sequence[str], start: int, end: int, new_start: int, new_end: int
) -> list[tuple[int, int]]:
    positions: dict[str, list[int]] = defaultdict(list)
    others: dict[str, list[int]] = defaultdict(list)
    for old_line in range(start, end):
        positions[old[old_line]].append(old_line)
    for to in range(new_start, new_end):
        others[new[to]].append(to)
    return sorted(
        pair
        for line, lines in positions.items()
        if len(lines) == len(others.get(line, ()))
        for pair in zip(lines, others[line], strict=True)
    )


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the most of pairs in order by their first that are so by their second, too."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, to) in enumerate(pairs):
        length = bisect_left(ends, to)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [to]
        last[length : length + 1] = [number]
    chain = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = before[number]
    return chain[::-1]
