"""Aligns the hunks of a snippet with the lines of a file: an edit distance over lines in which
a place holder between two hunks takes lines for nothing. Each hunk then stands for a region
of the file, which it replaces whole.

The rows of the table are NumPy vectors over the file's lines, so that a cell costs nanoseconds. A
cell holds its cost and, in its low bits, the line at which its region starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Cells = NDArray[np.int64]

LINE = 100
"""A line of code that is added and that the file has nowhere. All costs count in hundredths."""
AGAIN = 200
"""A line of code that is added although the file has it."""
SIGNS, SIGNS_AGAIN = 60, 80
"""A line without a word, such as a closing bracket."""
BLANK, BLANK_AGAIN = 20, 30
SPACING = 10
"""A line that differs from the file's in its white space."""
GONE, GONE_BLANK, GONE_AT_ALL = 30, 10, 40
"""A line of the file that goes, and what it costs besides that any go there."""
GONE_OF_MANY, GONE_MANY = 5, 200
"""The same of a long run of lines."""
NO_ANCHOR = 150
"""The first or last line of a hunk is no line of the file."""
OUT_OF_SCOPE = 150
"""A hunk stands behind the block that the line above it opens, and is indented as if in it."""
_SHIFT = 24
_PLACE = (1 << _SHIFT) - 1
_NEVER = 1 << 30
_WORD = re.compile(r"\w")
_GOES_ON = re.compile(r"[)\]]|\}.*\{\s*$")


class Region(NamedTuple):
    """Lines of the file, from 0, the end exclusive."""

    start: int
    end: int


class Alignment(NamedTuple):
    """A region for each hunk, in order."""

    cost: int
    regions: tuple[Region, ...]


class FileLines:
    """The lines of a file, without their ends, as they are compared."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._raw: dict[str, int] = {}
        self._spaced: dict[str, int] = {}
        raw = [self._raw.setdefault(line.rstrip(), len(self._raw)) for line in lines]
        texts = [spacing_aside(line) for line in lines]
        spaced = [self._spaced.setdefault(text, len(self._spaced)) for text in texts]
        self.raw_numbers = np.array(raw, np.int64)
        self.numbers = np.array(spaced, np.int64)
        """The same of lines that are equal but for white space."""
        costs = np.array([GONE if text else GONE_BLANK for text in texts], np.int64)
        self.gone = np.concatenate((np.zeros(1, np.int64), np.cumsum(costs)))
        """What it costs that the first lines go, by their number."""
        self._depths = np.array([depth(line) for line in lines], np.int64)
        self._may_end = np.array([bool(one) and not _GOES_ON.match(one) for one in texts], bool)

    def number(self, line: str) -> int:
        """The number of lines that are equal but for white space, -1 where there is none."""
        return self._spaced.get(spacing_aside(line), -1)

    def raw_number(self, line: str) -> int:
        """The number of lines that are equal, -1 where there is none."""
        return self._raw.get(line.rstrip(), -1)

    def block_end(self, line: int) -> int:
        """Where the block ends that a line opens: at the next one that is no deeper."""
        below = self._may_end[line + 1 :] & (self._depths[line + 1 :] <= self._depths[line])
        return line + 1 + int(below.argmax()) if below.any() else len(self.lines)


def spacing_aside(line: str) -> str:
    """A line with one blank for each run of them, and none around."""
    return " ".join(line.split())


def depth(line: str) -> int:
    """The width of a line's indentation."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def alignments(
    file: FileLines,
    hunks: Sequence[Sequence[str]],
    *,
    open_top: bool,
    open_end: bool,
    within: int,
) -> list[Alignment]:
    """The best alignment, and of others the best for each line at which a hunk can start or end
    otherwise, as long as they cost at most ``within`` more; the cheapest first.

    open_top, open_end: no place holder stands above the first hunk, or below the last.
    """
    count, size = len(hunks), len(file.lines)
    costs = [[_Costs(file, line) for line in hunk] for hunk in hunks]
    borders = zip(costs, hunks, hunks[1:], strict=False)
    blocks = [_blocks(file, *border) for border in borders]
    forward = _Pass(file.gone, costs, blocks, (open_top, open_end))
    backward = forward.flipped()
    found: dict[tuple[Region, ...], int] = {}
    least = int(_cost(forward.behind[-1]).min())
    for number in range(count):
        other = count - 1 - number
        through = _cost(forward.behind[number]) + _cost(backward.before[other])[::-1]
        for end in np.flatnonzero(through <= least + within):
            rest = backward.until(other - 1, backward.start_of_gap(other, size - int(end)))
            regions = (*forward.until(number, int(end)), *_flipped(rest, size))
            found.setdefault(regions, int(through[end]))
        through = _cost(forward.before[number]) + _cost(backward.behind[other])[::-1]
        for start in np.flatnonzero(through <= least + within):
            above = forward.until(number - 1, forward.start_of_gap(number, int(start)))
            rest = backward.until(other, size - int(start))
            found.setdefault((*above, *_flipped(rest, size)), int(through[start]))
    return sorted(Alignment(cost, regions) for regions, cost in found.items())


def _flipped(regions: Sequence[Region], size: int) -> Iterator[Region]:
    return (Region(size - one.end, size - one.start) for one in reversed(regions))


class _Costs:
    """What a line of a snippet costs."""

    def __init__(self, file: FileLines, line: str) -> None:
        number = file.number(line)
        self.instead = np.full(len(file.lines), _NEVER, np.int64)
        """In place of each line of the file."""
        if number >= 0:
            self.instead[file.numbers == number] = SPACING
            self.instead[file.raw_numbers == file.raw_number(line)] = 0
        self.is_blank = not line.strip()
        is_known = number >= 0
        self.added = AGAIN if is_known else LINE
        """As a further line."""
        if self.is_blank:
            self.added = BLANK_AGAIN if is_known else BLANK
        elif not _WORD.search(line):
            self.added = SIGNS_AGAIN if is_known else SIGNS


def _blocks(
    file: FileLines, costs: Sequence[_Costs], above: Sequence[str], below: Sequence[str]
) -> list[Region]:
    """Where the last line of a hunk can open a block for the hunk below it, which is indented
    as if it stood in one: from behind the line up to the block's end."""
    inner = min((depth(line) for line in below if line.strip()), default=0)
    if not above[-1].strip() or depth(above[-1]) >= inner:
        return []
    lines = np.flatnonzero(costs[-1].instead < _NEVER)
    return [Region(int(line) + 1, file.block_end(int(line))) for line in lines]


class _Pass:
    """The costs of hunks one by one, from one end of a file to the other. A cell holds a cost
    and, in its low bits, the line that it comes from."""

    def __init__(
        self,
        gone: Cells,
        costs: Sequence[Sequence[_Costs]],
        blocks: Sequence[Sequence[Region]],
        is_open: tuple[bool, bool],
        is_backward: bool = False,
    ) -> None:
        self.gone = gone
        self.costs = costs
        self.blocks = blocks
        self.is_open = is_open
        self.is_backward = is_backward
        size = len(gone) - 1
        self.places = np.arange(size + 1, dtype=np.int64)
        self.before: list[Cells] = []
        """By where a hunk starts: the cost of those before it, and where the last one ends."""
        self.behind: list[Cells] = []
        """By where a hunk ends: the cost up to there, and where it starts."""
        gap = np.zeros(size + 1, np.int64)
        for number, hunk in enumerate(costs):
            if number:
                gap = self._gap(_cost(self.behind[-1]), blocks[number - 1])
            self.before.append(gap)
            is_last = number == len(costs) - 1
            cells = (_cost(gap) << _SHIFT) + self.places
            self.behind.append(self._hunk(cells, hunk, is_first=not number, is_last=is_last))

    def flipped(self) -> _Pass:
        """The pass from the other end."""
        size = len(self.gone) - 1
        gone = self.gone[-1] - self.gone[::-1]
        blocks = [
            [Region(size - one.end, size - one.start) for one in border] for border in self.blocks
        ]
        costs = [hunk[::-1] for hunk in self.costs[::-1]]
        return _Pass(gone, costs, blocks[::-1], self.is_open[::-1], not self.is_backward)

    def until(self, number: int, end: int) -> list[Region]:
        """The regions of the hunks up to one that ends there."""
        found: list[Region] = []
        while number >= 0:
            start = int(self.behind[number][end] & _PLACE)
            found.append(Region(start, end))
            end = self.start_of_gap(number, start)
            number -= 1
        return found[::-1]

    def start_of_gap(self, number: int, start: int) -> int:
        """Where the hunk before one ends that starts there."""
        return int(self.before[number][start] & _PLACE)

    def _gap(self, costs: Cells, blocks: Sequence[Region]) -> Cells:
        """The lines that a place holder takes, for nothing."""
        cells = (costs << _SHIFT) + self.places
        if not blocks:
            return np.minimum.accumulate(cells)
        if self.is_backward:
            # From a hunk in the block to the line that opens it.
            openings = np.array([block.end for block in blocks])
            out = np.minimum.accumulate(cells)
            best = out.copy()
            best[openings] += OUT_OF_SCOPE << _SHIFT
            for block in blocks:
                best[block.end] = min(best[block.end], cells[block.start : block.end + 1].min())
            return best
        out = cells.copy()
        out[[block.start for block in blocks]] += OUT_OF_SCOPE << _SHIFT
        best = np.minimum.accumulate(out)
        for block in blocks:
            inside = best[block.start : block.end + 1]
            np.minimum(inside, cells[block.start], out=inside)
        return best

    def _hunk(
        self, cells: Cells, hunk: Sequence[_Costs], *, is_first: bool, is_last: bool
    ) -> Cells:
        """By where a hunk ends: what it costs, given that by where it starts.

        Lines above the first that is one of the file, and those below the last, are put in beside
        it; they replace nothing, unless the file begins or ends with them.
        """
        above = cells
        """The costs as long as no line was one of the file."""
        inner = np.full_like(cells, _NEVER << _SHIFT)
        """The same behind such a line, and of a line that is one."""
        below, matched = inner, inner
        """The same if no further line is one."""
        has_code = [not line.is_blank for line in hunk]
        for number, line in enumerate(hunk):
            added = line.added << _SHIFT
            no_anchor = (NO_ANCHOR if any(has_code[number:]) else 0) << _SHIFT
            below = np.minimum(below, matched + no_anchor) + added
            inner = self._with_lines_gone(inner)
            from_above = above + ((NO_ANCHOR if any(has_code[:number]) else 0) << _SHIFT)
            if is_first and number and self.is_open[0]:
                top = np.full_like(cells, _NEVER << _SHIFT)
                top[0] = above[0]
                from_above = np.minimum(from_above, np.minimum(top, self._with_lines_gone(top)))
            instead = line.instead[::-1] if self.is_backward else line.instead
            best = np.minimum(inner, from_above)
            matched = np.full_like(cells, _NEVER << _SHIFT)
            matched[1:] = best[:-1] + (instead << _SHIFT)
            inner = np.minimum(inner + added, matched)
            above = above + added
        no_anchor = (NO_ANCHOR if any(has_code) else 0) << _SHIFT
        ends = np.minimum(np.minimum(matched, below), above + 2 * no_anchor)
        if is_last and self.is_open[1]:
            ends[-1] = min(ends[-1], self._with_lines_gone(inner)[-1], above[-1] + no_anchor)
        if is_first and self.is_open[0]:
            ends[0] = min(ends[0], above[0] + no_anchor)
        return ends

    def _with_lines_gone(self, cells: Cells) -> Cells:
        few = self.gone << _SHIFT
        many = (self.places * GONE_OF_MANY) << _SHIFT
        fewer = np.minimum.accumulate(cells - few) + few + (GONE_AT_ALL << _SHIFT)
        more = np.minimum.accumulate(cells - many) + many + (GONE_MANY << _SHIFT)
        return np.minimum(cells, np.minimum(fewer, more))


def _cost(cells: Cells) -> Cells:
    return cells >> _SHIFT
