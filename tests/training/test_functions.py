"""Functions with a line to be filled in."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from accel.training.functions import draw_body_hole, function_units
from accel.training.tokenizer import load_tokenizer
from accel.training.units import Unit, UnitMaker

_FUNCTION = '''    def total(values):
        """The sum.

        >>> total([1, 2])
        """
        found = 0

        for value in values:
            found += value
        return found
'''
_CLASS = "class Empty:\n    def nothing(self):\n        return None\n"


@pytest.fixture(scope="module")
def maker() -> UnitMaker:
    folder = Path(__file__).parents[2] / "accel" / "default_model"
    return UnitMaker(load_tokenizer(folder))


@pytest.mark.parametrize("seed", range(40))
def test_a_hole_stands_in_one_line_of_the_body_and_never_in_the_docstring(seed: int) -> None:
    hole = draw_body_hole(_FUNCTION, random.Random(seed))
    assert hole is not None, f"seed {seed}"
    text, start, end = hole
    assert start <= end, f"seed {seed}"
    assert "\n" not in text[start:end], f"seed {seed}"
    assert start > text.index(">>> total([1, 2])\n") + 20, f"seed {seed}"
    assert text[end] == "\n", f"seed {seed}"
    line = text[text.rfind("\n", 0, start) + 1 : end]
    assert line.strip() in {"found = 0", "for value in values:", "found += value", "return found"}


def test_classes_and_what_does_not_parse_have_no_hole() -> None:
    for source in (_CLASS, "def broken(:\n    pass\n", "    x = 1\n"):
        assert draw_body_hole(source, random.Random(1)) is None


def test_units_make_up_the_tokens_asked_for(maker: UnitMaker) -> None:
    units = function_units([_FUNCTION, _CLASS], maker, 256, 2000, random.Random(5))
    total = sum(len(unit.ids) for unit in units)
    assert 2000 <= total < 2256
    assert {_filled(maker, unit).strip() for unit in units} > {"return found", "found = 0"}


def test_without_a_function_there_is_nothing(maker: UnitMaker) -> None:
    assert function_units([_CLASS], maker, 256, 2000, random.Random(5)) == []
    assert function_units([], maker, 256, 2000, random.Random(5)) == []


def _filled(maker: UnitMaker, unit: Unit) -> str:
    """What counts most in a unit: the hole."""
    ids = [
        token
        for token, weight in zip(unit.ids, unit.weights, strict=True)
        if weight > 1 and token != maker.end
    ]
    return maker.tokenizer.decode(ids)
