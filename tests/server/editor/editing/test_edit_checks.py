"""Which answers are offered as an edit, and in which form."""

from __future__ import annotations

import random

import pytest
from seeds import for_each_seed
from text_cases import data_cases

from lsp_server.editor.editing.checks import (
    UNSURE,
    checked_text,
    doubt_about,
    new_problem,
    refuse_unparsed,
)
from lsp_server.shared.contract.jobs import JobResult
from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.editing.task import fitted, split_at_definitions
from lsp_server.tasks.indentation import with_end_of, with_indentation_of, with_start_of

METHOD = "    def area(self):\n        return self.a * self.b\n"


def answer(text: str, stopped_by: str = "end") -> JobResult:
    return JobResult(text, [], 7, 2, 0.1, 0.1, {}, stopped_by)


def test_an_answer_keeps_indentation_and_last_line_end():
    flat = "def area(self):\n    return self.width * self.b"
    assert fitted(answer(flat), METHOD).text == (
        "    def area(self):\n        return self.width * self.b\n"
    )


@data_cases()
def test_shifting(old, new, expected):
    assert with_indentation_of(old, new) == expected


@data_cases()
def test_last_line_ends(old, new, expected):
    assert with_end_of(old, new) == expected


@data_cases()
def test_first_line_ends(old, new, expected):
    assert with_start_of(old, new) == expected


def parsed_text(old, result, language):
    new = checked_text(old, result)
    refuse_unparsed(old, new, language)
    return new


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (answer("def area(self):\n    return 1", "length"), "cut off"),
        (answer("def area(self):", "cancelled"), "stopped"),
        (answer("def area(self):", "broken"), "broke off"),
        (answer("  \n"), "nothing"),
        (answer("    def area(self:\n        return 1\n"), "parse"),
        (answer("    def area(self):\n        return 'a\n"), "parse"),
    ],
)
def test_what_is_refused(result, reason):
    with pytest.raises(EditRefused, match=reason):
        parsed_text(METHOD, result, "python")


def test_what_did_not_parse_before_need_not_parse():
    assert parsed_text("def f(:\n", answer("def f(::\n"), "python") == "def f(::\n"
    assert parsed_text("else:\n    x = 1\n", answer("else:\n    x = 2\n"), "python")
    assert parsed_text("return x\n", answer("return y\n"), "python") == "return y\n"
    assert parsed_text("{\n", answer("}\n"), "rust") == "}\n"


@data_cases()
@pytest.mark.parametrize("language", ["typescript", "go"])
def test_brackets_are_counted_where_there_is_no_parser(old, new, reason, language):
    found = new_problem(old, new, language)
    assert reason in found if reason else not found
    assert not new_problem(old, new, "brainfuck")


def test_json_is_checked():
    assert parsed_text('{"a": 1}', answer('{"a": 2}'), "json") == '{"a": 2}'
    with pytest.raises(EditRefused, match="parse"):
        parsed_text('{"a": 1}', answer('{"a": 2'), "json")


def test_what_the_model_is_not_sure_of_is_marked_where_it_changes_something():
    words = "python", "set a to 2"
    assert doubt_about("a = 1\n", "a = 2\n", *words, is_unsure=True) == UNSURE
    assert not doubt_about("a = 1\n", "a = 2\n", *words)
    assert not doubt_about("a = 1\n", "a = 1\n", *words, is_unsure=True)


def lines_fit(count: int):
    return lambda text: len(text.splitlines()) <= count


MODULE = '''"""Doc."""
import os


# About a.
@wraps
def a():
    x = 1

    return x


class B:
    def c(self):
        pass

    def d(self):
        pass


def e():
    pass
'''


def test_cuts_stand_before_definitions():
    pieces = split_at_definitions(MODULE, lines_fit(9))
    assert "".join(pieces) == MODULE
    starts = [piece.lstrip("\n").split("\n")[0] for piece in pieces]
    assert starts[0] == '"""Doc."""'
    assert set(starts[1:]) <= {"# About a.", "class B:", "def e():"}
    assert "# About a." in starts or len(pieces[0].splitlines()) > 9


def test_a_text_that_fits_stays_whole():
    assert split_at_definitions(MODULE, lambda text: True) == [MODULE]


def test_a_text_without_places_to_cut_stays_whole():
    text = "x = [\n" + "    1,\n" * 20 + "]\n"
    assert split_at_definitions(text, lines_fit(5)) == [text]


@for_each_seed(range(100))
def test_pieces_make_up_the_text(seed):
    rng = random.Random(seed)
    lines = ["def f():", "class A:", "    def g(self):", "        pass", "", "@x", "# y", "z = 1"]
    text = "\n".join(rng.choice(lines) for _ in range(rng.randrange(60)))
    pieces = split_at_definitions(text, lines_fit(rng.randrange(1, 20)))
    assert "".join(pieces) == text, f"seed {seed}"
    assert all(pieces) or not text


@data_cases()
def test_answers_that_break_code_or_change_what_was_not_asked(
    language: str, instruction: str, old: str, new: str, doubt: str
) -> None:
    assert doubt in doubt_about(old, new, language, instruction, old)
    assert bool(doubt) == bool(doubt_about(old, new, language, instruction, old))


@data_cases()
def test_an_answer_is_compared_with_its_instruction(
    language: str, instruction: str, old: str, new: str, right: str, doubt: str
) -> None:
    assert doubt in doubt_about(old, new, language, instruction, old)
    assert doubt_about(old, right, language, instruction, old) == ""
