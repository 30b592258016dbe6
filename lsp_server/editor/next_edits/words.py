"""Describes an edit in tokens: one name that became another, one stretch that did."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WordChange:
    """One word became another at one or more places, and nothing else changed."""

    old: str
    new: str
    places: tuple[tuple[int, int], ...]
    """Where it stands: code points in the old text, and in the new one."""


def changed_word(old: str, new: str) -> WordChange | None:
    """The word that differs between two texts; None where anything else does, too."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if len(before) != len(after):
        return None
    pairs = {(one, other) for one, other in zip(before, after, strict=True) if one != other}
    if len(pairs) != 1:
        return None
    ((word, other),) = pairs
    places, at, to = [], 0, 0
    for one, two in zip(before, after, strict=True):
        if one != two:
            places.append((at, to))
        at += len(one)
        to += len(two)
    return WordChange(word, other, tuple(places))
