"""Somebody who types into documents of a next-edit provider, with a clock of his own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.history import EditHistory
from lsp_server.editor.next_edits.provider import NextEditProvider
from lsp_server.editor.next_edits.suggestion import Suggestion
from lsp_server.text.documents.document import Document, Documents, Position
from lsp_server.text.documents.workspace_folders import Folders
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from tests.next_edit_cases import NextEditCase


class Typist:
    """Types in seconds that pass by the keystroke."""

    def __init__(self, folder: str = "", *, readable: bool = True) -> None:
        self.now_s = 0.0
        self.documents = Documents()
        self.folders = Folders()
        if folder:
            self.folders.add(Path(folder).as_uri())
        self.provider = NextEditProvider(self.documents, self.folders, lambda _: readable)
        self.provider.history = EditHistory(lambda _: readable, lambda: self.now_s)

    @property
    def history(self) -> EditHistory:
        return self.provider.history

    def open(
        self, text: str, language: str = "python", uri: str = "file:///project/code.py"
    ) -> Document:
        document = self.documents.open(uri, language, 1, text)
        self.provider.opened(document)
        return document

    def change(
        self, document: Document, start: tuple[int, int], end: tuple[int, int], text: str
    ) -> TextEdit[Position]:
        edit = document.change(start, end, text, "utf-32")
        self.provider.changed(document, [edit])
        return edit

    def retype(self, document: Document, line: int, old: str, new: str, nth: int = 0) -> Position:
        """Delete a word by backspaces and type another; where the cursor is then."""
        places = [
            at.start()
            for at in re.finditer(rf"(?<!\w){re.escape(old)}(?!\w)", document.lines[line])
        ]
        column = places[nth]
        self.now_s += 3
        for left in range(len(old) - 1, -1, -1):
            self.change(document, (line, column + left), (line, column + left + 1), "")
            self.now_s += 0.1
        for number, character in enumerate(new):
            place = line, column + number
            self.change(document, place, place, character)
            self.now_s += 0.1
        self.now_s += 1
        return Position(line, column + len(new))

    def next_edits(self, document: Document, cursor: Position) -> list[Suggestion]:
        found = asyncio.run(self.provider.next_edits(document, cursor))
        assert found is not None
        return found

    def take(self, document: Document, one: Suggestion) -> None:
        """Accept a next edit as an editor does."""
        assert one.document is document
        assert one.new_text is not None
        start, end = one.region.start, one.region.end
        self.provider.accept(one.number)
        self.change(document, (start.line, start.column), (end.line, end.column), one.new_text)

    def take_all(self, document: Document, cursor: Position) -> str:
        """Take one after another until none is left; the text then."""
        for _ in range(100):
            here = [one for one in self.next_edits(document, cursor) if one.document is document]
            changing = [one for one in here if one.new_text is not None]
            if not changing:
                return document.text
            self.now_s += 1
            cursor = changing[0].region.start
            self.take(document, changing[0])
        raise AssertionError("next edits come without end")


def type_over(
    typist: Typist, document: Document, line: int, old: str, new: str, pause_s: float = 3
) -> Position:
    """Type ``new`` in place of ``old``, without what both begin or end with, after ``pause_s``."""
    head = tail = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    column = document.lines[line].index(old) + head
    typed = new[head : len(new) - tail]
    typist.now_s += pause_s
    if head + tail < len(old):
        typist.change(document, (line, column), (line, column + len(old) - head - tail), "")
    for character in typed:
        typist.now_s += 0.1
        typist.change(document, (line, column), (line, column), character)
        line, column = (line + 1, 0) if character == "\n" else (line, column + 1)
    typist.now_s += 0.3
    return Position(line, column)


def carried_on(
    case: NextEditCase, folder: Path, pauses_s: Iterable[float] = repeat(3)
) -> dict[str, str]:
    """Return the files after the edits of ``case``, typed key by key in ``folder``, each after one
    of ``pauses_s``, and after Tab as often as something is proposed."""
    for path, text in case.before.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    typist = Typist(str(folder))
    uri = (folder / case.path).as_uri()
    opened = {case.path: typist.open(case.before[case.path], case.language, uri)}
    cursor = Position(0, 0)
    for (line, old, new), pause_s in zip(case.edits, pauses_s, strict=False):
        cursor = type_over(typist, opened[case.path], line, old, new, pause_s)
        typist.next_edits(opened[case.path], cursor)
    document = opened[case.path]
    for _ in range(100):
        found = [one for one in typist.next_edits(document, cursor) if one.new_text is not None]
        if not found:
            break
        path = Path(found[0].uri.removeprefix("file://")).relative_to(folder).as_posix()
        if path not in opened:
            # The editor opens the file that the key leads to.
            opened[path] = typist.open(case.before[path], case.language, found[0].uri)
        document, cursor = opened[path], found[0].region.start
        typist.now_s += 1
        typist.take(document, found[0])
    else:
        raise AssertionError("next edits come without end")
    return {**case.before, **{path: one.text for path, one in opened.items()}}
