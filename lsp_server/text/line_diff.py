"""A diff by lines: that of ``difflib`` where it is quick, and one of n log n steps for texts whose
lines repeat so often that ``difflib`` would take seconds."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from repo_index.common_ends import common_ends

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
    for start, new_start in [*_same([*old], [*new]), (len(old), len(new))]:
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


def _same(old: list[str], new: list[str], depth: int = 0) -> Iterator[tuple[int, int]]:
    """Yield pairs of equal lines in order: what both begin with, what both end with, and between
    them lines that are as frequent in both, each with its like in turn."""
    head, tail = common_ends(old, new)
    end, new_end = len(old) - tail, len(new) - tail
    yield from ((n, n) for n in range(head))
    for line, to in _between(old[head:end], new[head:new_end], depth):
        yield head + line, head + to
    yield from ((end + n, new_end + n) for n in range(tail))


def _between(old: list[str], new: list[str], depth: int) -> Iterator[tuple[int, int]]:
    if _pairs(old, new) <= MOST_PAIRS:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for line, to, size in matcher.get_matching_blocks():
            yield from ((line + n, to + n) for n in range(size))
        return
    anchors = _longest_rise(_paired(old, new)) if depth < MOST_DEPTH else []
    if not anchors:
        pairs = zip(old, new, strict=True) if len(old) == len(new) else ()
        yield from ((n, n) for n, (line, other) in enumerate(pairs) if line == other)
        return
    start, new_start = 0, 0
    for end, new_end in [*anchors, (len(old), len(new))]:
        for line, to in _same(old[start:end], new[new_start:new_end], depth + 1):
            yield start + line, new_start + to
        if end < len(old):
            yield end, new_end
        start, new_start = end + 1, new_end + 1


def _paired(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    positions: dict[str, list[int]] = defaultdict(list)
    others: dict[str, list[int]] = defaultdict(list)
    for lines, numbers in ((old, positions), (new, others)):
        for number, line in enumerate(lines):
            numbers[line].append(number)
    return sorted(
        pair
        for line, numbers in positions.items()
        if len(numbers) == len(others.get(line, ()))
        for pair in zip(numbers, others[line], strict=True)
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
