"""Excerpts: runs of whole lines around the places of an edit, which together are the selection."""

from __future__ import annotations

import random

import pytest
from small_model import SMALL_MODEL

from accel.text.edit_rules.excerpts import Excerpt, excerpts
from accel.text.edit_rules.source_region import Replacement, apply
from accel.text.prompts import edit_prompt, excerpt_prompts
from accel.text.tokenizer import Tokenizer

LINES = "".join(f"line {number}\n" for number in range(20))


def change(text: str, old: str, new: str) -> Replacement:
    start = text.index(old)
    return Replacement(start, start + len(old), new)


def test_lines_around_each_place_and_the_rest_between_them() -> None:
    found = excerpts(LINES, [change(LINES, "line 3", "x"), change(LINES, "line 12", "y")])
    assert "".join(each.text for each in found) == LINES
    assert [bool(each.changes) for each in found] == [False, True, False, True, False]
    assert found[1].text == "line 3\n"
    assert found[3].text == "line 12\n"
    assert found[3].places == [(0, 7)]


def test_lines_around_places_are_shown_where_they_are_wanted() -> None:
    text = LINES.replace("line 4\n", "\n")
    found = excerpts(text, [change(text, "line 3", "x")], 2)
    assert found[1].text == "line 1\nline 2\nline 3\n\nline 5\n"
    assert excerpts(text, [change(text, "line 3", "x")], 1)[1].text == "line 2\nline 3\n"


def test_the_line_behind_new_lines_tells_their_indentation() -> None:
    code = "def f():\n  step()\n  last()\n"
    place = code.index(":") + 1
    found = excerpts(code, [Replacement(place, place, "\n  first()")])
    assert [each.text for each in found] == ["def f():\n  step()\n", "  last()\n"]


def test_places_that_stand_near_are_one_excerpt() -> None:
    near = excerpts(LINES, [change(LINES, "line 3", "x"), change(LINES, "line 4", "y")])
    far = excerpts(LINES, [change(LINES, "line 3", "x"), change(LINES, "line 5", "y")])
    assert [len(each.changes) for each in near] == [0, 2, 0]
    assert [len(each.changes) for each in far] == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("text", ["", "one", "one\n", "one\ntwo"])
def test_insertions_at_the_borders_of_a_text(text: str) -> None:
    for place in (0, len(text)):
        found = excerpts(text, [Replacement(place, place, "new")])
        assert "".join(apply(each.text, list(each.changes))[0] for each in found) == (
            text[:place] + "new" + text[place:]
        )


def test_nothing_to_change_is_one_excerpt() -> None:
    assert excerpts(LINES, []) == [Excerpt(LINES)]


def test_random_changes_are_made_excerpt_by_excerpt() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    for _ in range(500):
        text = "".join(rng.choices("ab\n", k=rng.randrange(60)))
        count = rng.randrange(5)
        borders = sorted(rng.choices(range(len(text) + 1), k=2 * count))
        places = [(borders[2 * n], borders[2 * n + 1]) for n in range(count)]
        changes = [Replacement(*place, rng.choice(("", "x", "y\nz"))) for place in places]
        found = excerpts(text, changes, rng.randrange(4))
        assert "".join(each.text for each in found) == text, f"seed {seed}"
        made = "".join(apply(each.text, list(each.changes))[0] for each in found)
        assert made == apply(text, changes)[0], f"seed {seed}"
        assert all(each.text.endswith("\n") for each in found[:-1]), f"seed {seed}"


def test_prompts_are_made_for_what_changes_and_for_no_other_line() -> None:
    tokenizer = Tokenizer.from_folder(SMALL_MODEL)
    code = "def f(a):\n" + "    step()\n" * 9 + "    return a\n"
    parts = excerpt_prompts(tokenizer, "rename a to b", code)
    assert "".join(text for text, _ in parts) == code
    assert [prompt is None for _, prompt in parts] == [False, True, False]
    prompt = parts[0][1]
    assert prompt is not None
    whole = edit_prompt(tokenizer, "rename a to b", parts[0][0])
    assert prompt.tokens.tolist() == whole.tokens.tolist()
    assert prompt.expected_tokens is not None
    assert tokenizer.decode(prompt.expected_tokens.tolist()) == "def f(b):\n"
    assert excerpt_prompts(tokenizer, "make it nicer", code) == []
