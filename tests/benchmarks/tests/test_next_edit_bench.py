"""Commits cut into histories, and the drafts of llama.cpp's ``ngram-simple``, by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from accel.drafting.base import DraftRequest
from lsp_server.editor.next_edits.answers import read_answer
from lsp_server.editor.next_edits.windows import Window
from lsp_server.tasks.next_edits.formats import FORMATS
from tests.benchmarks.next_edits.commits import steps_of
from tests.benchmarks.next_edits.windows import reference_answer, wanted_window, window_of
from tests.benchmarks.peers.ngram_simple import ngram_simple_drafter
from tests.next_edit_cases import NextEditCase

BEFORE = "".join(f"line {number}\n" for number in range(60))
AFTER = BEFORE.replace("line 2\n", "second\n").replace("line 5\n", "fifth\nmore\n")
ROW = {"id": "o/r@1", "path": "a.py", "before": BEFORE, "after": AFTER}


def test_behind_the_first_change_the_second_is_next_and_far_from_both_nothing_is() -> None:
    next_one, far, end = steps_of(ROW, random.Random(1))
    assert (next_one.kind, far.kind, end.kind) == ("next", "nothing", "nothing")
    assert next_one.document.text == BEFORE.replace("line 2\n", "second\n")
    assert next_one.wanted == AFTER
    assert next_one.cursor.line == 2
    assert [edit.new for edit in next_one.edits] == [["second\n"]]
    assert abs(far.cursor.line - 5) > 24
    assert far.wanted == far.document.text
    assert end.document.text == AFTER


def test_the_wanted_window_is_that_of_the_commit() -> None:
    step = next(steps_of(ROW, random.Random(1)))
    window = window_of(step, FORMATS["sweep-a"])
    assert window is not None
    assert wanted_window(step, window) == window.text.replace("line 5\n", "fifth\nmore\n")


def test_the_reference_of_a_format_with_markers_is_read_as_the_wanted_window() -> None:
    fmt = FORMATS["zeta-2.1"]
    for seed in range(40):
        rng = random.Random(seed)
        lines = [f"line {number}" if rng.random() < 0.8 else "" for number in range(30)]
        window = Window("a.py", "python", 0, tuple(lines), (4, 0))
        place, size = rng.randrange(30), rng.randrange(3)
        new = [f"{line}\n" for line in lines]
        new[place : place + size] = [f"new {number}\n" for number in range(rng.randrange(3))]
        wanted = "".join(new)
        answer = reference_answer(fmt, window, wanted)
        assert answer is not None
        assert read_answer(answer, window, fmt, is_whole=True).text == wanted, seed
        assert len(answer) < len(wanted)


def test_ngram_simple_copies_what_followed_the_last_tokens_when_they_stood_before() -> None:
    drafter = ngram_simple_drafter(3, 2)
    drafter.begin(DraftRequest(np.array([1, 2, 3, 9, 1, 2, 3, 4, 5, 6, 1, 2, 3], np.int32)))
    assert drafter.draft(8).tokens.tolist() == [4, 5]
    drafter.commit(drafter.draft(8), [0], np.array([4, 7], np.int32))
    assert len(drafter.draft(8)) == 0


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("size\nf(size)\nwidth\n", "complete"),
        ("size\nf(width)\nwidth\n", "nothing"),
        ("size\nf(size)\nsize\n", "wrong"),
        ("size\nf(width)\n", "wrong"),
    ],
)
def test_a_change_is_wrong_where_a_line_came_that_is_not_wanted_or_went_that_is(
    text: str, outcome: str
) -> None:
    before, after = {"a.py": "width\nf(width)\nwidth\n"}, {"a.py": "size\nf(size)\nwidth\n"}
    case = NextEditCase("fresh", "python", "", before, ((0, "width", "size"),), after)
    assert case.outcome({"a.py": text}) == outcome


def test_of_two_further_changes_one_is_a_part() -> None:
    before, after = {"a.py": "a\nb\nc\n"}, {"a.py": "x\ny\nz\n"}
    case = NextEditCase("fresh", "python", "", before, ((0, "a", "x"),), after)
    assert case.outcome({"a.py": "x\ny\nc\n"}) == "part"
