"""Instructions are recognised in many wordings, and put in one that the model was trained on."""

from __future__ import annotations

import random
import re

import pytest
from edit_examples import BARE, FUNCTION, edits_of

from accel.text.edit_rules.phrases import PHRASES
from accel.text.edit_rules.recognition import as_trained, recognise
from accel.text.edit_rules.wordings import TRAINED, WORDINGS
from accel.training.edits import EXACT_KINDS, EditExample


def edits(kind: str) -> list[EditExample]:
    return edits_of(kind, FUNCTION, BARE, seeds=60)


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_every_wording_of_the_training_is_recognised(kind: str) -> None:
    made = edits(kind)
    assert made
    for edit in made:
        found = recognise(edit.instruction, edit.before)
        assert found is not None, edit.instruction
        assert found.kind == ("rename" if kind.startswith("rename") else kind), edit.instruction
        for value in found.slots.values():
            assert value in edit.instruction or value == "total", edit.instruction


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_what_the_model_is_told_means_the_same_and_stays_the_same(kind: str) -> None:
    for edit in edits(kind):
        parts = as_trained(edit.instruction, edit.before)[0]
        wording = "".join(parts)
        again = recognise(wording, edit.before)
        first = recognise(edit.instruction, edit.before)
        assert again is not None
        assert first is not None
        assert (again.kind, again.slots) == (first.kind, first.slots)
        assert again.parts == parts


@pytest.mark.parametrize("kind", sorted(TRAINED))
def test_the_model_is_told_only_wordings_of_its_training(kind: str) -> None:
    slots = dict.fromkeys(re.findall(r"<(\w+)>", TRAINED[kind]), "\N{SNOWMAN}")
    said = re.sub(r"<\w+>", "\N{SNOWMAN}", TRAINED[kind])
    assert any(said in _all_of(re.sub(r"<\w+>", "\N{SNOWMAN}", one)) for one in PHRASES[kind]), said
    assert slots.keys() == set(re.findall(r"<(\w+)>", TRAINED[kind]))


def _all_of(wording: str) -> set[str]:
    found = re.search(r"\{([^{}]*)\}", wording)
    if found is None:
        return {wording}
    options = found[1].split("|")
    return set().union(
        *(_all_of(wording[: found.start()] + one + wording[found.end() :]) for one in options)
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("please rename prices to items", "rename prices to items"),
        ("Could you rename `prices` to `items` everywhere?", "rename prices to items"),
        ("change the variable kept into rest.", "rename kept to rest"),
        ("use items instead of prices", "rename prices to items"),
        ("prices should be called items", "rename prices to items"),
        ("Rename the function to add_up", "rename total to add_up"),
        ("remove all of the docstrings", "remove the docstring"),
        ("Please add a docstring to this function", "add a docstring"),
        ("document it", "add a docstring"),
        ("turn this into an async function", "make the function async"),
        ("make all strings double quoted", "use double quotes"),
        ("change single quotes to double quotes", "use double quotes"),
        ("delete comments from the code", "remove comments"),
        ("get rid of the debug prints", "remove print statements"),
        ("add an argument verbose=False", "add parameter verbose=False"),
        ("tax should default to 3", "change the default of tax to 3"),
        ("raise ValueError when not prices",
         "add a guard clause: raise ValueError if not prices"),
        ("wrap the whole body in a try/except KeyError, return None",
         "wrap the body in try/except KeyError and return None"),
        ("add lru_cache decorator", "add the decorator @lru_cache"),
        ("annotate tax as float", "add type hint float to tax"),
        ("log prices at level info", "log prices at the start with info"),
        ("set the return type to list[int]", "add return type list[int]"),
    ],
)  # fmt: skip
def test_what_people_say(said: str, told: str) -> None:
    assert "".join(as_trained(said, FUNCTION)[0]) == told


@pytest.mark.parametrize(
    "said",
    [
        "",
        "simplify the code",
        "add type hints",
        "use logger instead of print",
        "rename prices to items and remove the prints",
        "rename nothing_there to items",
        "change True to False",
        "rename prices to prices",
        "fix this problem: undefined name prices",
        "replace the loop by a comprehension",
        "remove the first comment",
        "x" * 400,
    ],
)
def test_what_is_left_as_it_is(said: str) -> None:
    assert recognise(said, FUNCTION) is None
    assert as_trained(said, FUNCTION) == ((said,), [])


def test_one_function_of_several_is_kept_in_mind() -> None:
    two = "def f(a):\n    return a\n\n\ndef g(a):\n    return a\n"
    parts, changes = as_trained("please rename a to b in g", two)
    assert parts == ("rename ", "a", " to ", "b", " in ", "g")
    assert [two[each.start : each.end] for each in changes] == ["a", "a"]
    assert changes[0].start > two.index("def g")


def test_random_text_never_fails() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    words = ["rename", "the", "total", "to", "<", "{", "add", "x", "in", "'", "\n", "é", "if", "%"]
    for _ in range(500):
        text = " ".join(rng.choices(words, k=rng.randrange(12)))
        found = recognise(text, FUNCTION)
        assert found is None or found.kind, f"seed {seed}"


def test_every_further_wording_belongs_to_a_kind() -> None:
    assert set(WORDINGS) <= set(TRAINED) == set(PHRASES)


@pytest.mark.parametrize("kind", EXACT_KINDS)
def test_the_places_that_are_marked_are_those_of_the_training(kind: str) -> None:
    for edit in edits(kind):
        changes = as_trained(edit.instruction, edit.before)[1]
        assert [(each.start, each.end) for each in changes] == list(edit.places), edit.before


def test_other_languages_have_every_word_marked() -> None:
    code = "let total = totals(total.x)"
    changes = as_trained("rename total to sum", code)[1]
    assert [code[each.start : each.end] for each in changes] == ["total", "total"]
    assert as_trained("make it faster", code) == (("make it faster",), [])
