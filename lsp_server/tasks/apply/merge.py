"""Merges a snippet, as coding agents write edits, into the file that it is about: exactly, or not
at all."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.apply.snippet import SnippetHunks, read_snippet
from lsp_server.text.documents.document import line_end, split_lines, with_line_feeds

MARGIN = 90
"""A reading stands where every other one costs so much more, in hundredths of a line."""
SHOWN_CHARACTERS = 60
MOST_SHOWN = 4
_MARK = "\ufeff"


@dataclass(frozen=True)
class Merge:
    """``text``: the merged file, whole."""

    text: str
    how: Literal["exact"] = "exact"


@dataclass(frozen=True)
class Reading:
    """Lines of the file, from 1, that a part of a snippet could replace, and what would stand
    there. An insertion above a line has that line first and the one above it last."""

    first_line: int
    last_line: int
    text: str


class AmbiguousSnippet(EditRefused):
    """A snippet fits a file in several ways, or in none."""

    def __init__(self, message: str, readings: tuple[Reading, ...] = ()) -> None:
        super().__init__(message)
        self.readings = readings


def apply_snippet(original: str, snippet: str, language: str | None = None) -> Merge:
    """The file with a snippet put in: each hunk between two place holders replaces the lines
    that its first and its last line stand for.

    language: as in LSP; a result that it does not parse is refused where the original was parsed.
    Raises AmbiguousSnippet where the snippet fits in several ways, or in none.
    """
    file = _File.of(original)
    lines = _lines_of(snippet)
    parts = read_snippet(lines, file.lines)
    if not parts.hunks:
        raise AmbiguousSnippet("the snippet holds no lines of code; send the lines that change")
    if not any(line.strip() for line in file.lines):
        return Merge(file.joined(lines))
    found = _readings(file, parts)
    if not found:
        raise _refusal(file, parts, [])
    best = found[0]
    others = [one for one in found[1:] if one.cost < best.cost + MARGIN and one.text != best.text]
    if others:
        raise _refusal(file, parts, [best, *others])
    if language is not None and _breaks(original, best.text, language):
        raise AmbiguousSnippet(
            "the file with the snippet put in does not parse; send the lines around the change, too"
        )
    return Merge(best.text)


@dataclass(frozen=True)
class _Whole:
    """A whole file by one reading of a snippet: a new text for each region."""

    cost: int
    regions: tuple[tuple[int, int], ...]
    news: tuple[tuple[str, ...], ...]
    text: str


def _readings(file: _File, parts: SnippetHunks) -> list[_Whole]:
    """The readings of a snippet, the cheapest first; empty where it fits nowhere."""
    # NumPy takes long to load, and a start does not wait for it.
    from lsp_server.tasks.apply.alignment import FileLines, alignments

    hunks = [hunk.lines for hunk in parts.hunks]
    aligned = alignments(
        FileLines(file.lines),
        hunks,
        open_top=parts.open_top,
        open_end=parts.open_end,
        within=MARGIN,
    )
    found = []
    for one in aligned:
        news = [
            _placed(hunk, file.lines[region.start : region.end])
            for hunk, region in zip(hunks, one.regions, strict=True)
        ]
        if all(new is not None for new in news):
            kept = tuple(tuple(new or ()) for new in news)
            regions = tuple((region.start, region.end) for region in one.regions)
            found.append(_Whole(one.cost, regions, kept, file.replaced(regions, kept)))
    return found


def _placed(hunk: Sequence[str], old: Sequence[str]) -> list[str] | None:
    """The lines of a hunk as they stand in the file in place of old ones: where all that are the
    same are indented otherwise by one and the same width, all are indented as the file is. None
    where they are indented in several ways."""
    new = list(hunk)
    matcher = difflib.SequenceMatcher(
        None, [line.strip() for line in old], [line.strip() for line in new], autojunk=False
    )
    same = {
        block.b + n: old[block.a + n]
        for block in matcher.get_matching_blocks()
        for n in range(block.size)
    }
    shifts = {_shift(new[number], line) for number, line in same.items() if line.strip()}
    if shifts <= {("", "")}:
        return [same.get(number, line) for number, line in enumerate(new)]
    if len(shifts) != 1:
        edges = [number for number in same if new[number].strip()]
        is_exact = all(
            _shift(new[number], same[number]) == ("", "") for number in (min(edges), max(edges))
        )
        return new if is_exact else None
    ((more, less),) = shifts
    made = []
    for number, line in enumerate(new):
        if number in same or not line.strip():
            made.append(same.get(number, line))
        elif line.startswith(less):
            made.append(more + line[len(less) :])
        else:
            return None
    return made


def _shift(new: str, old: str) -> tuple[str, str]:
    """What stands more before an old line than before the new one, and what less."""
    wanted, found = old[: len(old) - len(old.lstrip())], new[: len(new) - len(new.lstrip())]
    if wanted.endswith(found):
        return wanted[: len(wanted) - len(found)], ""
    if found.endswith(wanted):
        return "", found[: len(found) - len(wanted)]
    return wanted, found


@dataclass(frozen=True)
class _File:
    """A file as lines without their ends, and how it is put together again."""

    lines: tuple[str, ...]
    ends: tuple[str, ...]
    mark: str
    """A byte order mark, or nothing."""

    @classmethod
    def of(cls, text: str) -> _File:
        mark = _MARK if text.startswith(_MARK) else ""
        lines = split_lines(text[len(mark) :])
        if not lines[-1]:
            lines.pop()
        ends = tuple(line_end(line) for line in lines)
        bare = (line[: len(line) - len(end)] for line, end in zip(lines, ends, strict=True))
        return cls(tuple(bare), ends, mark)

    @property
    def end(self) -> str:
        """How its lines end, most of them."""
        counted = [end for end in self.ends if end]
        return max(dict.fromkeys(counted), key=counted.count, default="\n")

    @property
    def is_ended(self) -> bool:
        """Whether its last line has an end."""
        return not self.ends or bool(self.ends[-1])

    def joined(self, lines: Sequence[str]) -> str:
        """Lines as the whole file."""
        return self.mark + self.end.join(lines) + (self.end if self.is_ended else "")

    def replaced(self, regions: Sequence[tuple[int, int]], news: Sequence[Sequence[str]]) -> str:
        """The file with lines in place of regions; what stays is as it was."""
        pieces = [self.mark]
        place = 0
        for (start, end), new in zip(regions, news, strict=True):
            pieces += self._kept(place, start)
            old = self.lines[start:end]
            head = _common(old, new)
            tail = _common(old[head:][::-1], new[head:][::-1])
            pieces += self._kept(start, start + head)
            pieces += [line + self.end for line in new[head : len(new) - tail]]
            pieces += self._kept(end - tail, end)
            place = end
        pieces += self._kept(place, len(self.lines))
        text = "".join(pieces)
        return text if self.is_ended else text.removesuffix(self.end)

    def _kept(self, start: int, end: int) -> list[str]:
        kept = zip(self.lines[start:end], self.ends[start:end], strict=True)
        return [line + (ending or self.end) for line, ending in kept]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = zip(old, new, strict=False)
    return next(
        (n for n, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new))
    )


def _lines_of(text: str) -> list[str]:
    lines = with_line_feeds(text.removeprefix(_MARK)).split("\n")
    return lines if lines[-1] else lines[:-1]


def _breaks(old: str, new: str, language: str) -> bool:
    """Whether a text does not parse that did before."""
    from lsp_server.text.syntax.tree import SyntaxTree

    after = SyntaxTree.of(with_line_feeds(new).removeprefix(_MARK), language)
    if after is None or not after.has_errors:
        return False
    before = SyntaxTree.of(with_line_feeds(old).removeprefix(_MARK), language)
    return before is not None and not before.has_errors


def _refusal(file: _File, parts: SnippetHunks, found: Sequence[_Whole]) -> AmbiguousSnippet:
    """Says which lines of a snippet fit where."""
    if not found:
        first = parts.hunks[0]
        shown = _shown(first.lines)
        message = (
            f"the snippet fits nowhere: no lines of the file are like those around its line "
            f"{first.first + 1} ({shown}); send it with lines as they are in the file"
        )
        return AmbiguousSnippet(message)
    number = next(
        n
        for n in range(len(parts.hunks))
        if len({(one.regions[n], one.news[n]) for one in found}) > 1
    )
    hunk = parts.hunks[number]
    readings = {
        one.regions[number]: Reading(
            one.regions[number][0] + 1,
            one.regions[number][1],
            "".join(f"{line}\n" for line in one.news[number]),
        )
        for one in found
    }
    return AmbiguousSnippet(
        f"lines {hunk.first + 1} to {hunk.first + len(hunk.lines)} of the snippet "
        f"({_shown(hunk.lines)}) fit several places: "
        f"{'; '.join(_place(file, one) for one in list(readings.values())[:MOST_SHOWN])}"
        "; send more of the lines around the change",
        tuple(readings.values()),
    )


def _place(file: _File, reading: Reading) -> str:
    first, last = reading.first_line, reading.last_line
    if last < first:
        return f"above line {first}"
    shown = _shown(file.lines[first - 1 : last])
    return f"line {first} ({shown})" if first == last else f"lines {first} to {last} ({shown})"


def _shown(lines: Sequence[str]) -> str:
    line = next((one.strip() for one in lines if one.strip()), "")
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}…"


def apply_replacements(original: str, pairs: Sequence[tuple[str, str]]) -> Merge:
    """The file with each old text replaced by its new one, one after the other: the text as it is,
    else lines that differ from it in white space.

    Raises AmbiguousSnippet where an old text stands in several places, or in none.
    """
    text = original
    for number, (old, new) in enumerate(pairs, start=1):
        text = _replaced(text, old, new, number)
    return Merge(text)


def _replaced(text: str, old: str, new: str, number: int) -> str:
    if not old.strip():
        raise AmbiguousSnippet(f"the old text of change {number} is empty; send lines of the file")
    file = _File.of(text)
    if text.count(old) == 1:
        return text.replace(old, new.replace("\n", file.end) if "\r" not in new else new)
    lines, wanted = file.lines, _lines_of(old)
    places = [
        at
        for at in range(len(lines) - len(wanted) + 1)
        if all(
            one.split() == other.split()
            for one, other in zip(lines[at : at + len(wanted)], wanted, strict=True)
        )
    ]
    if len(places) == 1:
        start, end = places[0], places[0] + len(wanted)
        if (placed := _placed(_lines_of(new), lines[start:end])) is not None:
            return file.replaced([(start, end)], [placed])
    readings = tuple(Reading(at + 1, at + len(wanted), new) for at in places)
    where = ", ".join(str(at + 1) for at in places[:MOST_SHOWN])
    raise AmbiguousSnippet(
        f"the old text of change {number} ({_shown(wanted)}) "
        + (f"stands at lines {where}; " if places else "stands nowhere in the file; ")
        + "send more of the lines around it, as they are in the file",
        readings,
    )
