"""Aligns the hunks of a snippet with the lines of a file: an edit distance over lines in which
a place holder between two hunks takes lines for nothing. Each hunk then stands for a region
of the file, which it replaces whole.

The rows of the table are NumPy vectors over the file's lines, so that a cell costs nanoseconds. A
cell holds its cost and, in its low bits, the line at which its region starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Cells = NDArray[np.int64]

ADDED_AT_ALL, LINE, AGAIN, SIGNS, BLANK = 30, 12, 25, 10, 4
"""What it costs that lines are added in a row, and for each: a line of code that the file has
nowhere, one that it has, one without a word, an empty one."""
SPACING = 10
"""A line that differs from the file's in its white space."""
GONE_AT_ALL, GONE, GONE_BLANK = 40, 12, 4
"""What it costs that lines of the file go in a row, and for each."""
GONE_MANY, GONE_OF_MANY = 160, 2
"""The same of a long run of lines."""
GONE_AT_END = 60
"""What it costs besides that the first or last lines of the file go."""
NO_ANCHOR, KNOWN_NO_ANCHOR = 250, 400
"""The first or last line of a hunk is no line of the file; or it is one, elsewhere."""
WEAK_ANCHOR = 100
"""Only empty lines or brackets at a border of a hunk are lines of the file."""
KNOWN_BY_WEAK_ANCHOR = 50
"""And beside them stands a line that is one of the file, elsewhere."""
LOOSE_BLANK = 130
"""An empty line at the border of a hunk is none of the file."""
DEFINED_TWICE = 120
"""A definition is added of which the file has one of that name."""
CHANGED = 400
"""A first or last line in place of one that is wholly different; one that is more alike costs less
by that much."""
CHANGED_INSIDE = 0.1
"""The share of that for lines that are neither the first nor the last."""
LEAST_ALIKE = 0.5
ALIKE_AS_PART = 0.6
"""So alike are two lines of which one has all words of the other."""
SAME_NAME = 30
"""A line that defines what the file's line defines."""
OUT_OF_SCOPE = 150
"""A hunk stands behind the block that the line above it opens, and is indented as if in it."""
_SHIFT = 24
_PLACE = (1 << _SHIFT) - 1
_NEVER = 1 << 30
_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\w+|[^\w\s]")
_DEFINITION = re.compile(
    r"\s*\(?(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|virtual|"
    r"override|inline|unsafe|extern)\s+)*"
    r"(?:def|class|function\*?|func|fn|sub|interface|struct|enum|trait|module|method|proc|defun|"
    r"impl)\b\s*(?:\([^)]*\)\s*)?(?P<name>[\w$]+)"
)
_METHOD = re.compile(
    r"\s*(?:[\w<>\[\],.*&]+\s+)*(?!(?:if|for|while|switch|catch|with|return|elif|"
    r"else)\b)(?P<name>[\w$]+)"
    r"\s*\([^()]*\)[^(){};=]*\{\s*$"
)
"""As Java, C and JavaScript write them."""
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

    def alike(self, line: str, share: float) -> Cells:
        """What it costs to have a line in place of each line of the file that is like it; a share
        of that."""
        all_numbers, all_lines = self._word_table
        numbers = [self._words.get(word, -1) for word in set(_WORDS.findall(line))]
        size = len(self.lines)
        shared = np.bincount(all_lines[np.isin(all_numbers, numbers)], minlength=size)
        counts = np.bincount(all_lines, minlength=size)
        alike = 2.0 * shared / np.maximum(len(numbers) + counts, 1)
        held = (shared == np.minimum(len(numbers), counts)) & (shared > 1)
        alike = np.where(held, np.maximum(alike, ALIKE_AS_PART), alike)
        costs = np.where(alike >= LEAST_ALIKE, np.rint(share * CHANGED * (1.0 - alike)), _NEVER)
        return costs.astype(np.int64)

    @cached_property
    def _words(self) -> dict[str, int]:
        return {}

    @cached_property
    def _word_table(self) -> tuple[Cells, Cells]:
        numbers: list[int] = []
        lines: list[int] = []
        for at, line in enumerate(self.lines):
            words = set(_WORDS.findall(line))
            numbers += [self._words.setdefault(word, len(self._words)) for word in words]
            lines += [at] * len(words)
        return np.array(numbers, np.int64), np.array(lines, np.int64)

    def defining(self, name: str) -> list[int]:
        """The lines that define a name."""
        return self._definitions.get(name, [])

    @cached_property
    def _definitions(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines):
            if name := defined_name(line):
                found.setdefault(name, []).append(number)
        return found

    def block_end(self, line: int) -> int:
        """Where the block ends that a line opens: at the next one that is no deeper."""
        below = self._may_end[line + 1 :] & (self._depths[line + 1 :] <= self._depths[line])
        return line + 1 + int(below.argmax()) if below.any() else len(self.lines)


def spacing_aside(line: str) -> str:
    """A line with one blank for each run of them, and none around."""
    return " ".join(line.split())


def defined_name(line: str) -> str:
    """What a line begins to define, such as a function; nothing where it defines nothing."""
    found = _DEFINITION.match(line) or _METHOD.match(line)
    return found["name"] if found else ""


def depth(line: str) -> int:
    """The width of a line's indentation."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def alignments(
    file: FileLines,
    hunks: Sequence[Sequence[str]],
    *,
    open_top: bool,
    open_end: bool,
    is_whole: bool = False,
    within: int,
) -> list[Alignment]:
    """The best alignment, and of others the best for each line at which a hunk can start or end
    otherwise, as long as they cost at most ``within`` more; the cheapest first.

    open_top, open_end: no place holder stands above the first hunk, or below the last. is_whole:
    the hunk stands at the file's end then.
    """
    count, size = len(hunks), len(file.lines)
    costs = [_costs_of(file, hunk) for hunk in hunks]
    borders = zip(costs, hunks, hunks[1:], strict=False)
    blocks = [_blocks(file, *border) for border in borders]
    forward = _Pass(file.gone, costs, blocks, (open_top, open_end), is_whole)
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


def _costs_of(file: FileLines, hunk: Sequence[str]) -> list[_Costs]:
    """The costs of a hunk's lines; those that are none of the file's may be changed ones."""
    code = [number for number, line in enumerate(hunk) if line.strip()]
    costs = [_Costs(file, line) for line in hunk]
    for number in code:
        if not costs[number].is_known and not costs[number].is_weak:
            share = 1.0 if number in (0, len(hunk) - 1) else CHANGED_INSIDE
            alike = file.alike(hunk[number], share)
            costs[number].instead = np.minimum(costs[number].instead, alike)
    return costs


class _Costs:
    """What a line of a snippet costs."""

    def __init__(self, file: FileLines, line: str) -> None:
        number = file.number(line)
        self.instead = np.full(len(file.lines), _NEVER, np.int64)
        """In place of each line of the file."""
        self.is_known = number >= 0
        if self.is_known:
            self.instead[file.numbers == number] = SPACING
            self.instead[file.raw_numbers == file.raw_number(line)] = 0
        self.is_weak = _WORD.search(line) is None
        """Whether it is empty, or brackets alone, and stands all over the file."""
        self.is_blank = not line.strip()
        self.added = AGAIN if self.is_known else LINE
        """As a further line."""
        if self.is_weak:
            self.added = BLANK if self.is_blank else SIGNS
        name = defined_name(line)
        for at in file.defining(name) if name else ():
            self.added = DEFINED_TWICE
            self.instead[at] = min(self.instead[at], SAME_NAME)


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
        is_whole: bool,
        is_backward: bool = False,
    ) -> None:
        self.gone = gone
        self.costs = costs
        self.blocks = blocks
        self.is_open = is_open
        self.gone_at_end = (0 if is_whole else GONE_AT_END) << _SHIFT
        self.is_whole = is_whole
        self.is_backward = is_backward
        size = len(gone) - 1
        self.places = np.arange(size + 1, dtype=np.int64)
        self.before: list[Cells] = []
        """By where a hunk starts: the cost of those before it, and where the last one ends."""
        self.behind: list[Cells] = []
        """By where a hunk ends: the cost up to there, and where it starts."""
        gap = np.zeros(size + 1, np.int64)
        if is_whole and is_open[0]:
            gap[1:] = _NEVER << _SHIFT
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
        return _Pass(
            gone, costs, blocks[::-1], self.is_open[::-1], self.is_whole, not self.is_backward
        )

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
        never = np.full_like(cells, _NEVER << _SHIFT)
        at_all, weak_anchor = ADDED_AT_ALL << _SHIFT, WEAK_ANCHOR << _SHIFT
        head, tail = _no_anchor(hunk) << _SHIFT, _no_anchor(hunk[::-1]) << _SHIFT
        strong = [number for number, line in enumerate(hunk) if not line.is_weak]
        # The costs where no line was one of the file yet, and where no further one is.
        above, below = cells, never
        # Where only weak lines were; where lines were that are not weak, and since then all; where
        # weak ones were since lines were added or went; and where the last line is added.
        weak, clean, mended, added = never, never, never, never
        for number, line in enumerate(hunk):
            is_loose = bool(strong) and strong[0] < number
            is_open = bool(strong) and strong[-1] >= number
            start = above + head if is_loose else above
            top = never
            if is_first and self.is_open[0]:
                top = never.copy()
                top[0] = above[0]
                top = self._with_lines_gone(top) + self.gone_at_end
            inner = self._with_lines_gone(_least(clean, mended, added, weak + weak_anchor))
            if is_open:
                below = np.minimum(below, _least(clean, mended, weak + weak_anchor) + at_all + tail)
            else:
                below = np.minimum(below, _least(clean, mended + weak_anchor, weak) + at_all)
            last = _border(line) if line is hunk[-1] else 0
            below = below + ((line.added + last) << _SHIFT)
            # A line of context that is added although the file has it, next to a weak one.
            again = (KNOWN_BY_WEAK_ANCHOR << _SHIFT) if line.is_known else 0
            begins = strong[:1] == [number] and not (is_first and self.is_open[0])
            from_weak = weak + weak_anchor + (again if begins else 0)
            inner_added = self._with_lines_gone(_least(clean, mended, added, from_weak))
            added = np.minimum(added, inner_added + at_all) + (line.added << _SHIFT)
            if strong[-1:] == [number] and not (is_last and self.is_open[1]):
                added = added + again
            instead = (line.instead[::-1] if self.is_backward else line.instead) << _SHIFT
            if line.is_weak:
                weak = _matched(weak if is_loose else _least(weak, start), instead)
                mended = _matched(_least(inner, top, start if is_loose else never), instead)
                clean = _matched(clean, instead)
            else:
                clean = _matched(_least(weak, inner, top, start), instead)
                weak = mended = never
            first = 0 if number else ADDED_AT_ALL + _border(line)
            above = above + ((line.added + first) << _SHIFT)
        ends = _least(clean, weak, mended + weak_anchor, below, above + head + tail)
        if is_last and self.is_open[1]:
            inner = _least(clean, mended, added, weak + weak_anchor)
            gone = int(self._with_lines_gone(inner)[-1]) + self.gone_at_end
            ends[-1] = min(ends[-1], inner[-1], gone, above[-1] + head)
        if is_first and self.is_open[0]:
            ends[0] = min(ends[0], above[0] + tail)
        if is_last and self.is_open[1] and self.is_whole:
            ends[:-1] = _NEVER << _SHIFT
        return ends

    def _with_lines_gone(self, cells: Cells) -> Cells:
        few = self.gone << _SHIFT
        many = (self.places * GONE_OF_MANY) << _SHIFT
        fewer = np.minimum.accumulate(cells - few) + few + (GONE_AT_ALL << _SHIFT)
        more = np.minimum.accumulate(cells - many) + many + (GONE_MANY << _SHIFT)
        return np.minimum(cells, np.minimum(fewer, more))


def _matched(cells: Cells, instead: Cells) -> Cells:
    """The costs one line on, where a line is one of the file."""
    found = np.full_like(cells, _NEVER << _SHIFT)
    found[1:] = cells[:-1] + instead
    return found


def _least(first: Cells, *others: Cells) -> Cells:
    for other in others:
        first = np.minimum(first, other)
    return first


def _no_anchor(hunk: Sequence[_Costs]) -> int:
    """What it costs that the first line of a hunk which is not weak is added."""
    known = next((line.is_known for line in hunk if not line.is_weak), None)
    return {None: 0, True: KNOWN_NO_ANCHOR, False: NO_ANCHOR}[known]


def _border(line: _Costs) -> int:
    """What it costs besides that a weak line at the border of a hunk is added."""
    if line.is_blank:
        return LOOSE_BLANK
    return WEAK_ANCHOR if line.is_weak and line.is_known else 0


def _cost(cells: Cells) -> Cells:
    return cells >> _SHIFT
