"""The code of a notebook as its kernel knows it: the cells of a language as one text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate

from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.text.documents.document import Document, Documents, Position, line_end

_MAGIC = re.compile(r"^(\s*)[%!?]")
_OTHER_LANGUAGE = re.compile(r"\s*%%(?!time|timeit|capture|prun)\w")
"""A cell whose first line hands the rest to another program."""


class NotebookText:
    """One text of several cells, and where its places are. Valid until one of them changes."""

    def __init__(self, cells: list[Document], edited: Document) -> None:
        self._cells = cells
        self._firsts = list(accumulate((len(cell.lines) for cell in cells), initial=0))
        """The line at which each cell begins."""
        # What is for the notebook alone is a comment.
        text = "".join(_MAGIC.sub(r"\1#", _ended(line)) for cell in cells for line in cell.lines)
        self.document = Document(edited.uri, edited.language, 0, text)

    @classmethod
    def around(
        cls, edited: Document, documents: Documents, may_be_read: Callable[[Document], bool]
    ) -> NotebookText | None:
        """Return the text of the notebook that a cell belongs to; None for any other document."""
        notebook = documents.notebook_of(edited.uri)
        if notebook is None:
            return None
        cells_found = [documents.find(uri) for uri in notebook.cells]
        own = (cell for cell in cells_found if cell and cell.language == edited.language)
        cells = [cell for cell in own if cell is edited
                 or (may_be_read(cell) and not _OTHER_LANGUAGE.match(cell.text))]  # fmt: skip
        return cls(cells, edited) if edited in cells else None

    def of(self, edit: RecordedEdit) -> RecordedEdit:
        """Return an edit of a cell as one of the whole text; any other as it is."""
        if edit.document not in self._cells:
            return edit
        line = self._firsts[self._cells.index(edit.document)] + edit.line
        last = len(edit.document.lines) == edit.end
        old = [*edit.old[:-1], _ended(edit.old[-1])] if last and edit.old else edit.old
        new = self.document.lines[line : line + len(edit.new)]
        return replace(edit, document=self.document, line=line, old=old, new=new)

    def place(self, offset: int) -> tuple[Document, Position]:
        """Return the cell that holds a place, and where in it."""
        position = self.document.position_at(offset)
        number = min(bisect_right(self._firsts, position.line), len(self._cells)) - 1
        return self._cells[number], Position(position.line - self._firsts[number], position.column)


def _ended(line: str) -> str:
    return line if line_end(line) else f"{line}\n"
