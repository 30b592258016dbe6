"""A next edit at its place in a document: it follows what is typed around it."""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.editor.editing.region import TrackedRegion
from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.text_edit import TextEdit


@dataclass(slots=True, eq=False)
class Suggestion:
    """A proposal at its place in a document, or in a file that is not open."""

    document: Document
    """The open document, or one made of the file's text."""
    is_open: bool
    region: TrackedRegion
    old_text: str
    new_text: str | None
    """None where the user is only led to the place."""
    title: str
    source: RecordedEdit
    number: int
    is_of_model: bool = False
    is_typed: bool = False
    """The last change was its beginning."""

    @property
    def uri(self) -> str:
        """Of its document."""
        return self.document.uri

    def is_valid(self) -> bool:
        """Return whether its text is still what it was made for."""
        start, end = self.region.start, self.region.end
        if self.region.touched or end.line >= len(self.document.lines):
            return False
        if self.is_open and not self.document.is_open:
            return False
        return self.document.between(start, end) == self.old_text

    def move_to(self, document: Document, *, is_open: bool) -> None:
        """Its document is another one: the file was written, or opened as it is by now. Where its
        lines are not found again, it ends."""
        before, after = self.document.lines, document.lines
        start, end = self.region.start, self.region.end
        is_same = self.document.text == document.text
        self.document, self.is_open = document, is_open
        by = 0 if is_same else _lines_moved(before, after, start.line, end.line)
        if by is None:
            self.region.touched = True
        else:
            self.region = TrackedRegion(
                Position(start.line + by, start.column), Position(end.line + by, end.column)
            )

    def follow(self, edits: list[TextEdit[Position]]) -> None:
        """Its document changed. A part of it that the user typed shortens it."""
        if len(edits) == 1 and self._is_beginning(edits[0]):
            self.is_typed = True
            self.region.take_in(edits[0])
            self._leave_out_what_is_there()
            return
        for edit in edits:
            self.region.touched |= self._is_joined_by(edit)
            self.region.follow(edit)

    def _leave_out_what_is_there(self) -> None:
        """Leave out the beginning of the new text, where that is all that is there."""
        self.old_text = self.document.between(self.region.start, self.region.end)
        if self.new_text is not None and self.new_text.startswith(self.old_text):
            self.region = TrackedRegion(self.region.end, self.region.end)
            self.new_text, self.old_text = self.new_text[len(self.old_text) :], ""
            self.region.touched = not self.new_text

    def _is_joined_by(self, edit: TextEdit[Position]) -> bool:
        """Return whether what was typed beside it makes one longer word of both."""
        first, right = self.old_text[:1], self.old_text[-1:]
        return (edit.start == self.region.end and _are_of_words(right, edit.text[:1])) or (
            edit.end == self.region.start and _are_of_words(edit.text[-1:], first)
        )

    def _is_beginning(self, edit: TextEdit[Position]) -> bool:
        start, end = self.region.start, self.region.end
        if self.new_text is None or edit.start < start or end < edit.end:
            return False
        return self.new_text.startswith(self.document.between(start, edit.start) + edit.text)


def _are_of_words(*characters: str) -> bool:
    return all(character.isalnum() or character == "_" for character in characters)


def _lines_moved(before: list[str], after: list[str], first: int, last: int) -> int | None:
    """By how many lines a stretch of lines is elsewhere now: it is unchanged from the start, or
    from the end, of the text, or there is only one of its kind; None where it is not found."""
    if after[: last + 1] == before[: last + 1]:
        return 0
    if after[len(after) - (len(before) - first) :] == before[first:] and first < len(before):
        return len(after) - len(before)
    lines = before[first : last + 1]
    starts = [n for n in range(len(after)) if after[n : n + len(lines)] == lines]
    is_only = sum(before[n : n + len(lines)] == lines for n in range(len(before))) == 1
    return starts[0] - first if is_only and len(starts) == 1 else None
