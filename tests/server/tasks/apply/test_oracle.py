"""Snippets of random small files beside an oracle that tries every reading.

A reading has the first and the last line of each hunk stand for the same lines of the file, the
hunks in order. What it costs are the lines that it changes, and two lines for a place holder at the
end that stands for nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from seeds import Amount

from lsp_server.tasks.apply.merge import apply_snippet
from lsp_server.tasks.apply.refusals import AmbiguousSnippet

HOLDER = "# ... existing code ..."
LEAST_APPLIED, MANY = 0.6, 1000
"""Of snippets with one reading so many are applied, where there are many; a few tell less."""


def changed_lines(old: Sequence[str], new: Sequence[str]) -> int:
    row = [*range(len(new) + 1)]
    for number, line in enumerate(old, start=1):
        above, row = row, [number]
        for at, other in enumerate(new, start=1):
            same = above[at - 1] if line == other else len(old) + len(new)
            row.append(min(above[at] + 1, row[at - 1] + 1, same))
    return row[-1]


def every_reading(
    file: list[str], hunks: list[list[str]], ends: bool
) -> dict[tuple[str, ...], int]:
    """What each reading makes of a file, with what it costs. ends: a place holder is the last."""
    found: dict[tuple[str, ...], int] = {}

    def go_on(number: int, place: int, made: list[str], cost: int) -> None:
        if number == len(hunks):
            text = (*made, *file[place:])
            cost += 2 * (ends and place == len(file))
            found[text] = min(cost, found.get(text, cost))
            return
        hunk = hunks[number]
        for start in range(place, len(file)):
            for end in range(start + 1, len(file) + 1):
                region = file[start:end]
                if (region[0], region[-1]) != (hunk[0], hunk[-1]) or (
                    (len(region) > 1) != (len(hunk) > 1)
                ):
                    continue
                more = changed_lines(region, hunk)
                go_on(number + 1, end, [*made, *file[place:start], *hunk], cost + more)

    go_on(0, 0, [], 0)
    return found


def test_an_answer_is_the_oracles_or_a_refusal(amount: Amount) -> None:
    seed = random.SystemRandom().randrange(1 << 40)
    single = applied = 0
    for number in range(seed, seed + amount(120, 200_000)):
        rng = random.Random(number)
        file = [rng.choice("abc") for _ in range(rng.randrange(1, 9))]
        hunks = [
            [rng.choice("abc") for _ in range(rng.randrange(1, 5))]
            for _ in range(rng.randrange(1, 3))
        ]
        lines = [line for hunk in hunks for line in [HOLDER, *hunk]]
        ends = rng.random() < 0.5
        lines = [*lines, HOLDER] if ends else lines[1:]
        found = every_reading(file, hunks, ends)
        try:
            text = apply_snippet("\n".join([*file, ""]), "\n".join([*lines, ""])).text
        except AmbiguousSnippet:
            single += len(found) == 1
            continue
        made = tuple(text.splitlines())
        single += len(found) == 1
        applied += len(found) == 1
        if found:
            # Others cost more, and none of them is meant by as little.
            assert found.get(made) == min(found.values()), f"seed {number}: {file} {lines} {made}"
    assert applied >= (LEAST_APPLIED if single > MANY else 0.2) * single


def test_a_snippet_that_is_applied_again_changes_nothing_or_is_refused(amount: Amount) -> None:
    seed = random.SystemRandom().randrange(1 << 40)
    for number in range(seed, seed + amount(60, 50_000)):
        rng = random.Random(number)
        file = [rng.choice(["a", "b", "c", "d", "e", "f", ""]) for _ in range(rng.randrange(4, 14))]
        at = rng.randrange(len(file) - 2)
        hunk = [file[at], rng.choice("uvw"), *file[at + rng.randrange(1, 3) :][:2]]
        snippet = "\n".join([HOLDER, *hunk, HOLDER, ""])
        try:
            once = apply_snippet("\n".join([*file, ""]), snippet).text
            again = apply_snippet(once, snippet).text
        except AmbiguousSnippet:
            continue
        assert again == once, f"seed {number}: {file} {hunk}"
