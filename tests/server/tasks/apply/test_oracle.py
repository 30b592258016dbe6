"""Snippets of random small files beside an oracle that tries every reading, and applied twice."""

from __future__ import annotations

import random

from seeds import Amount

from lsp_server.tasks.apply.merge import apply_snippet
from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from tests.benchmarks.apply.oracle import HOLDER, beside_oracle

LEAST_APPLIED, MANY = 0.6, 1000
"""Of snippets with one reading so many are applied, where there are many; a few tell less."""


def test_an_answer_is_the_oracles_or_a_refusal(amount: Amount) -> None:
    seed = random.SystemRandom().randrange(1 << 40)
    counts = beside_oracle(seed, amount(120, 200_000))
    # Others cost more, and none of them is meant by as little.
    assert not counts.others
    assert counts.applied >= (LEAST_APPLIED if counts.single > MANY else 0.2) * counts.single


def test_files_that_were_once_answered_otherwise() -> None:
    """Lines went at an end of the file that nothing shows, or a place holder stood for nothing."""
    seeds = (79818, 1116625, 1068521, 5392, 4155)
    assert not [other for seed in seeds for other in beside_oracle(seed, 1).others]


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
