"""Histories of edits: what follows is proposed, all of it, and nothing of what only looks alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from next_edit_cases import NextEditCase, next_edit_cases
from typist import Typist

from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.text_edit import TextEdit

ALONE = [case for case in next_edit_cases() if case.kind != "elsewhere"]


def type_edits(typist: Typist, document: Document, case: NextEditCase) -> Position:
    """Make the edits of a history; where the cursor is then."""
    cursor = Position(0, 0)
    for line, old, new in case.edits:
        column = document.lines[line].index(old)
        typist.now_s += 5
        edit = typist.change(document, (line, column), (line, column + len(old)), new)
        cursor = edit.start
    typist.now_s += 1
    return cursor


@pytest.mark.parametrize("case", ALONE, ids=str)
def test_a_history_comes_to_its_end(case: NextEditCase) -> None:
    typist = Typist()
    document = typist.open(case.before[case.path], case.language, f"file:///project/{case.path}")
    cursor = type_edits(typist, document, case)
    if case.after is None:
        assert typist.next_edits(document, cursor) == []
    else:
        assert typist.take_all(document, cursor) == case.after[case.path]


@pytest.mark.parametrize("case", next_edit_cases("elsewhere"), ids=str)
def test_a_history_comes_to_its_end_in_other_files(case: NextEditCase, tmp_path: Path) -> None:
    for path, text in case.before.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    typist = Typist(str(tmp_path))
    document = typist.open(
        case.before[case.path], case.language, (tmp_path / case.path).as_uri()
    )  # fmt: skip
    cursor = type_edits(typist, document, case)
    found = typist.next_edits(document, cursor)
    texts = dict(case.before)
    for path, before in case.before.items():
        uri = (tmp_path / path).as_uri()
        edits = [one for one in found if one.uri == uri and one.new_text is not None]
        text = Document(uri, "", 0, before) if path != case.path else document
        hunks = [
            TextEdit(text.offset(one.region.start), text.offset(one.region.end), one.new_text)
            for one in edits
        ]
        texts[path] = apply_hunks(text.text, sorted(hunks, key=lambda one: one.start))
    assert texts == case.after
