"""What two texts begin and end with alike, found by halving: slices are compared fast."""

from __future__ import annotations


def common_ends(old: str, new: str) -> tuple[int, int]:
    """How many characters both begin with, and how many of the rest both end with."""
    start = _common_start(old, new)
    return start, _common_start(old[start:][::-1], new[start:][::-1])


def _common_start(old: str, new: str) -> int:
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
