"""Texts that agents send for one file or several. What a text is is decided first, by one table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import NamedTuple

from lsp_server.tasks.apply import search_replace, unified_diff, v4a_patch
from lsp_server.tasks.apply.file_text import lines_of
from lsp_server.tasks.apply.merge import apply_snippet, refuse_long
from lsp_server.tasks.apply.refusals import MOST_SHOWN, AmbiguousSnippet, Merge
from lsp_server.tasks.apply.replacements import (
    FileUpdate,
    LineReplacement,
    TextChange,
    apply_replacements,
)
from lsp_server.tasks.apply.snippet import read_snippet
from lsp_server.tasks.apply.wrapping import sections, without_numbers
from lsp_server.text.documents.document import with_line_feeds
from lsp_server.text.syntax.languages import language_of_path


class EditFormat(NamedTuple):
    """A form of edits, told by ``marks``. ``is_fenced``: fences around it are taken off first."""

    name: str
    marks: re.Pattern[str]
    read: Callable[[str], list[FileUpdate]]
    is_fenced: bool = False


FORMATS = (
    EditFormat("V4A patch", v4a_patch.MARKS, v4a_patch.read),
    EditFormat("search and replace", search_replace.MARKS, search_replace.read),
    EditFormat("unified diff", unified_diff.MARKS, unified_diff.read, is_fenced=True),
)
"""The first whose marks a text has, and its file has not, is its format; else it is a snippet."""
_KINDS = {"delete": "Delete File", "move": "Move to"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFields:
    """An edit as tools are given it: a text in any format, or old texts and new ones as fields.
    ``model``: a name, or false where none is to be asked."""

    snippet: str = field(default="", metadata={"also": ("edit_snippet", "code_edit")})
    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool = False
    edits: list[TextChange] = field(default_factory=list)
    instruction: str = field(default="", metadata={"also": ("instructions",)})
    model: bool | str = True

    def replacements(self) -> tuple[LineReplacement, ...]:
        """Return the changes by fields; none where there is a text. Raises AmbiguousSnippet."""
        if (self.old_string is None) != (self.new_string is None):
            raise AmbiguousSnippet("old_string and new_string go together; send both")
        changes = list(self.edits)
        if self.old_string is not None and self.new_string is not None:
            changes.insert(0, TextChange(self.old_string, self.new_string, self.replace_all))
        if bool(changes) == bool(self.snippet):
            raise AmbiguousSnippet("send one of: a snippet; old_string and new_string; edits")
        return tuple(change.replacement for change in changes)


def format_of(text: str, original: str = "") -> EditFormat | None:
    """Return the format of a text with line feeds; None for a snippet."""
    formats = (form for form in FORMATS if form.marks.search(text))
    return next((form for form in formats if not form.marks.search(original)), None)


def parse_update(
    text: str, original: str = "", path: str = "", language: str | None = None
) -> tuple[FileUpdate, ...]:
    """Return the updates in a text, one for each file in their order. ``original``: the file that
    it is meant for, at ``path``."""
    text = with_line_feeds(text)
    lines = lines_of(original)
    form = format_of(text, original)
    is_markdown = (language or language_of_path(path)).startswith(("markdown", "mdx"))
    if form is None:
        refuse_long(text)
        return tuple(
            FileUpdate(section.path, snippet=section.text)
            for section in sections(text, lines, is_markdown)
        )
    if form.is_fenced:
        text = "\n".join(section.text for section in sections(text, lines, is_markdown))
    updates: defaultdict[str, list[FileUpdate]] = defaultdict(list)
    for update in form.read(text):
        updates[update.path].append(update)
    return tuple(_joined(path, of_file, lines) for path, of_file in updates.items())


def _joined(path: str, updates: Sequence[FileUpdate], file: Sequence[str]) -> FileUpdate:
    """Return the updates of one file as one."""
    if len(updates) > 1 and {update.kind for update in updates} != {"update"}:
        raise AmbiguousSnippet(f"{path} is changed twice; send one change of it")
    changes = [_without_numbers(each, file) for update in updates for each in update.replacements]
    return FileUpdate(path, tuple(changes), kind=updates[0].kind)


def _without_numbers(replacement: LineReplacement, file: Sequence[str]) -> LineReplacement:
    old = without_numbers(replacement.old, file)
    if old is replacement.old:
        return replacement
    new = without_numbers(replacement.new, file)
    return replace(replacement, old=tuple(old), new=tuple(new))


def apply_text(original: str, text: str, language: str | None = None, path: str = "") -> Merge:
    """Return the file at ``path`` with the change in ``text``. Raises AmbiguousSnippet, also for
    what is of several files or of another one."""
    return apply_update(original, update_of(text, path, original, language), language)


def update_of(
    text: str, path: str = "", original: str = "", language: str | None = None
) -> FileUpdate:
    """Return what ``text`` changes in the file at ``path``. Raises AmbiguousSnippet else."""
    updates = parse_update(text, original, path, language)
    if len(updates) != 1:
        named = _named(updates)
        raise AmbiguousSnippet(
            f"the snippet is of {named or 'no file'}; send what changes in one file"
        )
    name, own = _parts(path), _parts(updates[0].path)
    if name and own and name[-1] != own[-1]:
        raise AmbiguousSnippet(f"that is of {updates[0].path}, not of {path}; name its own file")
    return updates[0]


def updates_of(text: str, path: str, original: str = "") -> dict[str, FileUpdate]:
    """Return what ``text`` changes in the file at ``path`` and in others, by their paths. Raises
    AmbiguousSnippet where that file is none of them."""
    updates = parse_update(text, original, path)
    if len(updates) < 2:
        return {path: update_of(text, path, original)}
    parts = _parts(path)
    own = [
        update
        for update in updates
        if update.path and parts[-len(_parts(update.path)) :] == _parts(update.path)
    ]
    if len(own) != 1 or not all(update.path for update in updates):
        named = _named(updates)
        raise AmbiguousSnippet(f"the diff is of {named}, not of {path}; give the path of one")
    return {path: own[0], **{update.path: update for update in updates if update is not own[0]}}


def _named(updates: Sequence[FileUpdate]) -> str:
    """Return the files of updates for a message, the first of them."""
    names = [update.path or "a file without a name" for update in updates]
    return ", ".join([*names[:MOST_SHOWN], *["…"][: len(names) - MOST_SHOWN]])


def _parts(path: str) -> tuple[str, ...]:
    return PurePath(path.replace("\\", "/")).parts


def makes_file(update: FileUpdate) -> bool:
    """Return whether an update can be all of a file that is not there."""
    if update.replacements:
        return not any(line.strip() for each in update.replacements for line in each.old)
    parts = read_snippet(lines_of(update.snippet), ())
    return bool(parts.hunks) and not parts.holders and not parts.partly


def apply_update(original: str, update: FileUpdate, language: str | None = None) -> Merge:
    """Return a file with its update. Raises AmbiguousSnippet."""
    if kind := _KINDS.get(update.kind):
        raise AmbiguousSnippet(
            f"*** {kind} ({update.path}) is not done here; send what changes in the file's text"
        )
    if update.kind == "add" and original.strip():
        raise AmbiguousSnippet(f"{update.path} exists already; send *** Update File for it")
    if update.replacements or not update.snippet:
        return apply_replacements(original, update.replacements, language)
    return apply_snippet(original, update.snippet, language)
