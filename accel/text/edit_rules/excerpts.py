"""The lines of a selection that a recognised edit is about; the others need no model.

Where the places of an edit are known, a model that copies the lines between them can only spoil
them. So it is asked for the lines around the places, and the rest stays as it is: fewer tokens,
and answers short enough for a small model.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from accel.text.edit_rules.source_region import Replacement

AROUND = 0
"""Lines shown before and after those with places: with none the embedded model slips least."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Whole lines of a selection. Those without changes stay as they are."""

    text: str
    changes: tuple[Replacement, ...] = ()
    """The edit by rule, in characters of ``text``: its places are marked in the prompt, and what
    it makes of the text is a draft."""

    @property
    def places(self) -> list[tuple[int, int]]:
        """Characters that the edit is about."""
        return [(change.start, change.end) for change in self.changes]


def excerpts(text: str, changes: Sequence[Replacement], around: int = AROUND) -> list[Excerpt]:
    """``text`` cut into runs of lines with and without changes, in their order.

    changes: in their order, not overlapping; none of them is cut.
    """
    lines = text.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]
    found: list[Excerpt] = []
    taken = 0
    for first, after, held in _runs(lines, starts, changes, around):
        start, end = starts[first], starts[after]
        if taken < start:
            found.append(Excerpt(text[taken:start]))
        moved = [Replacement(each.start - start, each.end - start, each.text) for each in held]
        found.append(Excerpt(text[start:end], tuple(moved)))
        taken = end
    if taken < len(text):
        found.append(Excerpt(text[taken:]))
    return found


_Run = tuple[int, int, list[Replacement]]


def _runs(
    lines: list[str], starts: list[int], changes: Sequence[Replacement], around: int
) -> list[_Run]:
    """Of each run its first line, the line after its last, and its changes."""
    found: list[_Run] = []
    for change in changes:
        last_character = max(change.start, change.end - 1)
        first = max(min(bisect.bisect_right(starts, change.start), len(lines)) - 1, 0)
        after = min(bisect.bisect_right(starts, last_character), len(lines))
        # Blank lines tell nothing; the line behind new ones tells their indentation.
        before = [n for n in range(max(first - around, 0), first) if lines[n].strip()]
        inserts = change.start == change.end and "\n" in change.text
        shown = min(after + max(around, int(inserts)), len(lines))
        behind = [n for n in range(after, shown) if lines[n].strip()]
        run = min([first, *before]), max([after, *(n + 1 for n in behind)]), [change]
        if found and run[0] <= found[-1][1]:
            earlier = found.pop()
            run = earlier[0], max(run[1], earlier[1]), [*earlier[2], change]
        found.append(run)
    return found
