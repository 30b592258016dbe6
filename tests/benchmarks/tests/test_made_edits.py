"""Edits made up from functions: what each kind does to a function, and what all of them hold."""

from __future__ import annotations

import ast
import random
import textwrap

import frozen_corpus
import pytest
from text_cases import data_beside

from tests.benchmarks.training.function_source import (
    FunctionSource,
    Substitution,
    function_places,
    replaced,
)
from tests.benchmarks.training.made_edits import MAKERS, ONE_ANSWER, MadeEdit, draw_edit, make_edit

DATA = data_beside(__file__)

SOURCE = DATA["SOURCE"]


def functions() -> list[str]:
    texts = frozen_corpus.texts()
    return [text[place.start : place.end] for text in texts for place in function_places(text)]


def edits(kind: str, seeds: int = 3) -> list[MadeEdit]:
    found = [
        make_edit(function, kind, random.Random(f"{number} {seed}"))
        for number, function in enumerate(functions())
        for seed in range(seeds)
    ]
    return [edit for edit in found if edit is not None]


def first(kind: str, source: str, tries: int = 200) -> MadeEdit:
    made = (make_edit(source, kind, random.Random(seed)) for seed in range(tries))
    return next(edit for edit in made if edit is not None)


def dumped(text: str) -> str:
    return ast.dump(ast.parse(textwrap.dedent(text)))


@pytest.mark.parametrize("kind", MAKERS)
def test_every_kind_applies_to_the_frozen_corpus_and_parses(kind: str) -> None:
    found = edits(kind)
    assert len(found) >= 15, kind
    for edit in found:
        assert edit.before != edit.after
        FunctionSource(edit.before)
        FunctionSource(edit.after)
        assert edit.instruction.strip() == edit.instruction


def test_one_seed_makes_one_edit() -> None:
    function = functions()[3]
    made = [draw_edit(function, random.Random(seed)) for seed in range(30)]
    assert made == [draw_edit(function, random.Random(seed)) for seed in range(30)]
    assert len({edit.kind for edit in made if edit is not None}) > 4


@pytest.mark.parametrize("kind", ["rename_parameter", "rename_variable", "rename_function"])
def test_renames_change_names_of_that_name_alone(kind: str) -> None:
    for edit in edits(kind):
        old_tree, new_tree = FunctionSource(edit.before).node, FunctionSource(edit.after).node
        pairs = zip(ast.walk(old_tree), ast.walk(new_tree), strict=True)
        changed = {
            (getattr(one, field), getattr(other, field))
            for one, other in pairs
            for field in ("id", "arg", "name")
            if getattr(one, field, None) != getattr(other, field, None)
        }
        assert len(changed) == 1, edit
        ((old, new),) = changed
        assert old in edit.instruction
        assert new in edit.instruction
        assert ast.get_docstring(old_tree) == ast.get_docstring(new_tree)


def test_a_rename_leaves_attributes_and_names_of_arguments() -> None:
    made = [make_edit(SOURCE, "rename_parameter", random.Random(seed)) for seed in range(60)]
    named = [edit for edit in made if edit is not None and ", *, name" not in edit.after]
    assert named
    assert all("self.name(name=" in edit.after for edit in named)


def test_comments_go_with_their_lines_and_code_stays() -> None:
    edit = first("remove_comments", SOURCE)
    assert edit.before == SOURCE
    assert edit.after == SOURCE.replace("  # a sum", "")
    for each in edits("remove_comments"):
        assert dumped(each.before) == dumped(each.after)
        assert "#" not in each.after.replace("#{", "")


def test_a_text_that_looks_like_a_comment_stays() -> None:
    source = 'def f(x):\n    # why\n    return "# no comment", x\n'
    assert first("remove_comments", source).after == 'def f(x):\n    return "# no comment", x\n'


def test_hints_go_from_the_signature() -> None:
    edit = first("remove_type_hints", SOURCE)
    assert "async def größe(self, Länge, *, name):\n" in edit.after
    assert edit.after.split("\n", 1)[1] == SOURCE.split("\n", 1)[1]
    assert first("add_type_hints", SOURCE).after == SOURCE


def test_a_guard_stands_behind_the_docstring() -> None:
    edit = first("add_guard", SOURCE)
    lines = edit.after.splitlines()
    assert lines[1].strip() == '"""How long it is."""'
    assert lines[2].startswith("        if ")
    assert lines[3].strip().startswith(("return None", "raise ValueError("))
    assert [*lines[:2], *lines[4:]] == SOURCE.splitlines()


def test_a_docstring_comes_and_goes() -> None:
    without = SOURCE.replace('        """How long it is."""\n', "")
    assert first("remove_docstring", SOURCE).after == without
    added = first("add_docstring", SOURCE)
    assert (added.before, added.after) == (without, SOURCE)


def test_a_literal_is_one_that_stands_there_once() -> None:
    assert "12" in first("change_literal", SOURCE.replace('"ö"', "0")).instruction
    twice = "def f(x):\n    return 12 + x + 12\n"
    assert all(make_edit(twice, "change_literal", random.Random(n)) is None for n in range(20))


def test_a_parameter_comes_last_and_a_default_changes_alone() -> None:
    source = "def f(x, y=(1, 2)):\n    return x\n"
    added = first("add_parameter", source).after
    assert added.startswith("def f(x, y=(1, 2), ")
    assert first("add_parameter", "def f():\n    return 1\n").after.startswith("def f(")
    changed = first("change_default", source).after
    assert changed.startswith("def f(x, y=")
    assert "(1, 2)" not in changed


@pytest.mark.parametrize(
    "source",
    ["x = 1\n", "def f(:\n", "class A:\n    def f(self):\n        pass\n", "", "    \n"],
    ids=["statement", "broken", "class", "empty", "blank"],
)
def test_what_is_no_function_makes_no_edit(source: str) -> None:
    assert all(make_edit(source, kind, random.Random(0)) is None for kind in MAKERS)


def test_a_function_on_one_line_gets_nothing_in_front_of_its_body() -> None:
    for kind in ("add_guard", "add_print", "remove_docstring", "remove_type_hints"):
        assert make_edit("def f(x): return x\n", kind, random.Random(0)) is None


def test_kinds_with_one_answer_add_nothing_of_their_own() -> None:
    assert set(MAKERS) - set(ONE_ANSWER) == {"add_docstring", "add_type_hints"}


def test_places_are_whole_functions() -> None:
    text = "import os\n\n\n@cache\ndef f(x):\n    y = x\n    return y\n\n\ndef g(): pass\n"
    (place,) = function_places(text)
    assert text[place.start : place.end] == "def f(x):\n    y = x\n    return y\n"
    assert list(function_places("def f(:\n    pass\n    pass\n")) == []


def test_replacements_are_made_in_order() -> None:
    made = replaced(
        "abcdef", [Substitution(4, 5, "E"), Substitution(0, 1, ""), Substitution(6, 6, "!")]
    )
    assert made == "bcdEf!"
    with pytest.raises(AssertionError, match="overlap"):
        replaced("abc", [Substitution(0, 2, ""), Substitution(1, 3, "")])
