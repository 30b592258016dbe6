"""Cutting text at places and values, and where the middle token stands."""

from __future__ import annotations

import random

import pytest

from accel.text.edit_rules.markers import NEAR_HOLE, cut, cut_at, middle_place


def test_pieces_are_outside_and_inside_by_turns() -> None:
    assert cut("f(old, old)", [(2, 5), (7, 10)]) == ["f(", "old", ", ", "old", ")"]
    assert cut("abc", []) == ["abc"]
    assert cut("ab", [(0, 0), (1, 2)]) == ["", "", "a", "b", ""]


def test_places_that_overlap_are_our_fault() -> None:
    with pytest.raises(AssertionError, match="overlap"):
        cut("abcdef", [(0, 3), (2, 4)])


@pytest.mark.parametrize(
    ("text", "values", "pieces"),
    [
        ("if x == 0:\n    return x", ["x == 0", "return x"], 4),
        ("max(x)", ["x"], 3),
        ("_x + xs", ["x"], 1),
        ("a=1.5", ["a", "1.5"], 3),
        ('"""Say it."""', ["Say it."], 3),
        ("@cache\n", ["@cache"], 2),
        ("text", [], 1),
        ("text", [""], 1),
    ],
)
def test_values_of_slots_stand_alone(text: str, values: list[str], pieces: int) -> None:
    found = cut_at(text, values)
    assert "".join(found) == text
    assert len(found) == pieces
    assert all(value in found for value in values if value and pieces > 1)


def test_the_middle_token_stands_before_a_line_of_four_tokens_or_more() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    for _ in range(300):
        tokens = [rng.choice((0, 1, 1, 1)) for _ in range(rng.randrange(30))]
        place = middle_place(tokens, {0})
        if place:
            assert tokens[place] == 0, f"seed {seed}"
            assert len(tokens) - place >= NEAR_HOLE
        assert 0 not in tokens[place + 1 : len(tokens) - NEAR_HOLE + 1]
