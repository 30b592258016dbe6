"""Changes as a person types them: Tab alone carries them to their end, and no ghost text comes
between."""

from __future__ import annotations

import asyncio

import pytest
from typed_changes import TypedChange, Typing, typed_changes
from typist import Typist

from lsp_server.editor.screen import Screen
from lsp_server.text.documents.document import Document, Position


def type_over(typist: Typist, document: Document, typing: Typing) -> Position:
    """Delete what is typed over at once, as a selection, and type key by key; the cursor then."""
    line, column = typing.line - 1, typing.column - 1
    typist.now_s += 3
    if typing.length:
        typist.change(document, (line, column), (line, column + typing.length), "")
    for number, character in enumerate(typing.text):
        place = line, column + number
        typist.now_s += 0.1
        typist.change(document, place, place, character)
    typist.now_s += 1
    return Position(line, column + len(typing.text))


@pytest.mark.parametrize("change", typed_changes(), ids=lambda change: change.name)
def test_tab_alone_carries_a_change_to_its_end(change: TypedChange) -> None:
    typist = Typist()
    screen = Screen(typist.provider)
    screen.draws_next_edits = True
    document = typist.open(change.before, change.language, f"file:///project/{change.file}")
    cursor = Position(0, 0)

    def sees_ghost_text() -> bool:
        screen.changed(document.uri)
        return asyncio.run(screen.shows_suggestion(document, cursor, is_asked_for=False))

    for typing in change.typings:
        cursor = type_over(typist, document, typing)
    assert not sees_ghost_text()
    while found := [one for one in typist.next_edits(document, cursor) if one.new_text is not None]:
        cursor = found[0].region.start
        typist.take(document, found[0])
        assert not sees_ghost_text()
    assert document.text == change.wanted
