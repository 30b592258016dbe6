"""Places of a rename that the user has taken: they follow when the name is typed on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lsp_server.editor.editing.region import TrackedRegion
from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.suggestion import Suggestion
from lsp_server.editor.next_edits.words import changed_word
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.text_edit import TextEdit


@dataclass(slots=True, eq=False)
class TakenPlace:
    """Text that was taken, and the name that it has from the edit that it follows from."""

    document: Document
    region: TrackedRegion
    text: str
    name: str
    source: RecordedEdit
    original: str
    """The text before anything was taken."""

    def renamed(self, name: str) -> str | None:
        """The text with another name; None where it is there no more, or has that name."""
        start, end = self.region.start, self.region.end
        if self.region.touched or not self.document.is_open or name == self.name:
            return None
        around = self.document.lines[start.line : start.line + 1]
        is_there = bool(around) and around[0][start.column : end.column] == self.text
        if not is_there or around[0][end.column : end.column + 1].isidentifier():
            return None
        return re.sub(rf"\b{re.escape(self.name)}\b", name, self.text)


class TakenPlaces:
    """Those of one client."""

    def __init__(self) -> None:
        self._places: list[TakenPlace] = []

    def changed(
        self, document: Document, edits: list[TextEdit[Position]], taken: list[Suggestion]
    ) -> None:
        """A document was changed; it holds what was ``taken`` by that."""
        for one in self._places:
            for edit in edits if one.document is document else ():
                one.region.follow(edit)
        new = {(id(one.document), one.region.start): one for one in _taken(taken)}
        for old in self._places:
            if (again := new.get((id(old.document), old.region.start))) is not None:
                again.original, old.region.touched = old.original, True
        left = [one for one in self._places if not one.region.touched]
        self._places = [*left, *new.values()]

    def went_on(self, edit: RecordedEdit, longer: RecordedEdit | None) -> None:
        """A change was joined to an edit, which is another one now; None where it was undone."""
        if longer is None:
            self._places = [one for one in self._places if one.source is not edit]
        for one in self._places:
            if longer is not None and one.source is edit:
                one.source = longer

    def closed(self, uri: str) -> None:
        """A document was closed."""
        self._places = [one for one in self._places if one.document.uri != uri]

    def typed(self, edit: RecordedEdit) -> RecordedEdit | None:
        """An edit as the user typed it, without what was taken in its lines; None where nothing was
        taken of what follows from it."""
        places = [one for one in self._places if one.source is edit]
        return _without(edit, places) if places else None

    def of(self, edit: RecordedEdit, name: str) -> Iterator[tuple[TakenPlace, str, str]]:
        """The places that an edit to another name has left behind, what becomes of each, and
        why."""
        for one in self._places:
            if one.source is edit and (text := one.renamed(name)) is not None:
                yield one, text, f"rename {one.name} to {name}"


def _taken(taken: Iterable[Suggestion]) -> Iterator[TakenPlace]:
    """Where the texts of proposals are once they are in the document."""
    line, shift = -1, 0
    for one in sorted(taken, key=lambda one: one.region.start):
        change = changed_word(one.source.old_text, one.source.new_text)
        text, start = one.new_text or "", one.region.start
        if one.is_of_model or change is None or "\n" in one.old_text + text:
            return
        shift = shift if line == start.line else 0
        line = start.line
        at = start.column + shift
        shift += len(text) - len(one.old_text)
        region = TrackedRegion(Position(line, at), Position(line, at + len(text)))
        yield TakenPlace(one.document, region, text, change.new, one.source, one.old_text)


def _without(edit: RecordedEdit, places: list[TakenPlace]) -> RecordedEdit:
    """An edit as the user typed it, without what was taken in its lines."""
    new = list(edit.new)
    for one in sorted(places, key=lambda one: one.region.start, reverse=True):
        start, end = one.region.start, one.region.end
        if one.document is edit.document and edit.line <= start.line < edit.end:
            line = new[start.line - edit.line]
            new[start.line - edit.line] = line[: start.column] + one.original + line[end.column :]
    return replace(edit, new=new)
