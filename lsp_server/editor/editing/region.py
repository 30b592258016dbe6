"""The region of a document that is being edited, tracked while the user goes on typing."""

from __future__ import annotations

from lsp_server.text.documents.document import Document, Position, split_lines
from lsp_server.text.text_edit import TextEdit


class TrackedRegion:
    """A range that moves with edits outside of it and is spoilt by edits inside."""

    def __init__(self, start: Position, end: Position) -> None:
        self.start = start
        self.end = end
        self.touched = False

    def follow(self, edit: TextEdit[Position]) -> None:
        """Move with ``edit`` of the document, or note that it touches the region."""
        if edit.end <= self.start and edit.start < self.start:
            self.start, self.end = _moved(self.start, edit), _moved(self.end, edit)
        elif edit.start < self.end or (edit.start == self.end == self.start):
            self.touched = True

    def take_in(self, edit: TextEdit[Position]) -> None:
        """Grow or shrink with ``edit``, which belongs to the region."""
        self.end = _moved(self.end, edit)


def _moved(position: Position, edit: TextEdit[Position]) -> Position:
    """Return ``position``, which is not before the end of ``edit``, as it is after the edit."""
    lines = split_lines(edit.text)
    line = position.line + len(lines) - 1 - (edit.end.line - edit.start.line)
    if position.line != edit.end.line:
        return Position(line, position.column)
    start = edit.start.column if len(lines) == 1 else 0
    return Position(line, start + len(lines[-1]) + position.column - edit.end.column)


def whole_lines(document: Document, start: Position, end: Position) -> tuple[Position, Position]:
    """Widen the range from ``start`` to ``end`` to whole lines, without the last line end. A
    selection that ends at the start of a line excludes that line."""
    last = end.line
    if last > start.line and end.column == 0:
        last -= 1
    line = document.lines[last].rstrip("\r\n")
    return Position(start.line, 0), Position(last, len(line))
