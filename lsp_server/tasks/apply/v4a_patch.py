"""Patches in OpenAI's V4A form, between ``*** Begin Patch`` and ``*** End Patch``.

Source: the grammar of ``apply_patch`` in Codex (``codex-rs/apply-patch``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from lsp_server.tasks.apply.replacements import FileUpdate, LineReplacement
from lsp_server.tasks.apply.unified_diff import hunk_of, signs_of

MARKS = re.compile(r"^[ \t]*\*\*\* (?:Begin Patch|(?:Update|Add|Delete) File:)", re.MULTILINE)
_FILE = re.compile(r"\s*\*\*\* (?P<kind>Update|Add|Delete) File: *(?P<path>.+?)\s*$")
_MOVE = re.compile(r"\s*\*\*\* Move to: *(?P<path>.+?)\s*$")
_MARK = re.compile(r"\s*\*\*\* (?P<mark>Begin Patch|End Patch|End of File)\s*$")


def read(text: str) -> list[FileUpdate]:
    """Return the updates of a patch, file by file. Raises AmbiguousSnippet where it names none."""
    lines = text.split("\n")
    heads = [number for number, line in enumerate(lines) if _FILE.match(line)]
    if not heads:
        raise AmbiguousSnippet("the patch names no file; write *** Update File: with its path")
    ends = [*heads[1:], len(lines)]
    return [_update(lines[start:end]) for start, end in zip(heads, ends, strict=True)]


def _update(lines: Sequence[str]) -> FileUpdate:
    head = _FILE.match(lines[0])
    assert head is not None
    kind = head["kind"].lower()
    body = list(lines[1:])
    end = next((n for n, line in enumerate(body) if _is_mark(line, "End Patch")), len(body))
    body = body[:end]
    if kind == "add":
        added = tuple(line[1:] for line in body if line.startswith("+"))
        return FileUpdate(head["path"], (LineReplacement((), added, 0),), kind=kind)
    if body and _MOVE.match(body[0]):
        kind = "move"
        body = body[1:]
    return FileUpdate(head["path"], tuple(_hunks(body, signs_of(body))), kind=kind)


def _is_mark(line: str, name: str) -> bool:
    mark = _MARK.match(line)
    return mark is not None and mark["mark"] == name


def _hunks(lines: Sequence[str], signs: str) -> Iterator[LineReplacement]:
    scopes: tuple[str, ...] = ()
    body: list[str] = []
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if any(text.strip() for text in body):
                yield _hunk(body, scopes, signs)
                scopes, body = (), []
            scope = line.strip("@ \t")
            scopes = (*scopes, scope) if scope else scopes
        else:
            body.append(line)


def _hunk(lines: list[str], scopes: tuple[str, ...], signs: str) -> LineReplacement:
    is_at_end = any(_is_mark(line, "End of File") for line in lines)
    hunk = hunk_of([line for line in lines if not _MARK.match(line)], None, scopes, signs)
    return LineReplacement(hunk.old, hunk.new, None, scopes, is_at_end=is_at_end or not hunk.old)
