"""Tells which lines of a file a reading would delete that its snippet does not show to go."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lsp_server.tasks.apply.definitions import (
    assigned_name,
    closes_block,
    defined_name,
    depth,
    module_of,
)
from lsp_server.tasks.apply.placing import Lines, Span
from lsp_server.text.line_diff import opcodes

ALIKE = 0.6
"""So alike are two lines of which one is the other, changed."""
CLOSE, LEAST_WORDS = 0.75, 4
"""So alike are two lines of so many words of which one alone tells where it stands."""
_WORD, _SIGN = re.compile(r"\w"), re.compile(r"\S")


def meant(line: str) -> str:
    """Return what a line is about: what it defines or gives a value to, else all of it."""
    return defined_name(line) or assigned_name(line) or module_of(line) or line.strip()


class Deletion(NamedTuple):
    """Lines of a file that go, what comes in their place, and the lines around them that stay."""

    gone: range
    came: Lines
    kept: list[int]
    end: int
    """Of the lines that a hunk stands for."""


def deletions(lines: Lines, spans: Sequence[Span], news: Sequence[Lines]) -> Iterator[Deletion]:
    """Yield what goes where ``news`` are put in place of ``spans``."""
    for (start, end), new in zip(spans, news, strict=True):
        old = lines[start:end]
        changes = opcodes(old, new)
        kept = {start + n for kind, *of, _, _ in changes if kind == "equal" for n in range(*of)}
        for _, first, last, new_first, new_last in changes:
            came = new[new_first:new_last]
            if first == last or start + first in kept:
                continue
            moved = start + (first if came else _slid(old, first, last))
            gone = range(moved, moved + last - first)
            kept = (kept | {*range(start + first, start + last)}).difference(gone)
            yield Deletion(gone, came, sorted(kept), end)


def _slid(old: Lines, first: int, last: int) -> int:
    """Return where lines that go begin, moved off the end or the beginning of ``old`` as far as
    others that stay are the same."""
    size = last - first
    if last == len(old):
        while first and old[first - 1] == old[first - 1 + size]:
            first -= 1
    elif not first:
        while first + size < len(old) and old[first] == old[first + size]:
            first += 1
    return first


class ShownLines(NamedTuple):
    """The lines of a file, definitions of it that are shown whole, and texts of lines that are
    shown as going."""

    lines: Lines
    wholes: Sequence[Span]
    marked: set[str]

    def headers_lost(self, spans: Sequence[Span], news: Sequence[Lines]) -> int:
        """Return how many names are no longer defined."""
        before = {defined_name(line) for span in spans for line in self.lines[slice(*span)]}
        return len(before.difference(defined_name(line) for new in news for line in new))

    def header_loss(self, spans: Sequence[Span], news: Sequence[Lines]) -> Span | None:
        """Return lines that go with a block's header, while its own lines stay."""
        lines = self.lines
        for gone, came, *_ in deletions(self.lines, spans, news):
            depths = {depth(line) for line in came if line.strip()}
            for number in gone:
                if not lines[number].strip() or self._is_shown(number):
                    continue
                last = number
                for below in range(number + 1, len(lines)):
                    if lines[below].strip():
                        if depth(lines[below]) <= depth(lines[number]):
                            break
                        last = below
                if last not in gone and depth(lines[number]) not in depths:
                    return gone.start, gone.stop
        return None

    def loss(self, spans: Sequence[Span], news: Sequence[Lines], *, is_strict: bool) -> Span | None:
        """Return lines that go unseen: not between two that stay and are shown, or with the header
        of a block that stays.

        is_strict: brackets alone are no border, lines that stand all over the file are none of a
        block of which another is put in, and every line that goes has one in its place. A line that
        stands in the file once and comes elsewhere is moved.
        """
        if gone := self.header_loss(spans, news):
            return gone
        counts = Counter(self.lines)
        came = {line.strip() for new in news for line in new}
        for change in deletions(self.lines, spans, news):
            lost = [n for n in change.gone if _WORD.search(self.lines[n]) and not self._is_shown(n)]
            lost = [
                n for n in lost if counts[self.lines[n]] > 1 or self.lines[n].strip() not in came
            ]
            border = _WORD if is_strict else _SIGN
            kept = [n for n in change.kept if border.search(self.lines[n])]
            is_placed = not is_strict or any(counts[self.lines[n]] == 1 for n in kept)
            if lost and not (
                self._is_changed(lost, change.came, is_strict)
                or (self._is_between(lost, kept, change) and is_placed)
            ):
                return change.gone.start, change.gone.stop
        return None

    def _is_shown(self, number: int) -> bool:
        is_whole = any(start <= number < end for start, end in self.wholes)
        return is_whole or self.lines[number].strip() in self.marked

    def _is_between(self, lost: Sequence[int], kept: Sequence[int], change: Deletion) -> bool:
        """Return whether lost lines stand between two that stay, or above their block's end."""
        if not kept or kept[0] > lost[0] or kept[-1] > lost[-1]:
            return bool(kept) and kept[0] < lost[0]
        below = next(filter(str.strip, self.lines[change.gone.stop : change.end]), "")
        return closes_block(below) and all(depth(self.lines[n]) > depth(below) for n in lost)

    def _is_changed(self, lost: Sequence[int], came: Lines, is_strict: bool) -> bool:
        """Return whether lost lines have others in their place that are like them, in order. Of
        a definition none with another name is."""
        left = [line for line in came if _WORD.search(line)]
        texts, pairs = [self.lines[n] for n in lost], 0
        for line in texts:
            pair = next((n for n, other in enumerate(left) if is_like(line, other)), None)
            if pair is not None:
                pairs += 1
                del left[: pair + 1]
        names, new_names = ({*map(defined_name, lines)} for lines in (texts, came))
        return pairs == len(lost) if is_strict else pairs > 0 and names <= new_names | {""}


def is_close(line: str, other: str) -> bool:
    """Return whether two lines differ by a word or two of several."""
    words, others = (re.findall(r"\w+", text) for text in (line, other))
    return min(len(words), len(others)) >= LEAST_WORDS and _share(words, others) >= CLOSE


def is_like(line: str, other: str) -> bool:
    """Return whether a line may be another one, changed."""
    words, others = (re.findall(r"\w+", text) for text in (line, other))
    if meant(line) == meant(other) or _share(words, others) >= ALIKE:
        return True
    if words[:1] == others[:1] and words and depth(line) == depth(other):
        return True
    signs = [re.findall(r"\w+|[^\w\s]", text) for text in (line, other)]
    return not set(words).isdisjoint(others) and _share(*signs) >= CLOSE


def _share(first: Sequence[str], second: Sequence[str]) -> float:
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()
