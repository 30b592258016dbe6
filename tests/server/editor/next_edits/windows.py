"""A document with an edit and the window around it, made up for these tests."""

from __future__ import annotations

from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.windows import Window, window_at
from lsp_server.tasks.next_edits.formats import NextEditFormat
from lsp_server.text.documents.document import Document, Position

TEXT = """\
import math


def ring(outer, inner):
    return math.pi * (outer**2 - inner**2)


def disc(size):
    return math.pi * size**2
"""


def ring_edit(document: Document) -> RecordedEdit:
    """The first function's parameter was called ``radius``."""
    return RecordedEdit(
        document, 3, ["def ring(radius, inner):\n"], ["def ring(outer, inner):\n"], 0.0
    )


def shown(
    fmt: NextEditFormat, text: str = TEXT, cursor: tuple[int, int] = (3, 15), typing: bool = True
) -> Window:
    """The window of a file ``shapes.py``, in which one edit was made."""
    document = Document("file:///project/shapes.py", "python", 1, text)
    edits = [ring_edit(document)] if text == TEXT else []
    paths = {document.uri: "shapes.py"}
    found = window_at(document, Position(*cursor), fmt, "shapes.py", edits, paths, is_typing=typing)
    assert found is not None
    return found
