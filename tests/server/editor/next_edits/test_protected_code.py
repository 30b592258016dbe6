"""Signatures, types, imports and literals stay as they are unless the last edits name what changes,
and a name that was added is added to no other definition."""

from __future__ import annotations

from text_cases import data_beside, data_cases

from lsp_server.editor.editing.hunks import minimal_hunks
from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.protected_code import refused_change
from lsp_server.text.documents.document import Document
from lsp_server.text.syntax.tree import SyntaxTree

DATA = data_beside(__file__)
PLAN = DATA["PLAN"]
FARES = DATA["FARES"]
GRID = DATA["GRID"]
TEXTS = {"python": PLAN, "typescript": FARES, "go": GRID}


@data_cases()
def test_what_no_edit_names_stays(
    language: str, edit: tuple[str, str], change: tuple[str, str], reason: str
) -> None:
    """``reason`` is empty where a model may change that after an edit of the user."""
    before = TEXTS[language]
    text = before.replace(*edit, 1)
    (typed,) = minimal_hunks(before, text)
    document = Document("file:///project/code", language, 1, text)
    start, end = before.count("\n", 0, typed.start), before.count("\n", 0, typed.end)
    added = text.count("\n") - before.count("\n")
    recorded = RecordedEdit(
        document,
        start,
        before.splitlines(keepends=True)[start : end + 1],
        text.splitlines(keepends=True)[start : end + 1 + added],
        0.0,
    )
    tree = SyntaxTree.of(text, language)
    assert tree is not None
    reasons = [
        refused_change(tree, hunk, [recorded])
        for hunk in minimal_hunks(text, text.replace(*change, 1))
    ]
    assert next(filter(None, reasons), "") == reason
