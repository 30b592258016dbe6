"""Renames what a name means, in its file and in those that use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from lsp_server.editor.agents.agent_files import AgentFile, AgentFiles, Change
from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.next_edits.finding import LARGEST_TEXT, Elsewhere
from lsp_server.editor.next_edits.importers import looks_into_others
from lsp_server.editor.next_edits.renames import Rename, rename_at
from lsp_server.editor.next_edits.words import refuse_many
from lsp_server.shared.errors import EditRefused
from lsp_server.text.documents.document import offsets_of_lines, split_lines
from lsp_server.text.syntax.languages import language_of_path
from lsp_server.text.syntax.resolved_names import ResolvedNames
from lsp_server.text.text_edit import TextEdit


def renamed(
    files: AgentFiles, file: AgentFile, line: int, old: str, new: str
) -> tuple[list[Change], str]:
    """Return the changes that call ``old`` of a line, from 1, ``new``, and a note on them. Reads
    the disk. Raises RedraftError where it is not clear what the name means."""
    text = file.text
    if len(text) > LARGEST_TEXT:
        raise EditRefused(f"{file.path} has more than {LARGEST_TEXT:,} characters")
    refuse_many(text, old, new)
    names = ResolvedNames.of(text, language_of_path(file.path), file.path)
    if names is None:
        raise EditRefused(f"no grammar is known for {file.path}; edit it by a snippet")
    start, end = offsets_of_lines(text, str(line), file.path)
    word = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    lines = [n for n, words in enumerate(split_lines(text), start=1) if word.search(words)]
    if lines and line not in lines:
        nearest = min(lines, key=lambda number: abs(number - line))
        raise EditRefused(f"{old} is not a name in that line ({line}); give line {nearest}")
    rename = rename_at(names, start, end, old, new)
    changes = [(file, apply_hunks(text, _in_order(rename.edits())))]
    if not rename.is_global:
        return changes, ""
    changes += _elsewhere(files, file, rename)
    if not looks_into_others(file.path):
        return changes, "other files were not looked at"
    if rename.owner:
        return changes, f"{old} of what may be no {rename.owner} stays in other files"
    return changes, ""


def _elsewhere(files: AgentFiles, module: AgentFile, rename: Rename) -> Iterator[Change]:
    elsewhere = Elsewhere(rename.old, rename.owner, rename=rename)
    edits = partial(elsewhere.edits, module.folder, module.path, strict=True)
    uses = edits({})
    read = {path: files.read(str(module.folder / path)) for path, _, _ in uses}
    if any(read[path].text != text for path, text, _ in uses):
        # The index reads other line ends than there are.
        uses = edits({path: file.text for path, file in read.items()})
    for path, file in read.items():
        hunks = _in_order(tuple(edit for other, _, edit in uses if other == path))
        yield file, apply_hunks(file.text, hunks)


def _in_order(edits: tuple[TextEdit[int], ...]) -> list[TextEdit[int]]:
    return sorted(edits, key=lambda edit: edit.start)
