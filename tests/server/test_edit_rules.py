"""Answers to known kinds of instructions are held to their rules."""

from __future__ import annotations

import pytest
from edit_examples import BARE, FUNCTION, METHOD, edits_of

from accel.training.edits import EXACT_KINDS, EditExample
from lsp_server.editing.checks import checked_text
from lsp_server.editing.rules import broken_rule
from lsp_server.engine.jobs import JobResult
from lsp_server.errors import EditRefused

FREE = ("to_fstring", "add_guard", "wrap_try", "invert_if")
"""Kinds without a rule."""
RULED = [kind for kind in EXACT_KINDS if kind not in FREE]


def edits(kind: str) -> list[EditExample]:
    return edits_of(kind, FUNCTION, BARE, METHOD, seeds=30)


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_right_answers_pass(kind: str) -> None:
    made = edits(kind)
    assert made
    for edit in made:
        assert broken_rule(edit.instruction, edit.before, edit.after, "python") == "", edit


@pytest.mark.parametrize("kind", RULED)
def test_what_changes_more_is_refused(kind: str) -> None:
    for edit in edits(kind):
        for old, new in (("sum(", "max("), ("* tax", "+ tax"), ("return ", "return not ")):
            wrong = edit.after.replace(old, new)
            if wrong != edit.after:
                assert broken_rule(edit.instruction, edit.before, wrong, "python"), wrong


@pytest.mark.parametrize("kind", [kind for kind in RULED if kind != "change_quotes"])
def test_what_does_nothing_is_refused(kind: str) -> None:
    for edit in edits(kind):
        assert broken_rule(edit.instruction, edit.before, edit.before, "python"), edit


def test_a_rename_that_forgets_a_place_is_refused() -> None:
    half = BARE.replace("total(prices", "total(items")
    whole = half.replace("sum(prices", "sum(items")
    assert broken_rule("rename prices to items", BARE, whole, "python") == ""
    assert "leaves prices" in broken_rule("rename prices to items", BARE, half, "python")


def test_names_of_inner_functions_and_attributes_may_stay() -> None:
    old = "def f(a):\n    g = lambda a: a.a\n    return g(a), x.a\n"
    new = "def f(b):\n    g = lambda a: a.a\n    return g(b), x.a\n"
    assert broken_rule("rename a to b", old, new, "python") == ""


def test_layout_and_comments_are_free() -> None:
    new = "def total(items, tax=2):\n    # New.\n    kept = (sum(items) * tax)\n\n"
    new += '    return str(kept) + "!"\n'
    assert broken_rule("rename prices to items", BARE, new, "python") == ""


@pytest.mark.parametrize(
    ("instruction", "language"),
    [("simplify", "python"), ("rename prices to items", "rust"), ("add a guard", "python")],
)
def test_no_rule_no_refusal(instruction: str, language: str) -> None:
    assert broken_rule(instruction, BARE, "x = 1\n", language) == ""


def test_a_broken_rule_is_the_reason_of_the_refusal() -> None:
    answer = JobResult(BARE.replace("sum", "max"), [], 7, 2, 0.1, 0.1, {}, "end")
    with pytest.raises(EditRefused, match="more than the name prices"):
        checked_text(BARE, answer, "python", "rename prices to items")
    assert checked_text(BARE, answer, "python", "use max") == answer.text
