"""Hunks of a snippet that are new alone: imports, and what is put in at the end of a block."""

from __future__ import annotations

from collections.abc import Sequence

from lsp_server.tasks.apply.anchors import NOWHERE, Anchors
from lsp_server.tasks.apply.definitions import (
    block_end,
    closes_block,
    depth,
    is_import,
    module_of,
    opens_block,
)
from lsp_server.tasks.apply.placing import Lines, Span, blank
from lsp_server.tasks.apply.snippet import Hunk, SnippetHunks

Insertions = tuple[SnippetHunks, list[Span], list[Lines]]
"""A snippet without some of its hunks, and where these go."""


def new_imports(snippet: SnippetHunks, file: Lines) -> Insertions:
    """Return a snippet without hunks of new imports alone, which go below the file's last."""
    imports = [n for n, line in enumerate(file) if is_import(line) and not depth(line)]
    own = {*map(str.strip, file), *(module_of(file[n]) for n in imports)} - {""}
    news: list[Hunk] = []
    for hunk in snippet.hunks:
        code = [line for line in hunk.lines if line.strip()]
        texts = {*map(str.strip, code), *map(module_of, code)}
        if imports and all(map(is_import, code)) and own.isdisjoint(texts):
            news.append(hunk)
    if not news:
        return snippet, [], []
    end = block_end(file, imports[-1])
    lines = tuple(line for hunk in news for line in hunk.lines if line.strip())
    return _without(snippet, news), [(end, end)], [lines]


def new_definitions(snippet: SnippetHunks, file: Lines, anchors: Anchors) -> Insertions:
    """Return a snippet without the hunks of new definitions alone that come below a place holder as
    the last of a block, or of a new block as the last of the snippet; these go to the end of the
    block or of the file."""
    texts = {line.strip() for line in file if any(map(str.isalnum, line))}
    hunks: list[Hunk] = []
    spans: list[Span] = []
    news: list[Lines] = []
    for hunk in snippet.hunks:
        code = [n for n in range(hunk.first, hunk.end) if snippet.lines[n].strip()]
        is_new = all(anchors.get(n, 0) < 0 and n not in snippet.came for n in code) or (
            hunk == snippet.hunks[-1]
            and opens_block(snippet.lines[code[0]])
            and texts.isdisjoint(snippet.lines[n].strip() for n in code)
        )
        if not is_new or hunk.first - 1 not in snippet.holders:
            continue
        end = _end_of_block(hunk, snippet, file, anchors)
        if end is None or (spans and end <= spans[-1][1]):
            continue
        below = hunk.lines[blank(hunk.lines) : len(hunk.lines) - blank(hunk.lines[::-1])]
        hunks.append(hunk)
        spans.append((end, end))
        news.append((*("",) * (blank(hunk.lines) or int(end == len(file))), *below))
    return (_without(snippet, hunks), spans, news) if hunks else (snippet, [], [])


def _end_of_block(hunk: Hunk, snippet: SnippetHunks, file: Lines, anchors: Anchors) -> int | None:
    """Return the line of ``file`` above which the block of a hunk ends; None where more of the
    block may come below the hunk."""
    own = min(depth(line) for line in hunk.lines if line.strip())
    below = next((line for line in snippet.lines[hunk.end :] if line.strip()), None)
    if below is not None and depth(below) >= own:
        return None
    if not own:
        return None if depth(snippet.lines[hunk.first - 1]) else len(file) - blank(file[::-1])
    outer = (n for n in range(hunk.first - 1, -1, -1) if snippet.lines[n].strip())
    header = next((n for n in outer if depth(snippet.lines[n]) < own), NOWHERE)
    if (start := anchors.get(header, NOWHERE)) < 0:
        return None
    end = block_end(file, start)
    end -= closes_block(file[end - 1]) and depth(file[end - 1]) == depth(file[start])
    return end - blank(file[:end][::-1])


def _without(snippet: SnippetHunks, hunks: Sequence[Hunk]) -> SnippetHunks:
    kept = tuple(hunk for hunk in snippet.hunks if hunk not in hunks)
    return snippet._replace(
        hunks=kept,
        open_top=snippet.open_top and snippet.hunks[0] in kept,
        open_end=snippet.open_end and snippet.hunks[-1] in kept,
    )
