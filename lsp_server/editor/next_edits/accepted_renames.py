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
        """Return the text with another name; None where it is there no more, or has that name."""
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
        self, document: Document, edits: list[TextEdit[Position]], accepted: list[Suggestion]
    ) -> None:
        """A document was changed; it holds what was ``accepted`` by that."""
        for held in self._places:
            for edit in edits if held.document is document else ():
                held.region.follow(edit)
        new = {(id(held.document), held.region.start): held for held in _taken(accepted)}
        for old in self._places:
            if (again := new.get((id(old.document), old.region.start))) is not None:
                again.original, old.region.touched = old.original, True
        self._places = [held for held in self._places if not held.region.touched]
        self._places += new.values()

    def went_on(self, edit: RecordedEdit, longer: RecordedEdit | None) -> None:
        """A change was joined to an edit, which is another one now; None where it was undone."""
        if longer is None:
            self._places = [each for each in self._places if each.source is not edit]
        for held in self._places:
            if longer is not None and held.source is edit:
                held.source = longer

    def closed(self, uri: str) -> None:
        """A document was closed."""
        self._places = [each for each in self._places if each.document.uri != uri]

    def typed(self, edit: RecordedEdit) -> RecordedEdit | None:
        """Return an edit as the user typed it; None where nothing was taken of what follows."""
        taken_places = [held for held in self._places if held.source is edit]
        return _without(edit, taken_places) if taken_places else None

    def of(self, edit: RecordedEdit, name: str) -> Iterator[tuple[TakenPlace, str, str]]:
        """Yield the places that an edit to another name left, what becomes of each, and why."""
        for held in self._places:
            if held.source is edit and (text := held.renamed(name)) is not None:
                yield held, text, f"rename {held.name} to {name}"


def _taken(accepted: Iterable[Suggestion]) -> Iterator[TakenPlace]:
    """Return where the texts of proposals are once they are in the document."""
    line, shift = -1, 0
    for suggestion in sorted(accepted, key=lambda suggestion: suggestion.region.start):
        change = changed_word(suggestion.source.old_text, suggestion.source.new_text)
        text, start = suggestion.new_text or "", suggestion.region.start
        if suggestion.is_of_model or change is None or "\n" in suggestion.old_text + text:
            return
        shift = shift if line == start.line else 0
        line = start.line
        column = start.column + shift
        shift += len(text) - len(suggestion.old_text)
        region = TrackedRegion(Position(line, column), Position(line, column + len(text)))
        document, source, old = suggestion.document, suggestion.source, suggestion.old_text
        yield TakenPlace(document, region, text, change.new, source, old)


def _without(edit: RecordedEdit, taken_places: list[TakenPlace]) -> RecordedEdit:
    """Return an edit as the user typed it, without what was taken in its lines."""
    new = list(edit.new)
    for held in sorted(taken_places, key=lambda each: each.region.start, reverse=True):
        start, end = held.region.start, held.region.end
        if held.document is edit.document and edit.line <= start.line < edit.end:
            line = new[start.line - edit.line]
            new[start.line - edit.line] = line[: start.column] + held.original + line[end.column :]
    return replace(edit, new=new)
