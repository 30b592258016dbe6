"""Signatures, types, imports and literals stay as they are unless the last edits name what changes,
and a name that was added is added to no other definition."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from text_cases import data_beside

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
SIGNATURE, TYPE, IMPORT, LITERAL = (
    f"it changes {what} that no edit names"
    for what in ("a signature", "a type", "an import", "a literal")
)
OTHER = "it adds a name to another definition"


class Change(NamedTuple):
    """An edit of the user, and a model's change after it; ``reason`` is empty where it may be."""

    language: str
    edit: tuple[str, str]
    change: tuple[str, str]
    reason: str


CHANGES = [
    # What the second field study saw at the end of chains.
    Change("python", ("book(room, guest)", "book(room, guest, day)"),
           ("move(room, guest)", "move(room, guest, day)"), OTHER),
    Change("python", ("book(room, guest):", "book(room, guest, day):"),
           ("move(1, 2)", "move(1, 2, day)"), OTHER),
    Change("typescript", ("'business' |", "'first' | 'business' |"),
           ("return 'business'", "return 'first'"), LITERAL),
    Change("typescript", ("'business' |", "'first' | 'business' |"),
           ("return 'economy'", "return 'first'"), LITERAL),
    Change("go", ("Rows(", "Lines("), ("lines [][]string", "lines []string"), TYPE),
    Change("go", ("%v", "%w"), ("lines [][]string", "lines []string"), TYPE),
    Change("go", ("random \"", "mrand \""), ("\"math/rand\"", "\"math\""), LITERAL),
    # Others of their kinds.
    Change("python", ("import datetime", "import datetime as dt"),
           ("LIMIT = 3", "LIMIT = 4"), LITERAL),
    Change("python", ("store(", "keep("), ("def move(room, guest)", "def move(room)"), SIGNATURE),
    Change("python", ("store(", "keep("), ("import datetime", "import dates"), IMPORT),
    Change("python", ("room, guest):\n    return store", "room, guest, day):\n    return store"),
           ("def __init__(self, room):", "def __init__(self, room, day):"), OTHER),
    Change("typescript", ("cheaper", "cheapest"), ("lines: string[]", "lines: number[]"), TYPE),
    Change("typescript", ("cheaper", "cheapest"), ("fare: Fare)",
           "fare: Fare, day: Date)"), SIGNATURE),
    Change("typescript", ("cheaper", "cheapest"), ("{ rate }", "{ rate, tax }"), IMPORT),
    Change("go", ("Intn(2)", "Intn(3)"), ("Cells [][]string", "Rows [][]string"), SIGNATURE),
    # What the edits name, and new code.
    Change("python", ("book(room, guest):", "book(room, guest, day):"),
           ("store(room, guest)", "store(room, guest, day)"), OTHER),
    Change("python", ("book(room, guest):", "book(room, guest, day):"),
           ("\nbook(1, 2)", "\nbook(1, 2, day)"), ""),
    Change("python", ("__init__(self, room)", "__init__(self, room, day)"),
           ("= room\n", "= room\n        self.day = day\n"), ""),
    Change("python", ("LIMIT = 3", "LIMIT = 3\nWEEK = 7"),
           ("import datetime\n", "import datetime\nimport math\n"), ""),
    Change("python", ("def book(room", "def book(place"), ("def move(room", "def move(place"), ""),
    Change("python", ("book(1, 2)", "book(7, 2)"), ("move(1, 2)", "move(7, 2)"), ""),
    Change("python", ("store(", "keep("), ("shift(", "keep("), ""),
    Change("typescript", ("'business' |", "'first' |"),
           ("return 'business'", "return 'first'"), ""),
    Change("typescript", ("lines: string", "lines: number"), ("(fare: Fare)", "(fare: Fare)"), ""),
    Change("go", ("Cells [][]string", "Cells [][]int"), ("lines [][]string", "lines [][]int"), ""),
    Change("go", ("fmt.Errorf", "errors.Wrap"), ("\t\"fmt\"\n", "\t\"fmt\"\n\t\"errors\"\n"), ""),
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: " → ".join(change.change))
def test_what_no_edit_names_stays(change: Change) -> None:
    before = TEXTS[change.language]
    text = before.replace(*change.edit, 1)
    (typed,) = minimal_hunks(before, text)
    document = Document("file:///project/code", change.language, 1, text)
    start, end = before.count("\n", 0, typed.start), before.count("\n", 0, typed.end)
    added = text.count("\n") - before.count("\n")
    edit = RecordedEdit(
        document,
        start,
        before.splitlines(keepends=True)[start : end + 1],
        text.splitlines(keepends=True)[start : end + 1 + added],
        0.0,
    )
    tree = SyntaxTree.of(text, change.language)
    assert tree is not None
    reasons = [
        refused_change(tree, hunk, [edit])
        for hunk in minimal_hunks(text, text.replace(*change.change, 1))
    ]
    assert next(filter(None, reasons), "") == change.reason
