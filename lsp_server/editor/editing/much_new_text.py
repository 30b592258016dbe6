"""A check for answers that bring far more text than was selected, most of it new."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_TIMES, MOST_LINES = 3, 5
"""An answer with more than MOST_TIMES times the selected lines plus MOST_LINES is long."""
KNOWN_SHARE = 0.5
"""The least share of added words that must be known."""
_ASKS_FOR_MORE = re.compile(
    r"\b(?:write|implement|generate|create|complete|finish|tests?|examples?|document|expand|"
    r"unroll|inline|explain|"
    r"add (?:an? |the )?(?:\w+ )?(?:method|function|class|case|handler|field)e?s?)\b",
    re.IGNORECASE,
)


def brings_much_new_text(old: str, new: str, instruction: str, around: str) -> bool:
    """Return True if ``new`` has many times the lines of ``old``, and most of its new words stand
    neither in ``around``, the text that contains ``old``, nor in ``instruction``. An instruction
    that asks for more text allows it."""
    before, after = _lines(old), _lines(new)
    if len(after) <= MOST_TIMES * len(before) + MOST_LINES or _ASKS_FOR_MORE.search(instruction):
        return False
    stays = set(before)
    added = set(_words(line for line in after if line not in stays))
    known_words = added & set(_words([old, instruction, around]))
    return len(known_words) < KNOWN_SHARE * len(added)


def _lines(text: str) -> list[str]:
    return [stripped for line in text.splitlines() if (stripped := line.strip())]


def _words(texts: Iterable[str]) -> Iterable[str]:
    return (word.lower() for text in texts for word in re.findall(r"[^\W\d_]{2,}", text))
