"""Anchors of a snippet: lines that stand for certain lines of the file, since the definition that
they open or close is the only one of its name there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from lsp_server.tasks.apply.definitions import (
    Definition,
    closes_block,
    definitions_of,
    depth,
    opens_block,
)
from lsp_server.tasks.apply.placing import Lines, Span
from lsp_server.tasks.apply.snippet import Hunk, SnippetHunks

Anchors = Mapping[int, int]
"""Lines of a snippet, and the lines of the file that they are, or ``NOWHERE``."""
NOWHERE = -1
MOVED = 0.5
"""The share of a definition's lines that the file has where its name alone may be new."""
BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_LEAVES = re.compile(r"\s*(?:return|raise|pass)\b")
"""The last line of a function in Python."""
_WORD = re.compile(r"\w")


def anchors_of(snippet: SnippetHunks, file: Lines) -> dict[int, int]:
    """Return the anchors of ``snippet`` in ``file``, whose definitions are found once."""
    text = snippet.code
    by_name: defaultdict[str, list[Definition]] = defaultdict(list)
    for definition in definitions_of(file):
        by_name[definition.path[-1]].append(definition)
    anchors = dict.fromkeys(snippet.came, NOWHERE)
    marked = snippet.gone | snippet.came
    own = [shown for shown in definitions_of(text) if shown.start not in marked]
    for shown in own:
        is_cut = snippet.is_cut(shown)
        others = (
            same
            for other in own
            if other.path != shown.path[: len(other.path)]
            and (same := _same(other, own, by_name[other.path[-1]], text, file)) is not None
        )
        if not by_name[shown.path[-1]] and not is_cut and _is_new(shown, text, file, [*others]):
            code = [n for n in range(shown.start, shown.end) if text[n].strip()]
            anchors |= dict.fromkeys(code, NOWHERE)
            continue
        same = _same(shown, own, by_name[shown.path[-1]], text, file)
        if same is None:
            continue
        anchors[shown.start] = same.start
        last, file_last = _last(text, shown), _last(file, same)
        is_open = is_cut and not _is_closed_by_its_last(shown, snippet, text)
        if last <= shown.start or file_last <= same.start or is_open:
            continue
        is_closed = _closes(text[last], text[shown.start])
        is_file_closed = _closes(file[file_last], file[same.start])
        is_same = text[last].strip() == file[file_last].strip() or (
            _LEAVES.match(text[last]) is not None and _LEAVES.match(file[file_last]) is not None
        )
        is_own = is_closed and (is_same or not is_cut)
        is_end = is_own or _is_whole(shown, snippet, text, is_same)
        if is_closed == is_file_closed and is_end:
            anchors[last] = file_last
    return anchors


def _closes(line: str, header: str) -> bool:
    """Return whether a line ends the block of ``header``, and opens none itself."""
    return closes_block(line) and depth(line) == depth(header) and not opens_block(line)


def shown_whole(snippet: SnippetHunks, anchors: Anchors) -> list[Span]:
    """Return the definitions of the file that ``snippet`` shows from their first to their last
    line, without a place holder."""
    wholes: list[Span] = []
    for shown in definitions_of(text := snippet.code):
        first, last = anchors.get(shown.start, NOWHERE), anchors.get(_last(text, shown), NOWHERE)
        if 0 <= first < last and not snippet.is_cut(shown):
            wholes.append((first, last + 1))
    return wholes


def new_and_cut(snippet: SnippetHunks, file: Lines) -> list[str]:
    """Return the names of definitions with a place holder that ``file`` does not define."""
    cut = [shown.path[-1] for shown in definitions_of(snippet.code) if snippet.is_cut(shown)]
    own = {definition.path[-1] for definition in definitions_of(file)} if cut else set()
    return [name for name in cut if name not in own]


def _is_closed_by_its_last(shown: Definition, snippet: SnippetHunks, text: Sequence[str]) -> bool:
    """Return True if the last line of a definition with place holders can only be its own end: its
    brackets are balanced, and no place holder hides the header of a block that ends below it."""
    code = "\n".join(text[shown.start : shown.end])
    if any(code.count(opens) != code.count(closes) for opens, closes in BRACKETS):
        return False
    for holder in snippet.holders:
        if shown.start < holder < shown.end:
            below = next((n for n in range(holder + 1, shown.end) if text[n].strip()), None)
            # One that is less deep than the header says nothing by its depth.
            is_outside = depth(snippet.lines[holder]) < depth(text[shown.start])
            if below is None or is_outside:
                continue
            deeper = depth(text[below]) - depth(snippet.lines[holder])
            if deeper > 0 or (deeper == 0 and closes_block(text[below])):
                return False
    return True


def _is_new(
    shown: Definition, text: Sequence[str], file: Lines, others: Sequence[Definition]
) -> bool:
    """Return whether few lines of a definition that the file has not are the file's, those of
    ``others``, which are shown beside it, aside."""
    known = {
        line.strip()
        for number, line in enumerate(file)
        if not any(other.start <= number < other.end for other in others)
    }
    inner = [line.strip() for line in text[shown.start + 1 : shown.end] if _WORD.search(line)]
    same = sum(line in known for line in inner)
    return same < MOVED * len(inner) or same < min(2, len(inner) or 2)


def _last(lines: Sequence[str], definition: Definition) -> int:
    """Return the last line of a definition that is not empty."""
    numbers = range(definition.end - 1, definition.start, -1)
    return next((number for number in numbers if lines[number].strip()), definition.start)


def _same(
    shown: Definition,
    own: Sequence[Definition],
    candidates: Sequence[Definition],
    text: Sequence[str],
    file: Lines,
) -> Definition | None:
    """Return the definition of the file that a shown one is; None where several may be."""
    size = len(shown.path)
    scoped = [each for each in candidates if each.path[-size:] == shown.path]
    if size > 1 and not scoped:
        return None
    twins = [each for each in own if each.path == shown.path]
    if len(twins) > 1 or len(scoped) > 1:
        header = text[shown.start].split()
        scoped = [each for each in scoped if file[each.start].split() == header]
        twins = [each for each in twins if text[each.start].split() == header]
    return scoped[0] if len(scoped) == 1 == len(twins) else None


def _is_whole(shown: Definition, snippet: SnippetHunks, text: Sequence[str], is_same: bool) -> bool:
    """Return whether a definition without a closing bracket is shown to its end: code below it is
    no deeper, or its last line ``is_same`` as in the file, with a place holder below."""
    below = next(
        (n for n in range(shown.end, len(text)) if text[n].strip() or n in snippet.holders), None
    )
    code = "\n".join(text[shown.start : shown.end])
    if below is None or any(code.count(opens) != code.count(closes) for opens, closes in BRACKETS):
        return False
    own = depth(text[shown.start])
    is_beside = own > 0 and below in snippet.holders and depth(snippet.lines[below]) == own
    if below in snippet.holders and not is_same and not is_beside:
        return False
    return not snippet.is_cut(shown) and depth(snippet.lines[below]) <= own


def in_file_order(snippet: SnippetHunks, anchors: Anchors) -> SnippetHunks:
    """Return ``snippet`` with its hunks in the order of the file, by their anchors."""
    hunks = [_without_blank_borders(hunk, anchors, snippet) for hunk in snippet.hunks]
    firsts: list[int] = []
    for hunk in hunks:
        own = [line for n in range(hunk.first, hunk.end) if (line := anchors.get(n, -1)) >= 0]
        firsts.append(own[0] if own else firsts[-1] if firsts else -1)
    ordered = [
        hunk for _, hunk in sorted(zip(firsts, hunks, strict=True), key=lambda pair: pair[0])
    ]
    if ordered == list(snippet.hunks):
        return snippet
    return snippet._replace(
        hunks=tuple(ordered),
        open_top=snippet.open_top and ordered[0] == hunks[0],
        open_end=snippet.open_end and ordered[-1] == hunks[-1],
    )


def _without_blank_borders(hunk: Hunk, anchors: Anchors, snippet: SnippetHunks) -> Hunk:
    """Return a hunk without empty lines between a place holder and a line with an anchor."""
    code = [n for n in range(hunk.first, hunk.end) if snippet.lines[n].strip()]
    first, end = hunk.first, hunk.end
    is_top = snippet.open_top and hunk == snippet.hunks[0]
    is_end = snippet.open_end and hunk == snippet.hunks[-1]
    if not is_top and anchors.get(code[0], NOWHERE) >= 0:
        first = code[0]
    if not is_end and anchors.get(code[-1], NOWHERE) >= 0:
        end = code[-1] + 1
    return Hunk(first, tuple(snippet.lines[first:end]))
