"""Next edits in notebooks: from the first change of a cell on, and in the other cells."""

from __future__ import annotations

from typing import Any

import pytest
from lsprotocol import types
from text_cases import data_cases

from lsp_server.editor import document_sync as sync
from lsp_server.editor.daemon.connection import new_server
from lsp_server.editor.hub.hub import Hub
from lsp_server.editor.next_edits import provider
from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.notebook_text import NotebookText
from lsp_server.shared.settings import read_settings
from lsp_server.text.documents.document import Document, Documents, Notebook, Position

BOOK = "file:///w/a.ipynb"


def uri(number: int) -> str:
    return f"vscode-notebook-cell:/w/a.ipynb#W{number}sZmlsZQ%3D%3D"


def item(number: int, text: str, language: str = "python") -> types.TextDocumentItem:
    return types.TextDocumentItem(uri(number), language, 1, text)


class Book:
    """A notebook that is open in an editor."""

    def __init__(self, *texts: str, languages: dict[int, str] | None = None) -> None:
        self.server = new_server(Hub())
        options = {"completion": {"enabled": False}, "nextEdits": {"format": "none"}}
        self.server.settings = read_settings(options).settings
        items = [item(n, text, (languages or {}).get(n, "python")) for n, text in enumerate(texts)]
        kinds = types.NotebookCellKind
        cells = [
            types.NotebookCell(kinds.Code if one.language_id == "python" else kinds.Markup, one.uri)
            for one in items
        ]
        book = types.NotebookDocument(BOOK, "jupyter-notebook", 1, cells)
        sync.notebook_did_open(self.server, types.DidOpenNotebookDocumentParams(book, items))

    def text(self, number: int) -> str:
        return self.server.documents.get(uri(number)).text

    def change(self, number: int, line: int, start: int, end: int, text: str) -> None:
        span = types.Range(types.Position(line, start), types.Position(line, end))
        content = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(2, uri(number)),
            [types.TextDocumentContentChangePartial(span, text)],
        )
        self._tell(types.NotebookDocumentCellChanges(text_content=[content]))

    def add_cell(self, number: int, text: str) -> None:
        cell = types.NotebookCell(types.NotebookCellKind.Code, uri(number))
        array = types.NotebookCellArrayChange(number, 0, [cell])
        structure = types.NotebookDocumentCellChangeStructure(array, [item(number, text)])
        self._tell(types.NotebookDocumentCellChanges(structure=structure))

    def _tell(self, cells: types.NotebookDocumentCellChanges) -> None:
        change = types.NotebookDocumentChangeEvent(cells=cells)
        version = types.VersionedNotebookDocumentIdentifier(2, BOOK)
        sync.notebook_did_change(
            self.server, types.DidChangeNotebookDocumentParams(version, change)
        )

    async def take_all(self, number: int) -> None:
        """Take what is proposed, in all cells."""
        for _ in range(30):
            document = self.server.documents.get(uri(number))
            found = await self.server.next_edits.next_edits(document, Position(0, 0))
            if not found:
                return
            start, end = found[0].region.start, found[0].region.end
            cell = next(n for n in range(9) if uri(n) == found[0].uri)
            assert start.line == end.line
            self.change(cell, start.line, start.column, end.column, found[0].new_text or "")
        raise AssertionError("next edits come without end")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "PAUSE_S", 0.0)


@pytest.mark.parametrize("added", [False, True])
async def test_the_first_change_of_a_cell_brings_next_edits(added: bool) -> None:
    text = "def f(count):\n    return count + 1\n"
    book = Book("x = 1\n") if added else Book("x = 1\n", text)
    if added:
        book.add_cell(1, text)
    book.change(1, 0, 6, 11, "total")
    await book.take_all(1)
    assert book.text(1) == "def f(total):\n    return total + 1\n"


@data_cases()
async def test_the_other_cells_follow(
    texts: list[str], change: list[Any], after: list[str]
) -> None:
    book = Book(*texts)
    book.change(*change)
    await book.take_all(change[0])
    assert [book.text(number) for number in range(len(texts))] == after


async def test_prose_and_cells_with_secrets_are_left_alone() -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    texts = ["load = 1\n", "# text about load\n", f"key = '{token}'\nload\n", "print(load)\n"]
    book = Book(*texts, languages={1: "markdown"})
    book.change(0, 0, 0, 4, "fetch")
    await book.take_all(0)
    assert [book.text(number) for number in range(4)] == [
        *("fetch = 1\n", *texts[1:3], "print(fetch)\n")
    ]


def test_places_of_the_whole_text_are_those_of_the_cells() -> None:
    documents = Documents()
    texts = ["a\nb", "", "c\r\nd\r\n", "x\n%magic\ny"]
    made: list[Any] = [documents.open(uri(n), "python", 1, text) for n, text in enumerate(texts)]
    documents.notebooks[BOOK] = Notebook(BOOK, 1, [one.uri for one in made])
    for cell in made:
        whole = NotebookText.around(cell, documents, lambda _: True)
        assert whole is not None
        offset = 0
        for one in made:
            for number, line in enumerate(one.lines):
                assert whole.place(offset) == (one, Position(number, 0))
                offset += len(line) if line.endswith("\n") else len(line) + 1
        edit = RecordedEdit(cell, 0, ["old"], [cell.lines[0]], 0.0)
        moved = whole.of(edit)
        assert moved.new == whole.document.lines[moved.line : moved.line + 1]
    other = Document("file:///w/a.py", "python", 1, "")
    assert NotebookText.around(other, documents, lambda _: True) is None
