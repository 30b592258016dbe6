"""Finds what the history settles, without a model: where the same change belongs, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.editor.editing.renames import AskedRename, EditedPart, FileEdit
from lsp_server.editor.next_edits.edits_by_example import same_change
from lsp_server.editor.next_edits.function_kinds import new_kind, of_kind
from lsp_server.editor.next_edits.importers import ImportingFile, importing_files
from lsp_server.editor.next_edits.listed_members import AddedMember, added_member
from lsp_server.editor.next_edits.object_keys import places_of_key
from lsp_server.editor.next_edits.parameters import (
    BY_NAME,
    CONSTRUCTORS,
    calls_at,
    calls_of_derived,
    calls_to_change,
    edits_of,
    edits_of_method,
    name_of,
    signature_change,
)
from lsp_server.editor.next_edits.renames import (
    Rename,
    documented,
    fixture_edits,
    is_given,
    refuse_many_uses,
    rename_in,
    rename_of,
)
from lsp_server.shared.errors import EditRefused, WorkTakesTooLong
from lsp_server.text.documents.document import Document
from lsp_server.text.syntax.members import Members
from lsp_server.text.syntax.name_uses import NameUse, Reference
from lsp_server.text.syntax.nodes import child_of, enclosing_with, inner
from lsp_server.text.syntax.resolved_names import ResolvedNames, class_around
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lsp_server.editor.next_edits.history import RecordedEdit
    from lsp_server.editor.next_edits.parameters import SignatureChange
    from lsp_server.text.syntax.tree import SyntaxTree


LARGEST_TEXT = 400_000
"""Characters of a document beyond which it is not looked at."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A change of the other files of a workspace that use a name of a file."""

    name: str
    owner: str = ""
    """The class whose member it is."""
    rename: Rename | None = None
    signature: SignatureChange | None = None
    member: AddedMember | None = None
    is_parameter: bool = False
    """The rename is of a parameter of the name, which calls give by its name."""
    kind: str | None = None
    """What the function of the name became."""

    def edits(
        self, folder: Path, module: str, opened: Mapping[str, str], *, strict: bool = False
    ) -> list[FileEdit]:
        """Return the edits of other files. Reads the disk: not for the event loop. With ``strict``
        EditRefused is raised for a file that has the new name of a rename already."""
        fixture = self.rename if self.rename and self.rename.is_fixture else None
        proposed = [*fixture_edits(fixture, folder, module, opened)] if fixture else []
        is_argument = self.rename is not None and self.rename.is_argument
        renamed = self.rename.new if self.rename is not None else ""
        where = folder, module, self.name, opened, self.owner
        for file in importing_files(*where, is_argument=is_argument, renamed=renamed):
            names, edits = file.names, list[TextEdit[int]]()
            if self.rename is not None and self.is_parameter:
                edits += renamed_arguments(file, self.rename, self.name)
            elif self.rename is not None and self.rename.keys:
                places = places_of_key(names.tree, file.with_aliases(), self.rename.keys)
                edits += renamed_in(replace(file, places=(*(places or ()),)), self.rename)
            elif self.rename is not None:
                edits += renamed_in(file, self.rename)
                if strict and file.places and not edits:
                    new = self.rename.new
                    raise EditRefused(f"{new} is in use in {file.path}; choose another name")
            if self.kind is not None:
                edits += of_kind(names, file.with_aliases(), self.kind)
            elif self.signature is not None and self.owner:
                edits += edits_of_method(self.signature, names, file.places, None)
            elif self.signature is not None:
                called = calls_at(names.tree, file.with_aliases(), partials=True)
                called += calls_of_derived(names, self.signature.function)
                edits += calls_to_change(self.signature, names, ((call, 0) for call in called))
            edits += self.member.entries(names.tree) if self.member is not None else ()
            proposed += [(file.path, file.text, edit) for edit in edits]
        return proposed


@dataclass(frozen=True, slots=True)
class Found:
    """The edits that follow from the last one in its document, and what to look for in others."""

    edits: tuple[TextEdit[int], ...]
    """One that replaces nothing by nothing only leads the user there; notes say what they do."""
    elsewhere: Elsewhere | None = None


def next_edits(edits: list[RecordedEdit]) -> Found:
    """Return what the latest edit, which comes first, settles. Raises WorkTakesTooLong."""
    last = edits[0]
    refuse_large(last.document)
    refuse_many_uses(last)
    before = last.names_before()
    if before is None:
        return Found(())
    rename = rename_in(last, before)
    if rename is not None:
        others = _elsewhere_of(rename, before.tree)
        if others is not None and others.is_parameter and others.owner:
            # Calls on what the text tells the class of.
            called = Members(before).places(others.name, others.owner).meant
            named = renamed_arguments(ImportingFile("", before, called), rename, others.name)
            keys = {each.start: Reference(each.start, each.end, NameUse.KEY) for each in named}
            keys |= {use.start: use for use in rename.places}
            rename = replace(rename, places=tuple(keys[start] for start in sorted(keys)))
        return Found(rename.edits(), others)
    now = last.names_now()
    assert now is not None
    if signature := signature_change(last, before.tree, now.tree):
        change, function = signature
        calls = edits_of(change, now, function)
        elsewhere = Elsewhere(change.function, change.owner, signature=change)
        name = name_of(function)
        is_global = name is not None and is_given(now.tree, name)
        return Found(tuple(calls), elsewhere if is_global else None)
    if became := new_kind(last, before.tree, now.tree):
        name, kind = became
        word, owner = now.tree.text_of(name), class_around(now.tree, name)
        own, places = now.use_at(name), Members(now).places(word, owner)
        uses = tuple(use for use in now.uses(word) if own and use.scope == own.scope)
        uses = (() if places.unclear else places.meant) if owner else uses
        if sum(use.declares for use in uses) != 1:
            return Found(())
        others = Elsewhere(word, owner, kind=kind) if is_given(now.tree, name) else None
        return Found(tuple(of_kind(now, uses, kind)), others)
    member = added_member(last, before.tree, now.tree)
    entries = tuple(member.entries(now.tree)) if member is not None else ()
    follow = entries or tuple(same_change(edits, (before, now)))
    exported = member.exported if member is not None else ""
    return Found(follow, Elsewhere(exported, member=member) if exported else None)


def renamed_elsewhere(
    request: AskedRename, where: EditedPart, folder: str, opened: Mapping[str, str]
) -> list[FileEdit]:
    """Return the edits of other files that use what is renamed by instruction, those of a file one
    after another. Reads the disk. Raises EditRefused where a file has the new name already."""
    names = ResolvedNames.of(where.text, where.language, where.path)
    if names is None or not request.declared or not folder:
        return []
    rename = rename_of(names, request.old, request.new, request.declared)
    elsewhere = _elsewhere_of(rename, names.tree) if rename is not None else None
    opened = {**opened, where.path: where.text}
    return elsewhere.edits(Path(folder), where.path, opened, strict=True) if elsewhere else []


def _elsewhere_of(rename: Rename, before: SyntaxTree) -> Elsewhere | None:
    """Return the part of a rename that is in other files; None where it stays in its own."""
    # Its places are those of this file.
    named = replace(rename, places=())
    if rename.is_global:
        return Elsewhere(rename.holder or rename.old, rename.owner, rename=named)
    offset = rename.shift.places[0]
    node = enclosing_with(before.node(offset, offset + len(rename.old)), "parameters")
    name, parameters = name_of(node), child_of(node, "parameters")
    is_inside = parameters is not None and offset <= before.end(parameters)
    if name is None or not (is_inside and BY_NAME.get(before.grammar) and is_given(before, name)):
        return None
    function, owner = before.text_of(name), class_around(before, name)
    if function in CONSTRUCTORS:
        function, owner = owner, ""
    return Elsewhere(function, owner, rename=named, is_parameter=True)


def renamed_arguments(file: ImportingFile, rename: Rename, called: str) -> Iterator[TextEdit[int]]:
    """Yield the arguments of a function's calls that have the name of a renamed parameter."""
    tree = file.names.tree
    calls = calls_at(tree, file.with_aliases(), partials=True)
    calls += calls_of_derived(file.names, called)
    for call in calls:
        for argument in inner(child_of(call, "arguments")):
            name = child_of(argument, "name")
            if name is not None and tree.text_of(name) == rename.old:
                yield TextEdit(tree.start(name), tree.end(name), rename.new, rename.title)


def edits_to_look_at(history: Iterable[RecordedEdit]) -> list[RecordedEdit]:
    """Return the edits that :func:`next_edits` needs, the latest first, while they are small."""
    edits: list[RecordedEdit] = []
    for edit in history:
        if edits and size_of([*edits, edit]) > LARGEST_TEXT:
            break
        edits.append(edit)
    return edits


def size_of(edits: list[RecordedEdit]) -> int:
    """Return characters of the documents of edits."""
    documents = {edit.document.uri: edit.document for edit in edits}
    return sum(len(document.text) for document in documents.values())


def refuse_large(document: Document) -> None:
    """Raise WorkTakesTooLong for a document that is not looked at."""
    if (size := len(document.text)) > LARGEST_TEXT:
        most = f"next edits look at up to {LARGEST_TEXT:,}"
        raise WorkTakesTooLong(f"the file has {size:,} characters; {most}")


def renamed_in(file: ImportingFile, rename: Rename) -> Iterator[TextEdit[int]]:
    """Return the places of a file that uses a renamed name; none where the new name is in use."""
    scopes = [use.scope for use in file.places if use.scope is not None and not rename.owner]
    variables = (use for use in file.names.uses(rename.new) if use.use is NameUse.VARIABLE)
    bound = [use.scope for use in variables if use.scope is not None]
    if any(scope.start <= own.start and own.end <= scope.end for own in bound for scope in scopes):
        return
    comments = documented(file.names.tree, file.places, rename.old)
    for edit in (*file.places, *comments):
        yield TextEdit(*edit.span, edit.written(rename.new), rename.title)
