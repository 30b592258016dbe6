"""Rates at which a model leaves the original without a reason in the edit. The weights of copy rows
were fitted on edits without such slips."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.native.numba_cache import compiled

ELSEWHERE, UNIQUE, REPEATED, FOLLOWING = 0, 1, 2, 3
"""Classes of positions: outside of the original and its versions; where the last tokens occur once;
where they occur several times and go on differently. The last counts apart from the others how
often the output goes as the instruction says where the original goes elsewhere."""
LOOK_BACK = 4
"""Of tokens copied wrongly nearly all followed four tokens that occur in several places."""
PRIOR = np.array([[0.0, 1.0], [0.3, 100.0], [0.5, 25.0], [0.1, 2.0]])
"""Slips and all tokens, by class, that an edit begins with: float64 [4, 2]."""
_MIX = 1_000_003


@compiled()
def mark_places(pool: NDArray[np.int32], marks: NDArray[np.int8], start: int, stop: int) -> None:
    """Set the class of every position of the text ``pool[start:stop]``, and of the one after it."""
    marks[start : stop + 1] = UNIQUE
    count = stop - start - LOOK_BACK
    if count < 2:
        return
    keys = np.empty(count, np.int64)
    for index in range(count):
        key = np.int64(0)
        for back in range(LOOK_BACK):
            key = key * _MIX + pool[start + index + back]
        keys[index] = key
    order = np.argsort(keys)
    first = 0
    while first < count:
        last = first + 1
        differ = False
        following = pool[start + LOOK_BACK + order[first]]
        while last < count and keys[order[last]] == keys[order[first]]:
            differ = differ or pool[start + LOOK_BACK + order[last]] != following
            last += 1
        if differ:
            for number in range(first, last):
                marks[start + LOOK_BACK + order[number]] = REPEATED
        first = last


@njit(nogil=True, inline="always")
def copy_rate(slips: NDArray[np.float64], kind: int) -> float:
    """Chance of going on as the original does at a position of a class."""
    return 1.0 - slips[kind, 0] / slips[kind, 1]


@njit(nogil=True, inline="always")
def odds(slips: NDArray[np.float64], kind: int) -> float:
    """Odds of going on, to the chance of not doing so."""
    return (slips[kind, 1] - slips[kind, 0]) / slips[kind, 0]
