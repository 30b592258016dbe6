"""Snippets of random small files beside an oracle that tries every reading.

A reading has the first and the last line of each hunk stand for the same lines of the file, the
hunks in order. What it costs are the lines that it changes. A snippet without place holders at its
ends may also show what a file begins or ends with from now on: its first line need not be the
file's first one, its last one not the last. That costs one line more, and three where the file's
own first or last line is none of the snippet's, as what no line shows is seldom meant to go.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from lsp_server.tasks.apply.merge import apply_snippet
from lsp_server.tasks.apply.refusals import AmbiguousSnippet

HOLDER = "# ... existing code ..."
AT_END, UNSEEN = 1, 3
Lines = list[str]


@dataclass
class OracleCounts:
    """``single``: snippets that have one reading; ``applied``: those of them that were applied;
    ``others``: answers of which another reading costs less."""

    files: int = 0
    single: int = 0
    applied: int = 0
    others: list[str] = field(default_factory=list)


def beside_oracle(seed: int, files: int) -> OracleCounts:
    """Apply a snippet to each of ``files`` random files, made of the numbers from ``seed`` on."""
    counts = OracleCounts()
    for number in range(seed, seed + files):
        file, hunks, ends = small_edit(number)
        readings = every_reading(file, hunks, ends)
        is_single = len(readings) == 1
        counts.files += 1
        counts.single += is_single
        lines = [line for hunk in hunks for line in [HOLDER, *hunk]]
        lines = [*lines, HOLDER] if ends else lines[1:]
        try:
            text = apply_snippet("\n".join([*file, ""]), "\n".join([*lines, ""])).text
        except AmbiguousSnippet:
            continue
        counts.applied += is_single
        made = tuple(text.splitlines())
        if readings and readings.get(made) != min(readings.values()):
            counts.others.append(f"seed {number}: {file} {lines} {made}")
    return counts


def small_edit(seed: int) -> tuple[Lines, list[Lines], bool]:
    """Return a file, the hunks of a snippet, and whether place holders are its ends."""
    chance = random.Random(seed)
    file = [chance.choice("abc") for _ in range(chance.randrange(1, 9))]
    hunks = [
        [chance.choice("abc") for _ in range(chance.randrange(1, 5))]
        for _ in range(chance.randrange(1, 3))
    ]
    return file, hunks, chance.random() < 0.5


def changed_lines(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines are added or go."""
    row = [*range(len(new) + 1)]
    for number, line in enumerate(old, start=1):
        above, row = row, [number]
        for at, other in enumerate(new, start=1):
            same = above[at - 1] if line == other else len(old) + len(new)
            row.append(min(above[at] + 1, row[at - 1] + 1, same))
    return row[-1]


def every_reading(file: Lines, hunks: Sequence[Lines], ends: bool) -> dict[tuple[str, ...], int]:
    """Return what each reading makes of ``file``, with what it costs. ``ends``: place holders are
    the first and the last line of the snippet."""
    readings: dict[tuple[str, ...], int] = {}

    def go_on(number: int, place: int, made: Lines, cost: int) -> None:
        if number == len(hunks):
            text = (*made, *file[place:])
            readings[text] = min(cost, readings.get(text, cost))
            return
        hunk = hunks[number]
        for start in range(place, len(file)):
            for end in range(start + 1, len(file) + 1):
                region = file[start:end]
                is_top = not (ends or number or start)
                is_end = not ends and number + 1 == len(hunks) and end == len(file)
                border = _border_cost(region, hunk, is_top, is_end)
                if border is not None:
                    more = changed_lines(region, hunk) + border
                    go_on(number + 1, end, [*made, *file[place:start], *hunk], cost + more)

    go_on(0, 0, [], 0)
    return readings


def _border_cost(region: Lines, hunk: Lines, is_top: bool, is_end: bool) -> int | None:
    """Return what it costs that ``hunk`` begins or ends with other lines than ``region``. None
    where it may not: ``is_top``, ``is_end`` tell whether it shows what the file begins, or ends,
    with."""
    is_one = (len(region) > 1) != (len(hunk) > 1)
    other = [n for n in (0, -1) if region[n] != hunk[n]]
    if (0 in other and not is_top) or (-1 in other and not is_end):
        return None
    if is_one and not (is_top or is_end):
        return None
    if any(region[n] not in hunk for n in other):
        return UNSEEN
    return AT_END if other or is_one else 0
