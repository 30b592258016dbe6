"""Finds the next edits that the history settles, without a model: where the same change belongs,
too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.editor.editing.hunks import Hunk
from lsp_server.editor.next_edits.importers import ImportingFile, importing_files
from lsp_server.editor.next_edits.parameters import (
    calls_by_name,
    calls_of,
    calls_to_change,
    signature_change,
)
from lsp_server.editor.next_edits.proposal import Proposal
from lsp_server.editor.next_edits.renames import Rename, rename_in
from lsp_server.editor.next_edits.repetitions import LARGEST_TEXT, places_of, repeated
from lsp_server.text.syntax.python_names import occurrences
from lsp_server.text.syntax.tree import SyntaxTree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import EditHistory
    from lsp_server.editor.next_edits.parameters import SignatureChange


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What changes in the other files of a workspace: those that import a name of a module."""

    name: str
    rename: Rename | None = None
    signature: SignatureChange | None = None

    def proposals(self, folder: Path, module: str, opened: Mapping[str, str]) -> Iterator[Proposal]:
        """The proposals in other files. Reads the disk: not for the event loop."""
        for file in importing_files(folder, module, self.name, opened):
            if self.rename is not None:
                yield from _renamed_in(file, self.rename)
            if self.signature is not None:
                for one in calls_to_change(
                    self.signature, file.tree, None, calls_by_name(file.tree, self.name)
                ):
                    yield replace(one, path=file.path, text=file.text)


@dataclass(frozen=True, slots=True)
class Found:
    """What follows from the last edit in its own document, and what to look for in others."""

    proposals: tuple[Proposal, ...]
    elsewhere: Elsewhere | None = None


def next_edits(history: EditHistory) -> Found:
    """What the last edit of the history settles. Proposals are places in the document as it is."""
    last = history.last
    if last is None or sum(map(len, last.document.lines)) > LARGEST_TEXT:
        return Found(())
    rename = rename_in(last)
    if rename is not None:
        title = f"rename {rename.old} to {rename.new}"
        found = tuple(Proposal("", (hunk,), title) for hunk in rename.hunks())
        return Found(found, Elsewhere(rename.old, rename=rename) if rename.is_global else None)
    signature = signature_change(last)
    if signature is not None:
        change, tree, function = signature
        calls = calls_to_change(change, tree, function, calls_of(tree, function))
        is_global = _is_of_module(function)
        return Found(
            tuple(calls), Elsewhere(change.function, signature=change) if is_global else None
        )
    replacement = repeated(history)
    if replacement is not None:
        document = last.document
        now = SyntaxTree.of(document.text, document.language, document.uri)
        assert now is not None
        return Found(tuple(places_of(now, replacement)))
    return Found(())


def _is_of_module(function: Node) -> bool:
    outer = function.parent
    while outer is not None and outer.type == "decorated_definition":
        outer = outer.parent
    return outer is not None and outer.type == "module"


def _renamed_in(file: ImportingFile, rename: Rename) -> Iterator[Proposal]:
    """The places of a file that imports a renamed name; none where the new name is in use."""
    scopes = {one.scope for one in file.places if one.scope is not None}
    taken = occurrences(file.tree, rename.new)
    if any(scope in scopes for one in taken for scope in one.scopes):
        return
    for one in file.places:
        hunk = Hunk(one.start, one.end, rename.new)
        title = f"rename {rename.old} to {rename.new}"
        yield Proposal(file.path, (hunk,), title, text=file.text)
