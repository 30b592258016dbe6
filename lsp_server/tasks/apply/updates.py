"""Reads what agents send for one file or several: snippets, unified diffs, patches, and blocks of
search and replace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from lsp_server.tasks.apply.diff_text import diff_hunks, looks_like_diff
from lsp_server.tasks.apply.merge import (
    AmbiguousSnippet,
    Merge,
    apply_replacements,
    apply_snippet,
)
from lsp_server.text.documents.document import with_line_feeds

_FILE = re.compile(
    r"^(?:(?:diff --git .*\n"
    r"(?:(?:index|old|new|deleted|similarity|dissimilarity|rename|copy) .*\n)*)?"
    r"(?:--- .*\n)?\+\+\+ (?:b/)?(?P<new>\S+).*|\*\*\* (?:Update|Add) File: (?P<patched>.+))$",
    re.MULTILINE,
)
"""The lines above the hunks of a file."""
_SEARCH = re.compile(r"^<{5,}[ \t]*(?:SEARCH|ORIGINAL)\b", re.MULTILINE | re.IGNORECASE)
_NAMED = re.compile(r"^[#*`\s]*(?P<path>[\w./\\-]+\.\w+|[\w.-]*/[\w./\\-]+)[`*:\s]*$")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})")


@dataclass(frozen=True)
class FileUpdate:
    """What is to become of one file: a snippet, or old texts with their new ones. ``path``: as the
    text names it; empty where it names none."""

    path: str
    snippet: str = ""
    pairs: tuple[tuple[str, str], ...] = ()


def parse_update(text: str) -> tuple[FileUpdate, ...]:
    """The updates in a text, one for each file in their order. What is no difference is a snippet
    of a file that is not named."""
    text = with_line_feeds(text)
    if not looks_like_diff(text):
        return (FileUpdate("", snippet=text),)
    found: dict[str, list[tuple[str, str]]] = {}
    for path, part in _searched(text) if _SEARCH.search(text) else _by_file(text):
        pairs = found.setdefault(path, [])
        for hunk in diff_hunks(part):
            if hunk.changes:
                pairs.append((_joined(hunk.old), _joined(hunk.new)))
    return tuple(FileUpdate(path, pairs=tuple(pairs)) for path, pairs in found.items() if pairs)


def apply_text(original: str, text: str, language: str | None = None, path: str = "") -> Merge:
    """The file at ``path`` with what an agent sent for it. Raises AmbiguousSnippet, for what is of
    several files or of one that is called otherwise, too."""
    return apply_update(original, update_of(text, path), language)


def update_of(text: str, path: str = "") -> FileUpdate:
    """What an agent sent for the file at ``path``. Raises AmbiguousSnippet for anything else."""
    updates = parse_update(text)
    if len(updates) != 1:
        named = ", ".join(update.path for update in updates) or "no file"
        raise AmbiguousSnippet(f"the snippet is of {named}; send what changes in one file")
    name, own = _parts(path), _parts(updates[0].path)
    if name and own and name[-1] != own[-1]:
        raise AmbiguousSnippet(f"that is of {updates[0].path}, not of {path}; name its own file")
    return updates[0]


def updates_of(text: str, path: str) -> dict[str, FileUpdate]:
    """What an agent sent for the file at ``path`` and, in a diff of several files, for the others,
    by their paths. Raises AmbiguousSnippet where that file is none of them."""
    updates = parse_update(text)
    if len(updates) < 2:
        return {path: update_of(text, path)}
    parts = _parts(path)
    own = [
        one for one in updates if one.path and parts[-len(_parts(one.path)) :] == _parts(one.path)
    ]
    if len(own) != 1 or not all(one.path for one in updates):
        named = ", ".join(one.path or "a file without a name" for one in updates)
        raise AmbiguousSnippet(f"the diff is of {named}, not of {path}; give the path of one")
    return {path: own[0], **{one.path: one for one in updates if one is not own[0]}}


def _parts(path: str) -> tuple[str, ...]:
    return PurePath(path.replace("\\", "/")).parts


def apply_update(original: str, update: FileUpdate, language: str | None = None) -> Merge:
    """A file with its update. Raises AmbiguousSnippet."""
    if update.pairs:
        return apply_replacements(original, update.pairs)
    return apply_snippet(original, update.snippet, language)


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _by_file(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a diff or patch with the files that they are about."""
    heads = list(_FILE.finditer(text))
    if not heads:
        yield "", text
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        yield (head["new"] or head["patched"]).strip(), text[head.end() + 1 : end]


def _searched(text: str) -> Iterator[tuple[str, str]]:
    """Each block of search and replace with the file that is named above it, or above the last."""
    path = ""
    starts = [found.start() for found in _SEARCH.finditer(text)]
    place = 0
    for number, start in enumerate(starts):
        for line in text[place:start].splitlines():
            named = None if _FENCE.match(line) else _NAMED.match(line)
            path = named["path"] if named else path
        end = starts[number + 1] if number + 1 < len(starts) else len(text)
        yield path, text[start:end]
        closing = re.search(r"^>{5,}.*$", text[start:end], re.MULTILINE)
        place = start + closing.end() if closing else end
