"""Place holders in answers: filled in where that is clear, never applied."""

from __future__ import annotations

import random
import re

import pytest
from answer_texts import edited, fenced
from text_cases import cases_of, data_cases

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.apply.place_holders import place_holder
from lsp_server.tasks.editing.elided_code import filled_in

CASES = cases_of("answers/left_out.txt")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_was_left_out_is_filled_in_or_the_answer_is_refused(case: dict[str, str]) -> None:
    given = (case["old"], case["answer"], case.get("asked", "change it"))
    language = case.get("language", "python")
    if "refused" in case:
        with pytest.raises(EditRefused, match="left out"):
            edited(*given, language)
    else:
        assert edited(*given, language) == (case["old"] if case["new"] == "old" else case["new"])


def test_what_is_filled_in_has_the_line_ends_of_the_document() -> None:
    case = CASES["rest"]
    old, new = (case[name].replace("\n", "\r\n") for name in ("old", "new"))
    assert edited(old, case["answer"]) == new


@data_cases()
def test_dots_that_are_code_stay(line: str, language: str) -> None:
    assert edited("x = 1\n", fenced(f"x = 1\n{line}\n"), "change it", language) == (
        f"x = 1\n{line}\n"
    )


MARKS = ["# ... existing code ...", "# rest of the code unchanged", "# ...", "# (unchanged)"]
NAMES = ["alpha", "bravo", "carol", "delta", "eagle", "fancy", "grape", "hotel", "index", "joker"]


def program(rng: random.Random) -> list[str]:
    """Lines of some functions."""
    lines: list[str] = []
    for name in rng.sample(NAMES, rng.randrange(2, 6)):
        lines.append(f"def {name}({rng.choice(NAMES)}):")
        for _ in range(rng.randrange(1, 5)):
            one, other, number = rng.choice(NAMES), rng.choice(NAMES), rng.randrange(90)
            lines += rng.choice(
                [
                    [f"    {one} = {number}"],
                    [f"    if {one}:", f"        return {number}"],
                    [f"    print({one})"],
                    [f"    for {one} in {other}:", f"        {other} += {number}"],
                    [""],
                ]
            )
        lines += [f"    return {rng.choice(NAMES)}", "", ""]
    return lines[:-2]


def shortened(rng: random.Random, lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines with changes, whole and with place holders for some of those that stayed."""
    changed = {n for n in range(len(lines)) if lines[n].strip() and rng.random() < 0.1}
    new = [
        re.sub(r"return|= |print", lambda found: f"{found[0].strip()} 7 + ", line, count=1)
        if n in changed
        else line
        for n, line in enumerate(lines)
    ]
    answer: list[str] = []
    place = 0
    while place < len(lines):
        size = rng.randrange(2, 12)
        run = new[place : place + size]
        stayed = not changed & set(range(place, place + size)) and any(map(str.strip, run))
        if stayed and rng.random() < 0.5:
            first = next(line for line in run if line.strip())
            answer.append(first[: len(first) - len(first.lstrip())] + rng.choice(MARKS))
        else:
            answer += run
        place += size
    return new, answer


def test_no_other_text_comes_out_of_random_programs() -> None:
    seed = random.SystemRandom().randrange(1 << 40)
    filled = 0
    for number in range(seed, seed + 300):
        rng = random.Random(number)
        old = program(rng)
        new, answer = shortened(rng, old)
        try:
            made = filled_in("\n".join(answer), "\n".join(old), "python")
        except EditRefused:
            continue
        filled += any(map(place_holder, answer))
        assert made.split() == "\n".join(new).split(), f"seed {number}"
    assert filled > 30
