"""Reads a snippet in every way that may be meant, and tells whether one is far ahead of the others.

A cost says how far a reading is from what the file and the snippet have in common. A reading in
which a part of the snippet does nothing, or repeats what stands beside it, is doubted: it has to be
further ahead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lsp_server.tasks.apply.alignment import Alignment, SnippetAligner
from lsp_server.tasks.apply.anchors import Anchors
from lsp_server.tasks.apply.definitions import (
    closes_block,
    defined_name,
    definitions_of,
    depth,
    is_import,
)
from lsp_server.tasks.apply.line_costs import FAR, LOST, WEAK, FileLines
from lsp_server.tasks.apply.losses import ShownLines, is_like
from lsp_server.tasks.apply.parsed_file import changes_balance
from lsp_server.tasks.apply.placing import Lines, Span, joined, placed
from lsp_server.tasks.apply.snippet import SnippetHunks

MARGIN = 60
"""A reading stands where every other one costs so much more (the units of ``alignment.py``)."""
BLOCK = 2
"""So many lines that are repeated are a block, which is never meant."""
_TWICE = re.compile(r"^[ \t]*(@[\w.]+)(?:\n[ \t]*\1\(|\(.*\n[ \t]*\1$)", re.MULTILINE)
_TAG = re.compile(r"\s*<[\w-]+[^<>]*>\s*$")
_GIVES = re.compile(r"[\w.]+ =")
CLOSE, SPARED = 20, 6
"""A doubted reading has to cost so much more than one that is not, and loses so few lines."""
NEAR = 20
"""So many lines around a hunk are looked at for what it repeats."""
SMALL = 400
"""Of so many pairs of lines every region of every hunk is looked at."""
MOST_TRIED = 8
"""Of so many readings is asked whether they can be meant."""


@dataclass(frozen=True, eq=False)
class WholeReading:
    """``lines``: the whole file as a snippet is read. ``spans`` and ``news``: for each hunk the
    lines that it replaces, and what stands there."""

    cost: int
    spans: tuple[Span, ...]
    news: tuple[Lines, ...]
    lines: Lines
    doubted: frozenset[int]
    """The hunks that change nothing, or repeat what the file has."""
    repeats_block: bool
    """Return whether a hunk adds lines that stand in the file once, near by, and stay there."""
    is_indented: bool
    """Return whether it is clear how deep the hunks are."""
    is_guess: bool = False
    """The file begins or ends with further lines, and loses some beside them."""


def best_readings(
    lines: Lines,
    snippet: SnippetHunks,
    *,
    anchors: Anchors = MappingProxyType({}),
    is_whole: bool = False,
    is_able: Callable[[WholeReading], bool] = lambda _: True,
) -> tuple[WholeReading, list[WholeReading]]:
    """The cheapest reading, and those that it is not far enough ahead of, but for those that make
    the same text of the file.

    is_whole: what stands at an end without a place holder is the end of the file. is_able: whether
    a reading can be meant; the cheapest reading is one, or there is none that costs little more.
    """
    hunks = [hunk.lines for hunk in snippet.hunks]
    gone = [snippet.of_hunk(number, snippet.gone) for number in range(len(hunks))]
    held = snippet.gone | snippet.beside
    own = [
        {n - hunk.first: anchors[n] for n in range(hunk.first, hunk.end) if n in anchors}
        for hunk in snippet.hunks
    ]
    aligner = SnippetAligner(
        FileLines(lines),
        hunks,
        open_top=snippet.open_top,
        open_end=snippet.open_end,
        is_whole=is_whole,
        anchors=own,
        held=[snippet.of_hunk(number, held) for number in range(len(hunks))],
        within=2 * MARGIN + LOST,
    )
    aligned = aligner.alignments()
    if anchors and aligned[0].cost >= FAR:
        return best_readings(lines, snippet, is_whole=is_whole, is_able=is_able)
    counts = Counter(map(str.strip, lines))
    # A new definition may have lines of others.
    for number in (number for number, line in anchors.items() if line < 0):
        counts.pop(snippet.lines[number].strip(), None)
    unable: list[Lines] = []

    def can_be(reading: WholeReading) -> bool:
        if reading.lines in unable or not is_able(reading):
            unable.append(reading.lines)
            return False
        return True

    most = aligned[0].cost + 2 * MARGIN
    cheapest = [reading for reading in aligned[:MOST_TRIED] if reading.cost <= most]
    wholes = (_whole(lines, hunks, gone, reading, counts) for reading in cheapest)
    best = next((reading for reading in wholes if can_be(reading)), None)
    best = best or _whole(lines, hunks, gone, aligned[0], counts)
    rivals: list[WholeReading] = []

    lost = _lost(lines, hunks, best.spans)
    spans = zip(best.spans, best.news, strict=True)
    is_paired = all(
        end - start == len(new) and all(map(is_like, lines[start:end], new))
        for (start, end), new in spans
    )
    is_first, is_balanced = not unable, not changes_balance(lines, best.spans, best.news)
    headers = ShownLines(lines, (), set()).headers_lost(best.spans, best.news)
    is_small = len(lines) * sum(map(len, hunks)) <= SMALL
    closely = range(len(hunks)) if is_small else best.doubted
    for one in aligner.alignments(closely) if closely else aligned:
        least = _lead(lines, snippet, best, one.regions)
        if not is_whole and lost > _lost(lines, hunks, one.regions) + BLOCK:
            least = max(least, MARGIN + WEAK)
        least = max(least + (0 if is_first else MARGIN), MARGIN + LOST if best.is_guess else 0)
        least -= MARGIN // 3 if is_paired else 0
        if one.cost < best.cost or one.cost - best.cost >= (
            MARGIN + LOST if best.doubted else least
        ):
            continue
        rival = _whole(lines, hunks, gone, one, counts)
        lead = MARGIN + LOST if best.doubted - rival.doubted else least
        if lost <= SPARED and not headers and rival.doubted - best.doubted:
            lead = min(lead, CLOSE)
        if rival.cost - best.cost >= lead or _code(rival.lines) == _code(best.lines):
            continue
        if is_balanced and changes_balance(lines, rival.spans, rival.news):
            continue
        if len(unable) >= MOST_TRIED or can_be(rival):
            rivals.append(rival)
        if len(rivals) == MOST_TRIED:
            break
    return best, rivals


def _code(lines: Lines) -> list[str]:
    return [line for line in lines if line.strip()]


def _whole(
    lines: Lines,
    hunks: Sequence[Lines],
    gone: Sequence[frozenset[int]],
    aligned: Alignment,
    counts: Mapping[str, int],
) -> WholeReading:
    news = placed(hunks, [lines[start:end] for start, end in aligned.regions])
    staying = [
        tuple(line for number, line in enumerate(new) if number not in removed)
        for new, removed in zip(news or hunks, gone, strict=True)
    ]
    spans, texts = joined(lines, aligned.regions, staying)
    merged: list[str] = []
    copied = 0
    for (start, end), new in zip(spans, texts, strict=True):
        merged += [*lines[copied:start], *new]
        copied = end
    merged += lines[copied:]
    repeated = _repeated(lines, spans, texts, counts)
    doubted = frozenset(
        number
        for number, ((start, end), new) in enumerate(zip(spans, texts, strict=True))
        if repeated[number] or (lines[start:end] == new and not _is_frame(hunks[number]))
    )
    return WholeReading(
        *(aligned.cost, spans, texts, tuple(merged), doubted),
        repeats_block=any(len(own) >= BLOCK or any(map(_GIVES.match, own)) for own in repeated),
        is_indented=news is not None,
        is_guess=any(_is_guess(lines, *each) for each in zip(spans, texts, strict=True)),
    )


def _is_guess(lines: Lines, span: Span, new: Lines) -> bool:
    old = lines[slice(*span)] or (None,)
    is_top = not span[0] and new[:1] != old[:1] and old[0] in new
    is_end = span[1] == len(lines) and new[-1:] != old[-1:] and old[-1] in new
    return (is_top or is_end) and _lost(lines, [new], [span]) > 1


def _is_frame(hunk: Lines) -> bool:
    """Return whether a hunk has headers and ends of definitions alone."""
    return all(
        defined_name(line) or closes_block(line) or _TAG.match(line) or not re.search(r"\w", line)
        for line in hunk
    )


def _repeated(
    lines: Lines, spans: Sequence[Span], news: Sequence[Lines], counts: Mapping[str, int]
) -> list[set[str]]:
    """Return what each hunk adds of the lines that stand in the file once, near by, and stay."""
    found = []
    for number, ((start, end), new) in enumerate(zip(spans, news, strict=True)):
        old = lines[start:end]
        again = {line.strip() for line in new if line not in old and counts.get(line.strip()) == 1}
        found.append(again.intersection(_near(lines, spans, number)) if again else again)
    return found


def _near(lines: Lines, spans: Sequence[Span], number: int) -> Iterator[str]:
    """The lines around a hunk that stay."""
    start, end = spans[number]
    above = spans[number - 1][1] if number else 0
    below = spans[number + 1][0] if number + 1 < len(spans) else len(lines)
    near = [*lines[max(above, start - NEAR) : start], *lines[end : min(below, end + NEAR)]]
    return (line.strip() for line in near if line.strip())


def _lead(lines: Lines, snippet: SnippetHunks, best: WholeReading, regions: Sequence[Span]) -> int:
    """Tell how much more another reading has to cost. A snippet that says what it leaves out above,
    and nothing of what is below, may go to the end; the other way round, it may begin the file."""
    is_ending = snippet.open_end and not snippet.open_top
    if is_ending and regions[-1][1] == len(lines) > best.spans[-1][1]:
        return MARGIN + LOST
    first = next(line for line in snippet.hunks[0].lines if line.strip())
    is_beginning = snippet.open_top and not snippet.open_end and not defined_name(first)
    is_beginning &= not regions[0][0] and best.spans[0][0] > 0
    return MARGIN + WEAK if is_beginning else MARGIN


def _lost(lines: Lines, hunks: Sequence[Lines], regions: Sequence[Span]) -> int:
    """Return how many lines of code the file loses where hunks replace regions."""
    lost = 0
    for (start, end), hunk in zip(regions, hunks, strict=True):
        old, new = (
            Counter(filter(None, map(str.strip, text))) for text in (lines[start:end], hunk)
        )
        lost += (old - new).total()
    return lost


def repeats_line(lines: Lines, reading: WholeReading) -> bool:
    """Return whether an import of the file, no deeper than any line, stands in a reading twice, or
    a decorator with arguments beside itself without."""
    if _TWICE.search("\n".join(reading.lines)):
        return True
    came = {line for new in reading.news for line in new if is_import(line) and not depth(line)}
    own = [line for line in lines if line in came]
    stand = Counter(line for line in reading.lines if line in came)
    return any(count > 1 == own.count(line) for line, count in stand.items())


def repeats_definition(lines: Lines, reading: WholeReading, language: str | None) -> bool:
    """Tell whether a definition of the file stands more often in a reading than there: the same
    line in the same scope or, in Python, the same name without a decorator."""
    changes = [
        ([*filter(defined_name, lines[start:end])], [*filter(defined_name, new)])
        for (start, end), new in zip(reading.spans, reading.news, strict=True)
    ]
    if all(old == new for old, new in changes):
        return False
    by_name = language is not None and language.startswith("python")
    before, after = _definitions(lines, by_name), _definitions(reading.lines, by_name)
    return any(0 < before[key] < count for key, count in after.items())


def _definitions(lines: Sequence[str], by_name: bool) -> Counter[tuple[str, ...]]:
    return Counter(
        (*each.path[:-1], each.path[-1] if by_name else lines[each.start].strip())
        for each in definitions_of(lines)
        if defined_name(lines[each.start]) and not lines[each.start - 1].strip().startswith("@")
    )
