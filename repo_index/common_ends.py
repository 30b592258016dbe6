"""The beginning and end that two texts or lists have in common, found by halving: slices compare
fast."""

from __future__ import annotations

from typing import Any, TypeVar

Part = TypeVar("Part", str, list[Any])


def common_ends(old: Part, new: Part) -> tuple[int, int]:
    """Return how many characters or items both begin with, and how many of the rest both end
    with."""
    start = _common_start(old, new)
    return start, _common_start(old[start:][::-1], new[start:][::-1])


def _common_start(old: Part, new: Part) -> int:
    low, high = 0, min(len(old), len(new))
    if old[:high] == new[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
