"""A hunk within a file costs the same from both ends of it."""

from __future__ import annotations

import random

import numpy as np
from seeds import Amount

from lsp_server.tasks.apply.hunk_costs import SHIFT, FileEnds, HunkPass
from lsp_server.tasks.apply.line_costs import FileLines, line_costs

LINES = ["a = 1", "b = 2", "    c(a)", "def d():", "", "}", "return a"]


def made(rng: random.Random, most: int) -> list[str]:
    return [rng.choice(LINES) for _ in range(rng.randrange(1, most))]


def test_a_hunk_costs_the_same_from_both_ends(amount: Amount) -> None:
    seed = random.SystemRandom().randrange(1 << 40)
    for number in range(seed, seed + amount(400, 50_000)):
        rng = random.Random(number)
        file = FileLines(made(rng, 9))
        hunk = made(rng, 6)
        if not any(hunk):
            continue
        ends = FileEnds(opens=False, closes=False, is_whole=False)
        costs = line_costs(file, hunk)
        few, many = file.gone
        flipped = few[-1] - few[::-1], many[-1] - many[::-1]
        places = np.arange(len(file.lines) + 1, dtype=np.int64)
        forward = HunkPass(costs, (few, many), ends, False).region_ends(places)
        backward = HunkPass(costs[::-1], flipped, ends, True).region_ends(places)
        assert forward.min() >> SHIFT == backward.min() >> SHIFT, f"seed {number}"
