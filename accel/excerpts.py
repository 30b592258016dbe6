"""The lines of a selection that a recognised edit is about; the others need no model.

Where the places of an edit are known, a model that copies the lines between them can only spoil
them. So it is asked for the lines around the places, and the rest stays as it is: fewer tokens,
and answers short enough for a small model.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from accel.training.region import Replacement

AROUND = 1
"""Lines shown before and after those with places: they tell the indentation."""
APART = 2
"""Runs of lines with no more lines between them are one excerpt."""


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
    starts = [0, *(place + 1 for place, char in enumerate(text) if char == "\n")]
    if starts[-1] != len(text):
        starts.append(len(text))
    found: list[Excerpt] = []
    taken = 0
    for first, last, held in _runs(starts, changes, around):
        start, end = starts[first], starts[last]
        if taken < start:
            found.append(Excerpt(text[taken:start]))
        moved = [Replacement(each.start - start, each.end - start, each.text) for each in held]
        found.append(Excerpt(text[start:end], tuple(moved)))
        taken = end
    if taken < len(text):
        found.append(Excerpt(text[taken:]))
    return found


_Run = tuple[int, int, list[Replacement]]


def _runs(starts: list[int], changes: Sequence[Replacement], around: int) -> list[_Run]:
    """Of each run its first line, the line after its last, and its changes."""
    count = len(starts) - 1
    found: list[_Run] = []
    for change in changes:
        last_character = max(change.start, change.end - 1)
        first = min(bisect.bisect_right(starts, change.start), count) - 1 - around
        after = min(bisect.bisect_right(starts, last_character), count) + around
        run = max(first, 0), min(after, count), [change]
        if found and run[0] - found[-1][1] <= APART:
            before = found.pop()
            run = before[0], max(run[1], before[1]), [*before[2], change]
        found.append(run)
    return found
