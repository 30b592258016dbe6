"""Changes of a window as changes of a document: not a byte outside of them moves."""

from __future__ import annotations

import math
import random
import re

import pytest
from seeds import Amount
from text_cases import data_beside
from windows import TEXT, shown

from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.next_edits.answers import AnsweredWindow, AnswerPart, read_answer
from lsp_server.editor.next_edits.window_hunks import (
    all_hunks,
    first_hunks,
    in_document,
    logprob_of,
    starts_in_answer,
)
from lsp_server.editor.next_edits.windows import window_at
from lsp_server.shared.contract.jobs import Span
from lsp_server.tasks.next_edits.formats import FORMATS
from lsp_server.text.documents.document import Document, Position

FORM = FORMATS["sweep-a"]
DATA = data_beside(__file__)
PIECES = DATA["PIECES"]


def offset(document: Document, place: Position) -> int:
    return sum(map(len, document.lines[: place.line])) + place.column


def test_not_a_byte_changes_outside_of_the_hunks(amount: Amount) -> None:
    """Random documents, random answers: the document becomes what the answer says, line ends of
    lines that stay are theirs, and what stands around the window is not touched."""
    rounds = amount(600, 100_000)
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    for number in range(rounds):
        where = f"seed {seed}, round {number}"
        end = rng.choice(["\n", "\r\n", "\r"])
        lines = [rng.choice(PIECES) for _ in range(rng.randrange(1, 40))]
        text = end.join(lines) + rng.choice(["", end])
        if rng.random() < 0.2:
            text = f"\ufeff{text}"
        document = Document("file:///a.py", "python", 1, text)
        cursor = Position(rng.randrange(len(document.lines)), 0)
        window = window_at(document, cursor, FORM, "a.py", [], {}, is_typing=False)
        if window is None:
            continue
        new = list(window.lines)
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(new) + 1)
            count = rng.randrange(3)
            new[at : at + count] = [rng.choice(PIECES) for _ in range(rng.randrange(3))]
        made = read_answer_of(new)
        found = all_hunks(window, made)
        assert apply_hunks(window.text, found) == made.text, where
        changes = [in_document(window, one, document, window.first) for one in found]
        becomes = document.text
        for change in reversed(changes):
            start, stop = offset(document, change.start), offset(document, change.end)
            becomes = becomes[:start] + change.text + becomes[stop:]
        wanted = expected(document, window.first, len(window.lines), new, end)
        assert becomes == wanted or (not new and becomes == wanted.removesuffix(end)), where


def expected(document: Document, first: int, count: int, new: list[str], end: str) -> str:
    """The document with other lines in place of some, each with the document's line end; the last
    line has none where it had none before."""
    head, tail = "".join(document.lines[:first]), "".join(document.lines[first + count :])
    mark = "\ufeff" if not first and document.lines[0].startswith("\ufeff") else ""
    has_end = first + count < len(document.lines)
    end = end if len(document.lines) > 1 else "\n"
    body = end.join(new) + (end if has_end and new else "")
    return f"{head}{mark}{body}{tail}"


def read_answer_of(lines: list[str]) -> AnsweredWindow:
    text = "".join(f"{line}\n" for line in lines)
    return AnsweredWindow(text, (AnswerPart(0, 0, len(text)),))


def spans_of(text: str, likely: dict[str, float]) -> list[Span]:
    """A token for each word and each blank."""
    return [
        Span(word, "model", math.log(likely.get(word, 1.0))) for word in re.findall(r"\w+|\W", text)
    ]


def test_the_probability_of_a_change_is_that_of_all_its_tokens_and_of_going_on_behind_it() -> None:
    window = shown(FORM)
    answer = TEXT.replace("disc(size)", "disc(radius)").replace("size**2", "radius**2")
    made = read_answer(answer, window, FORM, is_whole=True)
    first, second = all_hunks(window, made)
    spans = spans_of(answer, {"radius": 0.5, ")": 0.9, "*": 0.8, "math": 0.1})
    starts = starts_in_answer([first, second])
    assert math.exp(logprob_of(starts[0], first, made, spans)) == pytest.approx(0.5 * 0.9)
    assert math.exp(logprob_of(starts[1], second, made, spans)) == pytest.approx(0.5 * 0.8)


def test_the_probability_of_a_deletion_is_that_of_going_on_behind_it() -> None:
    window = shown(FORM)
    answer = TEXT.replace("    return math.pi * (outer**2 - inner**2)\n", "")
    made = read_answer(answer, window, FORM, is_whole=True)
    (only,) = all_hunks(window, made)
    spans = spans_of(answer, {})
    place = answer.index("inner):\n") + len("inner):\n")
    at = 0
    for number, span in enumerate(spans):
        if at == place:
            spans[number] = Span(span.text, span.source, math.log(0.25))
        at += len(span.text)
    assert math.exp(logprob_of(*starts_in_answer([only]), only, made, spans)) == pytest.approx(0.25)


def test_the_first_change_is_known_once_two_lines_are_the_windows_again() -> None:
    window = shown(FORM)
    answer = TEXT.replace("ring(outer, inner)", "ring(outer, inner, turns)")
    found_at = None
    for end in range(len(answer) + 1):
        made = read_answer(answer[:end], window, FORM, is_whole=False)
        if found := first_hunks(window, made):
            found_at = end
            break
    assert found_at == answer.index("def disc") - 1
    assert [one.text for one in found] == [", turns"]


def test_an_answer_that_changes_nothing_has_no_first_change() -> None:
    window = shown(FORM)
    for end in range(len(TEXT) + 1):
        made = read_answer(TEXT[:end], window, FORM, is_whole=False)
        assert first_hunks(window, made) == []
