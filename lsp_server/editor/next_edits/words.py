"""Describes an edit in tokens: one name that became another, one stretch that did."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server.shared.errors import WorkTakesTooLong

MOST_PLACES = 1_000
"""What occurs in more places of a document is not looked at in each of them."""
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WordChange:
    """One word became another at one or more places, and nothing else changed."""

    old: str
    new: str
    places: tuple[tuple[int, int], ...]
    """Where it is: code points in the old text, and in the new one."""


def changed_word(old: str, new: str, token: re.Pattern[str] = _TOKEN) -> WordChange | None:
    """Return the word that differs between two texts; None where anything else does, too."""
    before, after = token.findall(old), token.findall(new)
    if len(before) != len(after):
        return None
    pairs = {(old, new) for old, new in zip(before, after, strict=True) if old != new}
    if len(pairs) != 1:
        return None
    ((word, other),) = pairs
    offsets, offset, to = [], 0, 0
    for word_before, two in zip(before, after, strict=True):
        if word_before != two:
            offsets.append((offset, to))
        offset += len(word_before)
        to += len(two)
    return WordChange(word, other, tuple(offsets))


def whole(word: str) -> re.Pattern[str]:
    """Finds a word, or another piece of a text, where it is no part of a longer word."""
    before = r"(?<!\w)" if re.match(r"\w", word) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", word) else ""
    return re.compile(f"{before}{re.escape(word)}{after}")


def refuse_many(text: str, *words: str) -> None:
    """Raise WorkTakesTooLong where a word, or another piece of a text, comes too often in it."""
    for word in words:
        if (count := sum(1 for _ in whole(word).finditer(text))) > MOST_PLACES:
            named = " ".join(word.split())[:40]
            raise WorkTakesTooLong(
                f"{named} comes {count:,} times; next edits look at up to {MOST_PLACES:,} places"
            )
