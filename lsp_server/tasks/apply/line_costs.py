"""What single lines of a snippet cost against those of a file: in their place, or added.

The numbers, and ``MARGIN``, are fitted by ``python -m tests.benchmarks apply --parts fit``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from lsp_server.tasks.apply.definitions import assigned_name, defined_name, is_import

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Cells = NDArray[np.int64]

LINE, RUN = 12, 40
"""What it costs that lines are added or go, for each line of code and for each row of them: twice
that for a line that the file has elsewhere, a third for an empty one. A row, too, is a line that
defines or gives a value to the same as the file's, and another depth than a place holder's."""
BLANK = LINE // 3
WEAK = 100
"""Only empty lines or brackets at a border of a hunk are lines of the file; a long run goes, or the
first or last lines of the file; a definition is added that the file has."""
LOST = 250
"""The first or last line of a hunk is no line of the file, or all that are the file's are weak."""
CHANGED, CHANGED_INSIDE = 700, 0.06
"""A first or last line in place of one that is wholly different, and the share of that for other
lines; one that is more alike costs less by that much."""
LEAST_ALIKE = 0.6
"""So alike are two lines of which one has all words of the other, or that import."""
NEVER = 1 << 30
FAR = 1 << 18
"""A line that stands for a certain line of the file is added."""
_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\w+|[^\w\s]")
_WORDS_OF_LINES = re.compile(rf"{_WORDS.pattern}|\n")


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

    @property
    def gone(self) -> tuple[Cells, Cells]:
        """Tell what it costs that the first lines go, by their number: of a few lines, of many."""
        costs = np.where(self._is_blank, BLANK, LINE)
        few = np.concatenate((np.zeros(1, np.int64), np.cumsum(costs)))
        return few, np.arange(len(self.lines) + 1, dtype=np.int64) * LINE // 6

    def number(self, line: str) -> int:
        """The number of lines that are equal but for white space, -1 where there is none."""
        return self._spaced.get(spacing_aside(line), -1)

    def raw_number(self, line: str) -> int:
        """The number of lines that are equal, -1 where there is none."""
        return self._raw.get(line.rstrip(), -1)

    def alike(self, line: str, share: float) -> Cells:
        """Tell what it costs to have a line in place of each line of the file that is like it;
        a share of that."""
        numbers = [self._words.get(word, -1) for word in set(_WORDS.findall(line))]
        is_shared = np.zeros(len(self._words) + 1, bool)
        is_shared[numbers] = True
        is_shared[-1] = False
        held_words, held_by, counts = self._word_table
        shared = np.bincount(held_by[is_shared[held_words]], minlength=len(counts))
        alike = 2.0 * shared / np.maximum(len(numbers) + counts, 1)
        held = (shared == np.minimum(len(numbers), counts)) & (shared > 1)
        is_import_too = [is_import(line) and is_import(other) for other in self._different]
        alike = np.where(held | np.array(is_import_too), np.maximum(alike, LEAST_ALIKE), alike)
        costs = np.where(alike >= LEAST_ALIKE, np.rint(share * CHANGED * (1.0 - alike)), NEVER)
        return costs.astype(np.int64)[self.raw_numbers]

    @cached_property
    def _tokens(self) -> list[str]:
        """The words and signs of the different lines, with line feeds between the lines."""
        return _WORDS_OF_LINES.findall("\n".join(self._different))

    @cached_property
    def _words(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(dict.fromkeys(["\n", *self._tokens]))}

    @cached_property
    def _word_table(self) -> tuple[Cells, Cells, Cells]:
        """Return the words held, each once in a line; the line that holds each; and how
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


def spacing_aside(line: str) -> str:
    """A line with one blank for each run of them, and none around."""
    return " ".join(line.split())


def line_costs(
    file: FileLines,
    hunk: Sequence[str],
    anchors: Mapping[int, int] = MappingProxyType({}),
    held: Collection[int] = (),
) -> list[LineCosts]:
    """Return the costs of a hunk's lines; those that are none of the file's may be changed ones.
    ``anchors``: lines that are certain ones of the file; ``held``: lines that have to be some."""
    code = [number for number, line in enumerate(hunk) if line.strip()]
    costs = [LineCosts(file, line) for line in hunk]
    for number in code:
        cost = costs[number]
        if cost.is_changed:
            share = 1.0 if number in (0, len(hunk) - 1) else CHANGED_INSIDE
            alike = file.alike(hunk[number], share)
            cost.instead = np.minimum(cost.instead, alike)
            if key := assigned_name(hunk[number]):
                lines = file.assigning(key)
                if share == 1.0:
                    cost.instead[lines] = np.minimum(cost.instead[lines], RUN)
                if len(lines) == 1:
                    cost.added += RUN
    for number, line in anchors.items():
        if line >= 0:
            costs[number].pin(line)
        else:
            costs[number].add_only()
    for number in held:
        costs[number].added = FAR if costs[number].is_known else costs[number].added
    return costs


class LineCosts:
    """Return what a line of a snippet costs."""

    def __init__(self, file: FileLines, line: str) -> None:
        number = file.number(line)
        self.instead = np.full(len(file.lines), NEVER, np.int64)
        """In place of each line of the file."""
        self.is_known = number >= 0
        if self.is_known:
            self.instead[file.numbers == number] = LINE
            self.instead[file.raw_numbers == file.raw_number(line)] = 0
        self.is_added = False
        """The line is one of a new definition."""
        self.is_weak = _WORD.search(line) is None
        """Return whether it is empty, or brackets alone, and stands all over the file."""
        self.is_blank = not line.strip()
        self.added = 2 * LINE if self.is_known else LINE
        """As a further line."""
        if self.is_weak:
            self.added = BLANK if self.is_blank else LINE
        self.name = defined_name(line)
        self.is_changed = not (file.raw_number(line) >= 0 or self.is_weak or self.name)
        """Return whether it can be a line of the file only if that is changed."""
        definitions = file.defining(self.name) if self.name else []
        self.is_new_definition = bool(self.name) and not definitions
        for at in definitions:
            self.added = WEAK
            self.instead[at] = min(self.instead[at], RUN)

    def add_only(self) -> None:
        """Have the line stand for no line of the file."""
        self.instead[:] = NEVER
        self.is_changed = False
        self.is_added = True

    def pin(self, line: int) -> None:
        """Have the line stand for ``line`` of the file and no other."""
        cost = min(int(self.instead[line]), RUN)
        self.instead[:] = NEVER
        self.instead[line] = cost
        self.added = FAR
        self.is_known = True
        self.is_weak = self.is_changed = self.is_new_definition = False
