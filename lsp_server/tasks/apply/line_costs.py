"""What single lines of a snippet cost against those of a file: in their place, or added.

The units are such that a line of code which is added among others costs twelve.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from lsp_server.tasks.apply.definitions import assigned_name, defined_name, depth

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
NO_STRONG_LINE = 260
"""Lines go, or are put in between, though all lines of the hunk that are the file's are weak."""
GONE_AT_END = 60
"""What it costs besides that the first or last lines of the file go."""
NO_ANCHOR, KNOWN_NO_ANCHOR, NEW_NO_ANCHOR = 250, 400, 60
"""The first or last line of a hunk is no line of the file; it is one, elsewhere; it begins a new
definition."""
KNOWN_AT_END = 100
"""It is one, elsewhere, and is added as the first or last line of the file."""
ALONE_AT_END = 200
"""And the hunk is put in above or below all lines of the file."""
WEAK_ANCHOR = 100
"""Only empty lines or brackets at a border of a hunk are lines of the file."""
LOOSE_BLANK = 130
"""An empty line at the border of a hunk is none of the file."""
DEFINED_TWICE = 120
"""A definition is added of which the file has one of that name."""
CHANGED = 700
"""A first or last line in place of one that is wholly different; one that is more alike costs less
by that much."""
CHANGED_INSIDE = 0.06
"""The share of that for lines that are neither the first nor the last."""
LEAST_ALIKE = 0.5
ALIKE_IN_PART = 0.6
"""So alike are two lines of which one has all words of the other, or that begin with one word."""
SAME_NAME, SAME_KEY = 30, 60
"""A line that defines what the file's line defines; a first or last one that gives it another
value."""
OUT_OF_SCOPE = 150
"""A hunk stands behind the block that the line above it opens, and is indented as if in it."""
OTHER_DEPTH = 50
"""What is left out first is not as deep as the place holder for it."""
NEVER = 1 << 30
FAR = 1 << 18
"""A line that stands for a certain line of the file is added."""
_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\w+|[^\w\s]")
_WORDS_OF_LINES = re.compile(rf"{_WORDS.pattern}|\n")
_FIRST_WORD = re.compile(r"\s*\w+")
_GOES_ON = re.compile(r"[)\]]|\}.*\{\s*$")
"""What begins a line at which no block ends."""


class FileLines:
    """The lines of a file, without their ends, as they are compared. What depends on a line's text
    alone is computed once for each different line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._raw: dict[str, int] = {}
        self._spaced: dict[str, int] = {}
        raw = [self._raw.setdefault(line.rstrip(), len(self._raw)) for line in lines]
        self._different = list(self._raw)
        texts = [spacing_aside(line) for line in self._different]
        spaced = [self._spaced.setdefault(text, len(self._spaced)) for text in texts]
        self.raw_numbers = np.array(raw, np.int64)
        self.numbers = np.array(spaced, np.int64)[self.raw_numbers]
        """The same of lines that are equal but for white space."""
        self._is_blank = np.array([not text for text in texts], bool)[self.raw_numbers]

    @cached_property
    def _depths(self) -> Cells:
        widths = [
            depth(line) if "\t" in line else len(line) - len(line.lstrip())
            for line in self._different
        ]
        return np.array(widths, np.int64)[self.raw_numbers]

    @property
    def gone(self) -> tuple[Cells, Cells]:
        """What it costs that the first lines go, by their number: of a few lines, of many."""
        costs = np.where(self._is_blank, GONE_BLANK, GONE)
        few = np.concatenate((np.zeros(1, np.int64), np.cumsum(costs)))
        return few, np.arange(len(self.lines) + 1, dtype=np.int64) * GONE_OF_MANY

    def left_out(self, depth_left_out: int | None) -> Cells:
        """What it costs that a place holder of a depth stands for what begins at each line."""
        if depth_left_out is None:
            return np.zeros(len(self.lines) + 1, np.int64)
        return np.where(self._depths_of_code == depth_left_out, 0, OTHER_DEPTH)

    @cached_property
    def _depths_of_code(self) -> Cells:
        """Return how deep each line is, or of an empty one the next that is not; -1 at the end."""
        size = len(self.lines)
        own = np.where(self._is_blank, size, np.arange(size))
        following = np.minimum.accumulate(np.append(own, size)[::-1])[::-1]
        return np.append(self._depths, -1)[following]

    def number(self, line: str) -> int:
        """The number of lines that are equal but for white space, -1 where there is none."""
        return self._spaced.get(spacing_aside(line), -1)

    def raw_number(self, line: str) -> int:
        """The number of lines that are equal, -1 where there is none."""
        return self._raw.get(line.rstrip(), -1)

    def alike(self, line: str, share: float) -> Cells:
        """What it costs to have a line in place of each line of the file that is like it; a share
        of that."""
        numbers = [self._words.get(word, -1) for word in set(_WORDS.findall(line))]
        is_shared = np.zeros(len(self._words) + 1, bool)
        is_shared[numbers] = True
        is_shared[-1] = False
        held_words, held_by, counts = self._word_table
        shared = np.bincount(held_by[is_shared[held_words]], minlength=len(counts))
        alike = 2.0 * shared / np.maximum(len(numbers) + counts, 1)
        held = (shared == np.minimum(len(numbers), counts)) & (shared > 1)
        alike = np.where(held | self._begin_as(line), np.maximum(alike, ALIKE_IN_PART), alike)
        costs = np.where(alike >= LEAST_ALIKE, np.rint(share * CHANGED * (1.0 - alike)), NEVER)
        return costs.astype(np.int64)[self.raw_numbers]

    def _begin_as(self, line: str) -> NDArray[np.bool_]:
        """Return which of the different lines have the indentation and the first word of a line."""
        found = _FIRST_WORD.match(line)
        if found is None:
            return np.zeros(len(self._different), bool)
        begins, different = found.group(), self._different
        begun = [n for n, other in enumerate(different) if other.startswith(begins)]
        is_begun = np.zeros(len(different), bool)
        is_begun[[n for n in begun if not _WORD.match(different[n], len(begins))]] = True
        return is_begun

    @cached_property
    def _tokens(self) -> list[str]:
        """The words and signs of the different lines, with line feeds between the lines."""
        return _WORDS_OF_LINES.findall("\n".join(self._different))

    @cached_property
    def _words(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(dict.fromkeys(["\n", *self._tokens]))}

    @cached_property
    def _word_table(self) -> tuple[Cells, Cells, Cells]:
        """Which words are held, each once in a line; the different line that holds each; and how
        many each of those has."""
        words = np.fromiter(map(self._words.__getitem__, self._tokens), np.int64)
        is_end = words == 0
        count = len(self._words)
        pairs = np.unique((np.cumsum(is_end) * count + words)[~is_end])
        lines, words = np.divmod(pairs, count)
        return words, lines, np.bincount(lines, minlength=len(self._different))

    def defining(self, name: str) -> list[int]:
        """The lines that define a name."""
        return self._those(
            [n for n in self._holding(name) if defined_name(self._different[n]) == name]
        )

    def assigning(self, name: str) -> list[int]:
        """The lines that give a value to a name."""
        return self._those(
            [n for n in self._holding(name) if assigned_name(self._different[n]) == name]
        )

    def _holding(self, text: str) -> list[int]:
        """The numbers of the different lines that hold a text."""
        return [number for number, line in enumerate(self._different) if text in line]

    def _those(self, numbers: list[int]) -> list[int]:
        """The lines that are different lines of some numbers."""
        if not numbers:
            return []
        return [int(line) for line in np.flatnonzero(np.isin(self.raw_numbers, numbers))]

    def block_end(self, line: int) -> int:
        """Return where the block ends that a line opens: at the next one that is no deeper."""
        ends = np.flatnonzero(self._depths[line + 1 :] <= self._depths[line]) + line + 1
        found = (int(end) for end in ends if not self._is_blank[end])
        return next(
            (n for n in found if not _GOES_ON.match(self.lines[n].lstrip())), len(self.lines)
        )


def spacing_aside(line: str) -> str:
    """A line with one blank for each run of them, and none around."""
    return " ".join(line.split())


def line_costs(
    file: FileLines,
    hunk: Sequence[str],
    anchors: Mapping[int, int] = MappingProxyType({}),
    gone: Collection[int] = (),
) -> list[LineCosts]:
    """Return the costs of a hunk's lines; those that are none of the file's may be changed ones.
    ``anchors``: lines that are certain ones of the file; ``gone``: lines that have to be some."""
    code = [number for number, line in enumerate(hunk) if line.strip()]
    costs = [LineCosts(file, line) for line in hunk]
    for number in code:
        cost = costs[number]
        if cost.is_changed:
            share = 1.0 if number in (0, len(hunk) - 1) else CHANGED_INSIDE
            alike = file.alike(hunk[number], share)
            cost.instead = np.minimum(cost.instead, alike)
            if share == 1.0 and (key := assigned_name(hunk[number])):
                lines = file.assigning(key)
                cost.instead[lines] = np.minimum(cost.instead[lines], SAME_KEY)
    for number, line in anchors.items():
        if line >= 0:
            costs[number].pin(line)
        else:
            costs[number].add_only()
    for number in gone:
        costs[number].added = FAR if costs[number].is_known else costs[number].added
    return costs


class LineCosts:
    """What a line of a snippet costs."""

    def __init__(self, file: FileLines, line: str) -> None:
        number = file.number(line)
        self.instead = np.full(len(file.lines), NEVER, np.int64)
        """In place of each line of the file."""
        self.is_known = number >= 0
        if self.is_known:
            self.instead[file.numbers == number] = SPACING
            self.instead[file.raw_numbers == file.raw_number(line)] = 0
        self.is_added = False
        """The line is one of a new definition."""
        self.is_exact = file.raw_number(line) >= 0
        self.is_weak = _WORD.search(line) is None
        """Whether it is empty, or brackets alone, and stands all over the file."""
        self.is_blank = not line.strip()
        self.added = AGAIN if self.is_known else LINE
        """As a further line."""
        if self.is_weak:
            self.added = BLANK if self.is_blank else SIGNS
        self.name = defined_name(line)
        self.is_changed = not (self.is_known or self.is_weak or self.name)
        """Whether it can be a line of the file only if that is changed."""
        definitions = file.defining(self.name) if self.name else []
        self.is_new_definition = bool(self.name) and not definitions
        for at in definitions:
            self.added = DEFINED_TWICE
            self.instead[at] = min(self.instead[at], SAME_NAME)

    def add_only(self) -> None:
        """Have the line stand for no line of the file."""
        self.instead[:] = NEVER
        self.is_changed = False
        self.is_added = True

    def pin(self, line: int) -> None:
        """Have the line stand for ``line`` of the file and no other."""
        cost = min(int(self.instead[line]), SAME_NAME)
        self.instead[:] = NEVER
        self.instead[line] = cost
        self.added = FAR
        self.is_known = True
        self.is_weak = self.is_changed = self.is_new_definition = False
