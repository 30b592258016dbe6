"""Lines of two texts compared: as difflib where that is quick, and bounded where lines repeat."""

from __future__ import annotations

import difflib
import random
from collections.abc import Callable

import pytest
from text_cases import data_beside

from lsp_server.text import line_diff
from lsp_server.text.line_diff import Opcode, opcodes


def rebuilt(old: list[str], new: list[str], found: list[Opcode]) -> list[str]:
    """The new lines from the old ones; checks that the stretches are whole and say what is so."""
    made, at, to = [], 0, 0
    for kind, start, end, new_start, new_end in found:
        assert (start, new_start) == (at, to)
        at, to = end, new_end
        if kind == "equal":
            assert old[start:end] == new[new_start:new_end]
            assert end > start
        elif kind == "replace":
            assert end > start
            assert new_end > new_start
        else:
            assert (kind == "delete") == (end > start) != (new_end > new_start)
        made += old[start:end] if kind == "equal" else new[new_start:new_end]
    assert (at, to) == (len(old), len(new))
    return made


def changed(rng: random.Random, old: list[str], kinds: int) -> list[str]:
    new = list(old)
    for _ in range(rng.randrange(6)):
        start = rng.randrange(len(new) + 1)
        end = min(len(new), start + rng.randrange(4))
        new[start:end] = [f"line {rng.randrange(kinds)}" for _ in range(rng.randrange(4))]
    return new


@pytest.mark.parametrize("kinds", [1, 2, 5, 1000])
def test_the_lines_are_those_of_the_new_text_whichever_way_is_gone(
    kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    for _ in range(300):
        old = [f"line {rng.randrange(kinds)}" for _ in range(rng.randrange(40))]
        new = changed(rng, old, kinds)
        expected = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        assert opcodes(old, new) == expected
        monkeypatch.setattr(line_diff, "MOST_PAIRS", rng.choice([-1, 3, 30]))
        assert rebuilt(old, new, opcodes(old, new)) == new
        monkeypatch.undo()


def renamed(shape: str, count: int) -> tuple[list[str], list[str]]:
    text = "".join(shape.format(n=n) for n in range(count))
    return text.splitlines(), text.replace("old", "new").splitlines()


DATA = data_beside(__file__)
SHAPES = DATA["SHAPES"]


@pytest.mark.parametrize("name", SHAPES)
def test_a_rename_in_lines_that_repeat_changes_the_lines_that_hold_it(name: str) -> None:
    old, new = renamed(SHAPES[name], 3000)
    found = opcodes(old, new)
    assert rebuilt(old, new, found) == new
    gone = sum(end - start for kind, start, end, _, _ in found if kind != "equal")
    assert gone == sum("old" in line for line in old)


def steps(old: list[str], new: list[str]) -> int:
    """How many lines are compared."""

    class Line(str):
        count = 0
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            Line.count += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    opcodes([Line(one) for one in old], [Line(one) for one in new])
    return Line.count


WORST: dict[str, Callable[[int], tuple[list[str], list[str]]]] = {
    "all the same": lambda n: (["x"] * n, ["x"] * (n - n // 3)),
    "all the same but for the ends": lambda n: (["a", *["x"] * n, "b"],
                                                ["c", *["x"] * n, "x", "d"]),
    "two in turn": lambda n: (["x", "y"] * (n // 2), ["y", "x", "x"] * (n // 3)),
    "a rename": lambda n: renamed(SHAPES["objects"], n // 5),
    "one is put in": lambda n: (["a", *["x", "y", "z"] * (n // 3), "b"],
                                ["a", "n", *["x", "y", "z"] * (n // 3), "m", "x", "b"]),
    "shuffled": lambda n: ([f"{k % 50}" for k in range(n)], [f"{k * 7 % 50}" for k in range(n)]),
    "backwards": lambda n: ([f"{k // 9}" for k in range(n)], [f"{k // 9}" for k in range(n)][::-1]),
}  # fmt: skip


@pytest.mark.parametrize("name", WORST)
def test_twice_the_lines_are_compared_about_twice_as_often(name: str) -> None:
    small, large = (steps(*WORST[name](n)) for n in (6_000, 24_000))
    assert large <= 6 * small + 50_000
    old, new = WORST[name](6_000)
    assert rebuilt(old, new, opcodes(old, new)) == new
