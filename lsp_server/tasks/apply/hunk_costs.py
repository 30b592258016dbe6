"""What it costs to have a hunk of a snippet in place of lines of a file: an edit distance over
lines, by where the region of the file starts and ends.

The rows are NumPy vectors over the file's lines, so that a cell costs nanoseconds. A cell holds a
cost and, in its low bits, the line of the file that it comes from. Everything here counts the same
from either end, since the costs are added up from both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsp_server.tasks.apply.line_costs import LOST, NEVER, RUN, WEAK, LineCosts

if TYPE_CHECKING:
    from lsp_server.tasks.apply.line_costs import Cells

SHIFT = 24
LINE_OF = (1 << SHIFT) - 1
_WEAK = WEAK << SHIFT
UNTOUCHED, CUT, ANCHORED = range(3)
"""Whether a line that is not weak was one of the file's (anchored), else whether lines went."""


class FileEnds(NamedTuple):
    """opens, closes: the hunk may stand at the beginning, at the end of the file, with no place
    holder between; is_whole: it has to."""

    opens: bool
    closes: bool
    is_whole: bool


class HunkPass:
    """The costs of one hunk, in the direction of the cells."""

    def __init__(
        self, hunk: Sequence[LineCosts], gone: tuple[Cells, Cells], ends: FileEnds, backward: bool
    ) -> None:
        self.hunk = hunk
        self.few, self.many = gone[0] << SHIFT, gone[1] << SHIFT
        self.few_gone = self.few + (RUN << SHIFT)
        self.many_gone = self.many + (WEAK << SHIFT)
        self.ends = ends
        self.instead = [
            (line.instead[::-1] if backward else line.instead) << SHIFT for line in hunk
        ]
        strong = [number for number, line in enumerate(hunk) if not line.is_weak]
        self.first_strong = strong[0] if strong else len(hunk)
        self.last_strong = strong[-1] if strong else -1
        self.head, self.tail = _no_anchor(hunk), _no_anchor(hunk[::-1])
        self.new_head = _no_anchor(hunk, is_alone=True)
        self.new_tail = _no_anchor(hunk[::-1], is_alone=True)
        is_alone = not any(line.is_known or line.name for line in hunk if not line.is_blank)
        self.alone = (LOST if is_alone else 4 * WEAK) << SHIFT
        self.last_border = _border(hunk[-1]) << SHIFT
        self.no_strong = (LOST if strong else 0) << SHIFT
        self.gone_at_end = (0 if ends.is_whole else WEAK) << SHIFT

    def region_ends(self, starts: Cells) -> Cells:
        """The costs by where the region ends, given those by where it starts, along the last axis.

        Lines above the first that is one of the file, and those below the last, are put in beside
        it; they replace nothing, unless the file begins or ends with them.
        """
        never = np.full_like(starts, NEVER << SHIFT)
        # No line was one of the file's yet; no further one is.
        above, below = starts, never
        # Weak lines alone; all lines since one that is not weak.
        weak, clean = never, never
        # A line that was, after some were added or went; the last one is added. In three states.
        nevers = np.full((3, *starts.shape), NEVER << SHIFT, np.int64)
        mended, added = nevers, nevers
        for number, (line, instead) in enumerate(zip(self.hunk, self.instead, strict=True)):
            below = self._below(number, below, weak, clean, mended)
            inner = self._with_lines_gone(weak + _WEAK, clean, mended, added)
            start = above + self._head(number)
            added = np.minimum(added, inner + (RUN << SHIFT)) + (line.added << SHIFT)
            if self.ends.opens:
                start[..., 0] = above[..., 0]
                lower(inner[CUT], self._from_top(above, number))
            is_loose = number > self.first_strong
            if is_loose or line.is_changed:
                lower(inner[UNTOUCHED], start if is_loose else start + _WEAK)
            if self.ends.opens and number and line.is_weak:
                lower(inner[UNTOUCHED][..., 0], above[..., 0])
            if line.is_weak:
                weak = _matched(weak if is_loose else np.minimum(weak, start), instead)
                clean = _matched(clean, instead)
                mended = _matched(inner, instead)
            elif line.is_changed and 0 < number < len(self.hunk) - 1:
                mended = _matched(inner, instead)
                weak = clean = never
            else:
                clean = _matched(least(weak, start, *inner), instead)
                weak, mended = never, nevers
            more = 0 if number else RUN + _border(line)
            above = above + ((line.added + more) << SHIFT)
            if not number and self.ends.opens:
                above[..., 0] += _at_end(line)
        return self._ends(above, below, weak, clean, mended, added)

    def _head(self, number: int) -> int:
        """Return what it costs that the lines above one are added."""
        if number <= self.first_strong:
            return 0
        return self.new_head if number > self.last_strong else self.head

    def _below(self, number: int, below: Cells, weak: Cells, clean: Cells, mended: Cells) -> Cells:
        """The costs where the line and all below it are added."""
        line = self.hunk[number]
        untouched, cut = mended[UNTOUCHED], mended[CUT] + self.no_strong
        if number > self.last_strong:
            edge = 0
            above_it = least(untouched, cut, mended[ANCHORED]) + _WEAK
            above_it = least(clean, weak, above_it)
        else:
            edge = self.new_tail if number <= self.first_strong else self.tail
            above_it = least(clean, untouched, cut, mended[ANCHORED], weak + _WEAK)
        border = _border(line) if number == len(self.hunk) - 1 else 0
        below = np.minimum(below, above_it + ((RUN << SHIFT) + edge))
        return below + ((line.added + border) << SHIFT)

    def _with_lines_gone(self, weak: Cells, clean: Cells, mended: Cells, added: Cells) -> Cells:
        """The costs of all states within a hunk, where lines of the file may have gone."""
        inner = np.minimum(mended, added)
        lower(inner[UNTOUCHED], weak)
        lower(inner[ANCHORED], clean)
        gone = self._gone(inner)
        lower(inner[CUT], gone[CUT])
        lower(inner[CUT], gone[UNTOUCHED])
        lower(inner[ANCHORED], gone[ANCHORED])
        return inner

    def _gone(self, cells: Cells) -> Cells:
        few, many = cells - self.few, cells - self.many
        np.minimum.accumulate(few, axis=-1, out=few)
        np.minimum.accumulate(many, axis=-1, out=many)
        few += self.few_gone
        many += self.many_gone
        lower(few, many)
        return few

    def _from_top(self, above: Cells, number: int) -> Cells:
        """The costs where the hunk begins the file, and the first lines of that go."""
        top = np.full_like(above, NEVER << SHIFT)
        top[..., 0] = above[..., 0]
        return self._gone(top) + (0 if number else self.gone_at_end)

    def _ends(
        self, above: Cells, below: Cells, weak: Cells, clean: Cells, mended: Cells, added: Cells
    ) -> Cells:
        loose = above + (self.new_head + self.new_tail + self.last_border)
        mended_ends = least(mended[UNTOUCHED], mended[CUT] + self.no_strong, mended[ANCHORED])
        ends_here = least(clean, weak, below, loose, mended_ends + _WEAK)
        if self.ends.closes:
            border = self.last_border + _at_end(self.hunk[-1])
            anchored = least(clean, mended[ANCHORED])
            loose = least(weak + _WEAK, mended[UNTOUCHED], mended[CUT]) + self.no_strong
            gone = self._gone(least(anchored, loose)) + self.gone_at_end
            loose = least(added[UNTOUCHED], added[CUT]) + self.no_strong
            gone = np.minimum(gone, self._gone(least(added[ANCHORED], loose)) + border)
            kept = least(added[ANCHORED], added[UNTOUCHED], added[CUT] + self.no_strong) + border
            added_alone = above + (min(self.new_head, self.alone) + border)
            ends_here[..., -1] = least(ends_here, kept, gone, added_alone)[..., -1]
        if self.ends.opens:
            alone = min(self.new_tail, self.alone) + self.last_border
            lower(ends_here[..., 0], above[..., 0] + alone)
        if self.ends.closes and self.ends.is_whole:
            ends_here[..., :-1] = NEVER << SHIFT
        return ends_here


def _matched(cells: Cells, instead: Cells) -> Cells:
    """The costs one line on, where a line is one of the file."""
    found = np.full_like(cells, NEVER << SHIFT)
    np.add(cells[..., :-1], instead, out=found[..., 1:])
    return found


def lower(cells: Cells, others: Cells) -> None:
    """Have the cells cost no more than others."""
    np.minimum(cells, others, out=cells)


def least(first: Cells, *others: Cells) -> Cells:
    """The least of several costs, cell by cell."""
    for other in others:
        first = np.minimum(first, other)
    return first


def _no_anchor(hunk: Sequence[LineCosts], *, is_alone: bool = False) -> int:
    """Tell what it costs that the first line of a hunk which is not weak is added; is_alone: as all
    others are."""
    first = next((line for line in hunk if not line.is_weak), None)
    if first is None:
        return 0
    if first.is_added:
        return RUN << SHIFT
    if first.is_known:
        return 4 * WEAK << SHIFT
    lines = [line for line in hunk if not line.is_weak]
    begins = any(line.is_new_definition for line in (lines[0], lines[-1]))
    return (RUN if is_alone and begins else LOST) << SHIFT


def _at_end(line: LineCosts) -> int:
    """Return what it costs more that a line is added as the first or last one of the file."""
    return -_border(line) << SHIFT if line.is_blank else 0


def _border(line: LineCosts) -> int:
    """Return what it costs besides that a weak line at the border of a hunk is added."""
    return WEAK if line.is_blank or (line.is_weak and line.is_known) else 0
