"""Merges a snippet, as coding agents write edits, into the file that it is about: exactly, or not
at all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from lsp_server.tasks.apply.anchors import anchors_of, in_file_order, new_and_cut, shown_whole
from lsp_server.tasks.apply.definitions import depth, is_import
from lsp_server.tasks.apply.file_text import FileText, lines_of
from lsp_server.tasks.apply.indents import least_depth
from lsp_server.tasks.apply.insertions import new_definitions, new_imports
from lsp_server.tasks.apply.losses import ShownLines, is_close, is_like, meant
from lsp_server.tasks.apply.parsed_file import ParsedFile, refuse_broken
from lsp_server.tasks.apply.place_holders import BEGINS_COMMENT
from lsp_server.tasks.apply.placing import Lines, Span
from lsp_server.tasks.apply.refusals import (
    MORE_CONTEXT,
    MOST_SHOWN,
    AmbiguousSnippet,
    Merge,
    Reading,
    shown,
)
from lsp_server.tasks.apply.snippet import Hunk, SnippetHunks, read_snippet
from lsp_server.tasks.indentation import with_indents_of
from repo_index.common_ends import common_ends

if TYPE_CHECKING:
    from lsp_server.tasks.apply.readings import WholeReading

MOST_CELLS, HUNK_LINES, MOST_HUNKS = 5_000_000, 4, 200
"""Pairs of lines of file and snippet that are compared; a hunk counts as some more lines."""
LONGEST, LONGEST_SHOWN = 100_000, 10_000
"""Characters of a line of the file, and of the snippet."""
WHOLE_ENDS, WHOLE_SHARE = 3, 0.9
"""A snippet of a whole file has so many lines of both its ends, and that share of its lines."""


def refuse_long(text: str, most: int = LONGEST_SHOWN, kind: str = "snippet") -> None:
    """Raise AmbiguousSnippet where a line of ``text`` has more than ``most`` characters."""
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > most:
            raise AmbiguousSnippet(
                f"line {number} of the {kind} is too long for a snippet; replace a text in it by "
                "SEARCH and REPLACE"
            )


def apply_snippet(original: str, snippet: str, language: str | None = None) -> Merge:
    """The file with a snippet put in: each hunk between two place holders replaces the lines that
    its first and its last line stand for. Without place holders at its ends a snippet means the
    same as with them.

    language: as in LSP; a result that does not parse is refused where the original did.
    Raises AmbiguousSnippet where the snippet fits in several ways, or in none.
    """
    file = FileText.of(original)
    lines = _as_in_file(lines_of(snippet), file.lines)
    parts = read_snippet(lines, file.lines, language or "python")
    if parts.partly:
        number = parts.partly[0]
        raise AmbiguousSnippet(
            f"line {number + 1} of the snippet ({shown(parts.lines[number:])}) leaves out a part "
            "of a line; send it whole, and what is left out as a comment on a line of its own"
        )
    if not parts.hunks:
        raise AmbiguousSnippet("the snippet holds no lines of code; send the lines that change")
    refuse_long(original, LONGEST, "file")
    if (text := _as_whole_file(file, parts)) is not None:
        refuse_broken(original, text, language)
        return Merge(text, "unchanged" if text == original else "exact")
    size = len(file.lines) * (len(parts.lines) + HUNK_LINES * len(parts.hunks))
    if size > MOST_CELLS or len(parts.hunks) > MOST_HUNKS:
        raise AmbiguousSnippet(
            f"the snippet has {len(parts.lines)} lines and the file {len(file.lines)}, too many to "
            "compare; send the lines that change, with place holders for the others"
        )
    parts, spans, news = new_imports(parts, file.lines)
    parts, ends, at_ends = new_definitions(parts, file.lines, anchors_of(parts, file.lines))
    spans, news = [*spans, *ends], [*news, *at_ends]
    if not any(line.strip() for line in file.lines) and not spans:
        text = file.joined([line for hunk in parts.hunks for line in hunk.lines])
        refuse_broken(original, text, language)
        return Merge(text)
    if parts.hunks:
        best = chosen_reading(file.lines, parts, language)
        spans, news = [*spans, *best.spans], [*news, *best.news]
    changes = sorted(zip(spans, news, strict=True), key=lambda change: change[0])
    if any(after[0][0] < before[0][1] for before, after in pairwise(changes)):
        raise AmbiguousSnippet(
            "the imports of the snippet stand in what it changes; send them there"
        )
    text = file.replaced(*zip(*changes, strict=True))
    return Merge(text, "unchanged" if text == original else "exact")


def _as_whole_file(file: FileText, parts: SnippetHunks) -> str | None:
    """Return the file by a snippet without place holders that begins and ends as the file does;
    None for any other, and for one that leaves out much of the file without a word."""
    if parts.holders or parts.gone or len(parts.hunks) != 1:
        return None
    old, new = file.lines, parts.hunks[0].lines
    head, tail = common_ends([*old], [*new])
    ends = (old[:head], old[len(old) - tail :])
    is_whole = all(sum(map(bool, map(str.strip, lines))) >= WHOLE_ENDS for lines in ends)
    if not is_whole or len(new) < WHOLE_SHARE * len(old):
        return None
    return file.replaced([(head, len(old) - tail)], [new[head : len(new) - tail]])


def chosen_reading(
    lines: tuple[str, ...], parts: SnippetHunks, language: str | None, *, is_whole: bool = False
) -> WholeReading:
    """The one way to read a snippet; is_whole: what it has no place holder for at its ends is not
    in the file. Raises AmbiguousSnippet."""
    # NumPy takes long to load, and a start does not wait for it.
    from lsp_server.tasks.apply.readings import best_readings, repeats_definition, repeats_line

    parsed = ParsedFile.of(lines, language)
    anchors = anchors_of(parts, lines)
    wholes = shown_whole(parts, anchors)
    given, parts = parts, in_file_order(parts, anchors)
    shown_lines = ShownLines(lines, wholes, {parts.lines[number].strip() for number in parts.gone})
    beheading: list[Span] = []

    def is_able(reading: WholeReading) -> bool:
        if gone := shown_lines.header_loss(reading.spans, reading.news):
            beheading.append(gone)
        is_double = repeats_line(lines, reading)
        return not (gone or is_double or parsed.breaks(reading.spans, reading.news))

    best, rivals = best_readings(lines, parts, anchors=anchors, is_whole=is_whole, is_able=is_able)
    own = {line.strip() for line in lines}
    more = [
        line
        for (start, end), new in zip(best.spans, best.news, strict=True)
        for line in new
        if line not in lines[start:end] and line.strip() in own and any(map(str.isalnum, line))
    ]

    def may_be(rival: WholeReading) -> bool:
        gone = shown_lines.loss(rival.spans, rival.news, is_strict=False)
        if not gone or more or best.is_guess or best.doubted - rival.doubted:
            return True
        return bool(parts.holders) and parts.open_end and gone[1] == len(lines)

    _refuse_loose(lines, parts, best)
    if rivals := [rival for rival in rivals if may_be(rival)]:
        raise _several(lines, parts, [best, *rivals])
    # What a reading that deletes a header leaves to another one may be meant to go with it.
    gone = shown_lines.loss(best.spans, best.news, is_strict=True)
    if gone := gone or (beheading[0] if more and beheading else None):
        raise AmbiguousSnippet(
            f"lines {gone[0] + 1} to {gone[1]} of the file ({shown(lines[slice(*gone)])}) would "
            f"go, and the snippet does not show them; {MORE_CONTEXT}"
        )
    if not best.is_indented:
        raise AmbiguousSnippet(
            "it is not clear how deep the snippet is to be indented; send it indented as the file"
        )
    above = [line for line in lines[: best.spans[0][0]] if line.strip()]
    is_begun = parts.open_top and parts.holders and is_import(parts.hunks[0].lines[0])
    if is_begun and above and all(map(is_import, above)):
        raise AmbiguousSnippet(
            f"the imports above {shown(best.news[0])} may be meant to go; begin the snippet with "
            "them, or with a place holder"
        )
    if len(hidden := new_and_cut(parts, lines)) > shown_lines.headers_lost(best.spans, best.news):
        raise AmbiguousSnippet(
            f"{hidden[0]} is new and has a place holder for lines of its own; send all of them"
        )
    if loose := _blank_borders(lines, given, best):
        raise AmbiguousSnippet(
            f"what stands at the empty line at a place holder of {loose} may be meant to go; "
            f"{MORE_CONTEXT}"
        )
    if parsed.breaks(best.spans, best.news):
        raise AmbiguousSnippet(f"the file with the snippet put in does not parse; {MORE_CONTEXT}")
    if not is_whole and repeats_definition(lines, best, language):
        raise AmbiguousSnippet(
            f"a definition of the snippet would stand in the file twice; {MORE_CONTEXT}"
        )
    if best.repeats_block:
        raise AmbiguousSnippet(f"what the file has would stand in it twice; {MORE_CONTEXT}")
    return best


def _as_in_file(lines: Sequence[str], file: Sequence[str]) -> Sequence[str]:
    """The lines of a snippet without blanks at their ends where the file has the same ones without,
    and by tabs where it has tabs alone, or the other way round."""
    texts = {"", *map(str.strip, file)}
    if not any(line[-1:].isspace() for line in file):
        lines = [line.rstrip() if line.strip() in texts else line for line in lines]
    kinds, own = ({line[0] for line in every if line[:1] in (" ", "\t")} for every in (file, lines))
    if not kinds or own <= kinds:
        return lines
    if "\t" in own and "\t" not in kinds and (step := _spaces_of_a_tab(lines, file)):
        indents = [(line[: len(line) - len(line.lstrip())], line.lstrip()) for line in lines]
        return [indent.replace("\t", " " * step) + text for indent, text in indents]
    return with_indents_of("\n".join(file), "\n".join(lines)).split("\n")


def _spaces_of_a_tab(lines: Sequence[str], file: Sequence[str]) -> int:
    """Tell how many spaces the file has for a tab of the snippet, by the lines that both have;
    0 where they tell different ones, or none."""
    depths = {line.strip(): len(line) - len(line.lstrip()) for line in file}
    pairs = [(len(line) - len(line.lstrip("\t")), depths.get(line.strip(), 0)) for line in lines]
    steps = {width // tabs for tabs, width in pairs if tabs and width and not width % tabs}
    return steps.pop() if len(steps) == 1 else 0


def _refuse_loose(lines: Sequence[str], parts: SnippetHunks, best: WholeReading) -> None:
    """Raises AmbiguousSnippet where no line of a hunk is one of the file's, with the same text or
    another value, unless the hunk is the file's new beginning or end."""
    for number, hunk in enumerate(parts.hunks):
        start, end = best.spans[number]
        is_top = not number and parts.open_top and not start
        is_end = number + 1 == len(parts.hunks) and parts.open_end and end == len(lines)
        old = {meant(line) for line in lines[start:end]} - {""}
        is_held = any(meant(line) in old for line in hunk.lines) or any(
            is_close(line, other) for line in hunk.lines for other in lines[start:end]
        )
        is_outer = least_depth(hunk.lines) <= least_depth(lines)
        is_put_in = start == end and (is_top or is_end) and is_outer
        if not is_held and not is_put_in:
            raise AmbiguousSnippet(
                f"{_lines(hunk)} fit nowhere: no line of the file is like them; {MORE_CONTEXT}"
            )


def _blank_borders(lines: Lines, given: SnippetHunks, best: WholeReading) -> str:
    """Return the first hunk that has an empty line between a place holder and its first or last
    line where the file has code, or where nothing changes; nothing where there is none."""
    for hunk, (start, end) in zip(given.hunks, best.spans, strict=True):
        code = [n for n in range(hunk.first, hunk.end) if given.lines[n].strip()]
        borders = (code[0], hunk.first, start, -1), (code[-1], hunk.end - 1, end - 1, 1)
        for number, border, line, step in borders:
            if number == border or border + step not in given.holders:
                continue
            if best.lines == lines:
                return _lines(hunk)
            if start == end or not 0 < line + step < len(lines) or all(map(str.strip, lines)):
                continue
            own, beside = given.lines[number], lines[line + step]
            is_same = lines[line] not in hunk.lines and is_like(own, lines[line])
            is_code = beside.strip() and not BEGINS_COMMENT.match(beside)
            if (is_same or lines[line] == own) and is_code and depth(beside) >= depth(own):
                return _lines(hunk)
    return ""


def _several(
    lines: Sequence[str], parts: SnippetHunks, candidates: Sequence[WholeReading]
) -> AmbiguousSnippet:
    """Says which lines of a snippet fit where."""
    number = next(
        n
        for n in range(len(parts.hunks))
        if len({(reading.spans[n], reading.news[n]) for reading in candidates}) > 1
    )
    readings: dict[tuple[int, int], Reading] = {}
    for reading in candidates:
        (start, end), new = reading.spans[number], reading.news[number]
        text = "".join(f"{line}\n" for line in new)
        readings.setdefault((start, end), Reading(start + 1, end, text))
    described = "; ".join(_place(lines, reading) for reading in [*readings.values()][:MOST_SHOWN])
    return AmbiguousSnippet(
        f"{_lines(parts.hunks[number])} fit several places: {described}; {MORE_CONTEXT}",
        tuple(readings.values()),
        tuple(reading.lines for reading in candidates),
    )


def _lines(hunk: Hunk) -> str:
    first, last = hunk.first + 1, hunk.first + len(hunk.lines)
    return f"lines {first} to {last} of the snippet ({shown(hunk.lines)})"


def _place(lines: Sequence[str], reading: Reading) -> str:
    first, last = reading.first_line, reading.last_line
    if last < first:
        return f"above line {first}"
    numbers = f"line {first}" if first == last else f"lines {first} to {last}"
    return f"{numbers} ({shown(lines[first - 1 : last])})"
