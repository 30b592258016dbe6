"""Whether an answer has far more than was selected, of which nothing was known before."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_TIMES, MOST_LINES = 3, 5
"""An answer of more than so many times as many lines, and so many more, is long."""
KNOWN_SHARE = 0.5
"""Of the words of what it adds; with fewer it is from nowhere."""
_ASKS_FOR_MORE = re.compile(
    r"\b(?:write|implement|generate|create|complete|finish|tests?|examples?|document|expand|"
    r"unroll|inline|explain|"
    r"add (?:an? |the )?(?:\w+ )?(?:method|function|class|case|handler|field)e?s?)\b",
    re.IGNORECASE,
)


def brings_much_new_text(old: str, new: str, instruction: str, around: str) -> bool:
    """Whether ``new`` has many times the lines of ``old``, mostly of words that are neither in
    ``around``, which is the text that ``old`` is a part of, nor in the instruction, which does not
    ask for more, either."""
    before, after = _lines(old), _lines(new)
    if len(after) <= MOST_TIMES * len(before) + MOST_LINES or _ASKS_FOR_MORE.search(instruction):
        return False
    stays = set(before)
    added = set(_words(line for line in after if line not in stays))
    known = added & set(_words([old, instruction, around]))
    return len(known) < KNOWN_SHARE * len(added)


def _lines(text: str) -> list[str]:
    return [stripped for line in text.splitlines() if (stripped := line.strip())]


def _words(texts: Iterable[str]) -> Iterable[str]:
    return (word.lower() for text in texts for word in re.findall(r"[^\W\d_]{2,}", text))
