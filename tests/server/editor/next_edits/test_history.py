"""What of the user's changes becomes an edit of the history."""

from __future__ import annotations

import random

import pytest
from text_cases import data_cases
from typist import Typist

from lsp_server.editor.next_edits.history import LONGEST_HISTORY, EditHistory
from lsp_server.tasks.apply.edit_text import apply_text
from lsp_server.text.documents.document import Document

TEXT = "def total(prices):\n    return sum(prices)\n\n\ndef other():\n    return 1\n" + "\n" * 20


def edits(history: EditHistory) -> list[tuple[str, str]]:
    return [(edit.old_text, edit.new_text) for edit in history]


def test_keystrokes_of_one_word_are_one_edit() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.retype(document, 0, "total", "amount")
    assert edits(typist.history) == [("def total(prices):\n", "def amount(prices):\n")]


def test_a_word_that_is_typed_on_after_a_long_pause_is_the_same_edit() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.retype(document, 0, "total", "am")
    typist.now_s += 60
    typist.change(document, (0, 6), (0, 6), "ount")
    assert edits(typist.history) == [("def total(prices):\n", "def amount(prices):\n")]


def test_another_place_after_a_pause_is_another_edit() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.retype(document, 0, "total", "amount")
    typist.retype(document, 4, "other", "more")
    assert edits(typist.history) == [
        ("def other():\n", "def more():\n"),
        ("def total(prices):\n", "def amount(prices):\n"),
    ]


def test_near_lines_that_are_changed_without_a_pause_are_one_edit() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.change(document, (0, 4), (0, 9), "amount")
    typist.now_s += 0.5
    typist.change(document, (4, 4), (4, 9), "more")
    (edit,) = typist.history
    assert edit.line == 0
    assert edit.new_text == "".join(document.lines[:5])
    assert edit.text_before() == TEXT


def test_what_is_typed_elsewhere_is_another_edit_where_something_follows_from_the_last() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.change(document, (0, 4), (0, 9), "amount")
    typist.history.last.is_followed = True
    typist.now_s += 0.5
    typist.change(document, (0, 10), (0, 10), "all_")
    assert len([*typist.history]) == 1
    typist.history.last.is_followed = True
    typist.change(document, (4, 4), (4, 9), "more")
    assert [edit.line for edit in typist.history] == [4, 0]


def test_edits_move_with_lines_that_come_above() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.retype(document, 4, "other", "more")
    typist.now_s += 5
    typist.change(document, (0, 0), (0, 0), "import os\n")
    assert [edit.line for edit in typist.history] == [0, 5]


@pytest.mark.parametrize("later_s", [0.2, 30.0])
def test_what_is_undone_was_never_done(later_s: float) -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.change(document, (0, 4), (0, 9), "amount")
    typist.now_s += later_s
    typist.change(document, (0, 4), (0, 10), "total")
    assert edits(typist.history) == []


def test_bulk_changes_formatters_and_replaced_texts_make_no_history() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.change(document, (8, 0), (8, 0), "x = 1\n" * 9)
    typist.change(document, (20, 0), (20, 0), "y" * 201)
    apart = [document.change((1, 0), (1, 4), "\t", "utf-32")]
    apart.append(document.change((5, 0), (5, 4), "\t", "utf-32"))
    typist.provider.changed(document, apart)
    typist.provider.changed(document, [document.replace_all("a = 1\n" * 30)])
    assert edits(typist.history) == []


def test_blanks_alone_are_no_edit() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.change(document, (1, 0), (1, 4), "\t")
    assert edits(typist.history) == []


def test_files_that_may_not_be_read_make_no_history() -> None:
    typist = Typist(readable=False)
    document = typist.open(TEXT)
    typist.retype(document, 0, "total", "amount")
    assert edits(typist.history) == []


def test_nothing_is_known_any_more_of_a_document_that_came_to_hold_secrets() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.retype(document, 0, "total", "amount")
    typist.provider.forget(document.uri)
    assert edits(typist.history) == []


def test_the_history_is_bounded() -> None:
    typist = Typist()
    document = typist.open("".join(f"name{number} = 1\n" for number in range(2000)))
    for number in range(0, 2000, 20):
        typist.now_s += 5
        typist.change(document, (number, 0), (number, 4), "other")
    assert len(typist.history) == LONGEST_HISTORY


def test_random_changes_are_told_by_lines_that_give_the_old_text_back() -> None:
    """Without its latest edit a document reads as before it, whatever was typed."""
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    for _ in range(300):
        typist = Typist()
        document = typist.open("".join(rng.choices(["ab\n", "\n", "c d\r\n", "é😀\n"], k=12)))
        texts = {document.text}
        for _ in range(12):
            line = rng.randrange(len(document.lines))
            end = min(len(document.lines) - 1, line + rng.choice([0, 0, 0, 1, 2]))
            start_column, end_column = sorted((rng.randrange(4), rng.randrange(4)))
            typist.now_s += rng.choice([0.1, 0.1, 2.0])
            new = rng.choice(["x", "yz", "\n", "", "q\nr", "\r\n"])
            typist.change(document, (line, start_column), (end, end_column), new)
            last = typist.history.last
            if last is not None and last.document is document:
                start = sum(map(len, document.lines[: last.line]))
                assert document.text[start:].startswith(last.new_text), f"seed {seed}"
            if last is not None and last.changed_s == typist.now_s:
                assert last.text_before() in texts, f"seed {seed}"
            texts.add(document.text)


def test_a_change_costs_little_in_a_large_document() -> None:
    document = Document("file:///a.py", "python", 1, "x = 1\n" * 50_000)
    history = EditHistory(lambda _: True)
    history.opened(document)
    edit = document.change((25_000, 0), (25_000, 1), "y", "utf-32")
    compared = 0

    class Counted(list[str]):
        def __getitem__(self, key: object) -> object:  # type: ignore[override]
            nonlocal compared
            found = super().__getitem__(key)  # type: ignore[index]
            compared += len(found) if isinstance(found, list) else 1
            return found

    document.lines = Counted(document.lines)
    history.changed(document, [edit])
    assert len(history) == 1
    assert compared < 20


@data_cases()
def test_the_history_says_what_was_not_typed(text: str, origin: str) -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.change(document, (8, 0), (8, 0), text)
    (edit,) = typist.history
    assert edit.origin == origin
    typist.history.suggested(document)
    assert edit.origin == "suggested"


def test_what_is_typed_on_behind_a_suggestion_is_still_a_suggestion() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.change(document, (8, 0), (8, 0), "total(x)")
    typist.history.suggested(document)
    typist.change(document, (8, 8), (8, 8), ".y")
    (edit,) = typist.history
    assert (edit.new_text, edit.origin) == ("total(x).y\n", "suggested")
    typist.now_s += 60
    typist.change(document, (16, 0), (16, 0), "z")
    assert [one.origin for one in typist.history] == ["typed", "suggested"]


def test_a_suggestion_in_another_document_changes_nothing() -> None:
    typist = Typist()
    document, other = typist.open(TEXT), typist.open(TEXT, uri="file:///other.py")
    typist.change(document, (8, 0), (8, 0), "total")
    typist.history.suggested(other)
    assert [one.origin for one in typist.history] == ["typed"]


@data_cases()
def test_what_an_agent_wrote_into_an_open_file_is_an_edit_as_it_is_read_again(
    snippet: str, old: str, new: str
) -> None:
    # Editors send the whole text of a file that another program changed.
    typist = Typist()
    document = typist.open(TEXT)
    text = apply_text(TEXT, snippet, "python").text
    typist.provider.changed(document, [document.replace_all(text)])
    assert edits(typist.history) == [(old, new)]
    assert [edit.origin for edit in typist.history] == ["pasted"]
