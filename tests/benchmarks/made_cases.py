"""Cases that retrieval cannot help with: random words, and prose of Python's own manual."""

from __future__ import annotations

import random
import string

from tests.benchmarks.cases import CompletionCase, evenly_spread

MADE = ("random", "prose")
"""Names of the kinds, in place of a file of cases."""
CASES = 40
PREFIX_LINES, REFERENCE_LINES = 20, 12
SHORTEST_PARAGRAPH = 200
LEAST_LETTERS = 0.9


def made_cases(kind: str, limit: int | None, seed: int) -> list[CompletionCase]:
    """``limit`` of ``CASES`` cases without repository and suffix, the same for the same seed."""
    chance = random.Random(f"{kind} {seed}")
    lines = PREFIX_LINES + REFERENCE_LINES
    if kind == "prose":
        texts = chance.sample(_prose(lines), CASES)
    else:
        texts = [[_random_line(chance) for _ in range(lines)] for _ in range(CASES)]
    cases = [
        CompletionCase(
            id=f"{kind}-{number}",
            path=f"{kind}.txt",
            prefix="".join(text[:PREFIX_LINES]),
            suffix="",
            reference="".join(text[PREFIX_LINES:]),
            repository=None,
        )
        for number, text in enumerate(texts)
    ]
    return evenly_spread(cases, limit)


def _random_line(chance: random.Random) -> str:
    """Words of random letters, digits and signs; hardly any of them stands anywhere twice."""
    signs = string.ascii_letters + string.digits + "_-+*/()[]{}.,:;=<>!?"
    words = ("".join(chance.choices(signs, k=chance.randint(1, 9))) for _ in range(8))
    return " ".join(words) + "\n"


def _prose(lines: int) -> list[list[str]]:
    """Stretches of so many lines of English from the manual that comes with Python, without its
    code; topics run into one another."""
    from pydoc_data.topics import topics

    paragraphs = dict.fromkeys(
        part for name in sorted(topics) for part in topics[name].split("\n\n") if _is_prose(part)
    )
    text = "\n\n".join(paragraphs).splitlines(keepends=True)
    return [text[start : start + lines] for start in range(0, len(text) - lines, lines)]


def _is_prose(paragraph: str) -> bool:
    plain = sum(letter.isalpha() or letter.isspace() for letter in paragraph)
    return (
        len(paragraph) >= SHORTEST_PARAGRAPH
        and plain >= LEAST_LETTERS * len(paragraph)
        and not any(line.startswith((" ", ">>>")) for line in paragraph.splitlines())
    )
