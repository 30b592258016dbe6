"""Aligns the hunks of a snippet with the lines of a file, by what each costs where. A place holder
between two hunks takes lines for nothing. Each hunk then stands for a region of the file, which it
replaces whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lsp_server.tasks.apply.hunk_costs import LINE_OF, SHIFT, FileEnds, HunkPass
from lsp_server.tasks.apply.line_costs import NEVER, FileLines, LineCosts, line_costs
from lsp_server.tasks.apply.refusals import MORE_CONTEXT, AmbiguousSnippet

if TYPE_CHECKING:
    from lsp_server.tasks.apply.line_costs import Cells

MOST_PLACES = 40_000
MOST_STARTS = 8
"""So many starts of a hunk are looked at closely, the cheapest."""


class Region(NamedTuple):
    """Lines of the file, from 0, the end exclusive."""

    start: int
    end: int


class Alignment(NamedTuple):
    """A region for each hunk, in order."""

    cost: int
    regions: tuple[Region, ...]


class SnippetAligner:
    """Aligns the hunks of one snippet with one file."""

    def __init__(
        self,
        file: FileLines,
        hunks: Sequence[Sequence[str]],
        *,
        open_top: bool,
        open_end: bool,
        is_whole: bool = False,
        anchors: Sequence[Mapping[int, int]] = (),
        held: Sequence[Collection[int]] = (),
        within: int,
    ) -> None:
        """open_top, open_end: no place holder stands above the first hunk, or below the last.
        is_whole: the hunk stands at the file's end then. anchors: for each hunk, the lines of the
        file that some of its lines are; held: its lines that have to be lines of the file. within:
        what an alignment may cost more than the best one."""
        none: list[dict[int, int]] = [{} for _ in hunks]
        each = zip(hunks, anchors or none, held or none, strict=True)
        costs = [line_costs(file, *hunk) for hunk in each]
        self._forward = _Pass(file.gone, costs, (open_top, open_end), is_whole)
        self._backward = self._forward.flipped()
        self._most = int(_cost(self._forward.after[-1]).min()) + within
        self._found: dict[tuple[Region, ...], int] = {}
        for number in range(len(hunks)):
            self._add(self._by_end(number))
            self._add(self._by_start(number))

    def alignments(self, closely: Iterable[int] = ()) -> list[Alignment]:
        """The best alignment, and of others the best for each line at which a hunk can start or end
        otherwise; the cheapest first. closely: hunks of which every region is looked at."""
        for number in closely:
            self._add(self._by_region(number))
        return sorted(Alignment(cost, regions) for regions, cost in self._found.items())

    def _add(self, alignments: Iterable[tuple[tuple[Region, ...], int]]) -> None:
        for regions, cost in alignments:
            self._found.setdefault(regions, cost)
            if len(self._found) * len(regions) > MOST_PLACES:
                raise AmbiguousSnippet(
                    f"the snippet fits more than {len(self._found):,} places; {MORE_CONTEXT}"
                )

    def _by_end(self, number: int) -> Iterator[tuple[tuple[Region, ...], int]]:
        forward = self._forward
        through = _cost(forward.after[number]) + self._after(number)
        for end in map(int, np.flatnonzero(through <= self._most)):
            yield (*forward.until(number, end), *self._below(number, end)), int(through[end])

    def _by_start(self, number: int) -> Iterator[tuple[tuple[Region, ...], int]]:
        through, size = self._through_start(number), len(self._forward.lines) - 1
        for start in map(int, np.flatnonzero(through <= self._most)):
            rest = self._backward.until(self._other(number), size - start)
            yield (*self._above(number, start), *_flipped(rest, size)), int(through[start])

    def _by_region(self, number: int) -> Iterator[tuple[tuple[Region, ...], int]]:
        through = self._through_start(number)
        starts = np.flatnonzero(through <= self._most)
        starts = starts[np.argsort(through[starts], kind="stable")][:MOST_STARTS]
        costs = self._forward.from_starts(number, starts) + self._after(number)
        for start, row in zip(map(int, starts), costs, strict=True):
            above = self._above(number, start)
            for end in map(int, np.flatnonzero(row <= self._most)):
                yield (*above, Region(start, end), *self._below(number, end)), int(row[end])

    def _other(self, number: int) -> int:
        """The number of a hunk from the other end."""
        return len(self._forward.hunks) - 1 - number

    def _through_start(self, number: int) -> Cells:
        """The cost of all hunks by where one starts."""
        backward = self._backward.after[self._other(number)]
        return _cost(self._forward.before[number]) + _cost(backward)[::-1]

    def _after(self, number: int) -> Cells:
        """The cost of the hunks below one by where that ends."""
        return _cost(self._backward.before[self._other(number)])[::-1]

    def _above(self, number: int, start: int) -> list[Region]:
        """The regions of the hunks above one that starts there."""
        return self._forward.until(number - 1, self._forward.start_of_gap(number, start))

    def _below(self, number: int, end: int) -> Iterator[Region]:
        """The regions of the hunks below one that ends there."""
        size, other = len(self._forward.lines) - 1, self._other(number)
        gap = self._backward.start_of_gap(other, size - end)
        return _flipped(self._backward.until(other - 1, gap), size)


def _flipped(regions: Sequence[Region], size: int) -> Iterator[Region]:
    return (Region(size - region.end, size - region.start) for region in reversed(regions))


class _Pass:
    """The costs of hunks one by one, from one end of a file to the other. A cell holds a cost
    and, in its low bits, the line that it comes from."""

    def __init__(
        self,
        lines_gone: tuple[Cells, Cells],
        costs: Sequence[Sequence[LineCosts]],
        is_open: tuple[bool, bool],
        is_whole: bool,
        is_backward: bool = False,
    ) -> None:
        self.gone = lines_gone
        self.costs = costs
        self.is_open = is_open
        self.is_whole = is_whole
        self.is_backward = is_backward
        size = len(lines_gone[0]) - 1
        self.lines = np.arange(size + 1, dtype=np.int64)
        self.hunks: list[HunkPass] = []
        self.before: list[Cells] = []
        """By where a hunk starts: the cost of those before it, and where the last one ends."""
        self.after: list[Cells] = []
        """By where a hunk ends: the cost up to there, and where it starts."""
        costs_above = np.zeros(size + 1, np.int64)
        if is_whole and is_open[0]:
            costs_above[1:] = NEVER << SHIFT
        for number, hunk in enumerate(costs):
            if number:
                # A place holder takes lines for nothing.
                ends_above = (_cost(self.after[-1]) << SHIFT) + self.lines
                costs_above = np.minimum.accumulate(ends_above)
            self.before.append(costs_above)
            closes = number == len(costs) - 1 and is_open[1]
            ends = FileEnds(not number and is_open[0], closes, is_whole)
            self.hunks.append(HunkPass(hunk, lines_gone, ends, is_backward))
            cells = (_cost(costs_above) << SHIFT) + self.lines
            self.after.append(self.hunks[-1].region_ends(cells))

    def flipped(self) -> _Pass:
        """The pass from the other end."""
        few, many = (each[-1] - each[::-1] for each in self.gone)
        costs = [hunk[::-1] for hunk in self.costs[::-1]]
        return _Pass((few, many), costs, self.is_open[::-1], self.is_whole, not self.is_backward)

    def until(self, number: int, end: int) -> list[Region]:
        """The regions of the hunks up to one that ends there."""
        reversed_regions: list[Region] = []
        while number >= 0:
            start = int(self.after[number][end] & LINE_OF)
            reversed_regions.append(Region(start, end))
            end = self.start_of_gap(number, start)
            number -= 1
        return reversed_regions[::-1]

    def from_starts(self, number: int, starts: Cells) -> Cells:
        """By where a hunk ends, for each line that it starts at: the cost up to there."""
        rows = np.arange(len(starts))
        cells = np.full((len(starts), len(self.lines)), NEVER << SHIFT, np.int64)
        cells[rows, starts] = _cost(self.before[number][starts]) << SHIFT
        return _cost(self.hunks[number].region_ends(cells))

    def start_of_gap(self, number: int, start: int) -> int:
        """Return where the hunk before one ends that starts there."""
        return int(self.before[number][start] & LINE_OF)


def _cost(cells: Cells) -> Cells:
    return cells >> SHIFT
