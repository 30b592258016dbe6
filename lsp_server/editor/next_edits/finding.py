"""Finds the next edits that the history settles, without a model: where the same change belongs,
too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.importers import ImportingFile, importing_files
from lsp_server.editor.next_edits.parameters import (
    calls_by_name,
    calls_of,
    calls_to_change,
    signature_change,
)
from lsp_server.editor.next_edits.renames import Rename, refuse_many_uses, rename_in
from lsp_server.editor.next_edits.repetitions import places_of, repeated
from lsp_server.shared.errors import WorkTakesTooLong
from lsp_server.text.documents.document import Document
from lsp_server.text.syntax.python_names import occurrences
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit
    from lsp_server.editor.next_edits.parameters import SignatureChange


LARGEST_TEXT = 400_000
"""Characters of a document beyond which it is not looked at."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What changes in the other files of a workspace: those that import a name of a module."""

    name: str
    rename: Rename | None = None
    signature: SignatureChange | None = None

    def edits(
        self, folder: Path, module: str, opened: Mapping[str, str]
    ) -> list[tuple[str, str, TextEdit[int]]]:
        """The edits of other files, each with the path and the text of its file. Reads the disk:
        not for the event loop."""
        found = []
        for file in importing_files(folder, module, self.name, opened):
            edits = list(_renamed_in(file, self.rename)) if self.rename is not None else []
            if self.signature is not None:
                calls = calls_by_name(file.tree, self.name)
                edits += calls_to_change(self.signature, file.tree, None, calls)
            found += [(file.path, file.text, one) for one in edits]
        return found


@dataclass(frozen=True, slots=True)
class Found:
    """What follows from the last edit in its own document, and what to look for in others."""

    edits: tuple[TextEdit[int], ...]
    """Their notes say what they do. One that replaces nothing by nothing only leads the user to its
    place, where he writes himself."""
    elsewhere: Elsewhere | None = None


def next_edits(edits: list[RecordedEdit]) -> Found:
    """What the first of these edits settles, which is the latest. Their places are of its
    document as it is. Raises WorkTakesTooLong."""
    last = edits[0]
    refuse_large(last.document)
    refuse_many_uses(last)
    before = last.tree_before()
    if before is None:
        return Found(())
    rename = rename_in(last, before)
    if rename is not None:
        title = f"rename {rename.old} to {rename.new}"
        found = tuple(replace(one, note=title) for one in rename.edits())
        return Found(found, Elsewhere(rename.old, rename=rename) if rename.is_global else None)
    now = last.tree_now()
    assert now is not None
    signature = signature_change(last, before, now)
    if signature is not None:
        change, function = signature
        calls = calls_to_change(change, now, function, calls_of(now, function))
        is_global = _is_of_module(function)
        return Found(
            tuple(calls), Elsewhere(change.function, signature=change) if is_global else None
        )
    replacement = repeated(edits, (before, now))
    if replacement is not None:
        return Found(tuple(places_of(now, replacement)))
    return Found(())


def edits_to_look_at(history: Iterable[RecordedEdit]) -> list[RecordedEdit]:
    """The edits that :func:`next_edits` needs, the latest first: those in its document, and others
    as far as they are together no larger than what is looked at."""
    edits: list[RecordedEdit] = []
    for edit in history:
        if edits and size_of([*edits, edit]) > LARGEST_TEXT:
            break
        edits.append(edit)
    return edits


def size_of(edits: list[RecordedEdit]) -> int:
    """Characters of the documents of edits."""
    return sum(
        len(text) for text in {one.document.uri: one.document.text for one in edits}.values()
    )


def refuse_large(document: Document) -> None:
    """Raises WorkTakesTooLong for a document that is not looked at."""
    if (size := len(document.text)) > LARGEST_TEXT:
        raise WorkTakesTooLong(
            f"the file has {size:,} characters; next edits look at up to {LARGEST_TEXT:,}"
        )


def _is_of_module(function: Node) -> bool:
    outer = function.parent
    while outer is not None and outer.type == "decorated_definition":
        outer = outer.parent
    return outer is not None and outer.type == "module"


def _renamed_in(file: ImportingFile, rename: Rename) -> Iterator[TextEdit[int]]:
    """The places of a file that imports a renamed name; none where the new name is in use."""
    scopes = {one.scope for one in file.places if one.scope is not None}
    taken = occurrences(file.tree, rename.new)
    if any(scope in scopes for one in taken for scope in one.scopes):
        return
    for one in file.places:
        title = f"rename {rename.old} to {rename.new}"
        yield TextEdit(one.start, one.end, rename.new, title)
