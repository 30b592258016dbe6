"""A heap of candidates by their probability: the most probable first, of equals the older."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.native.numba_cache import compiled


@compiled(borrows=True)
def sift_up(heap: NDArray[np.int32], probabilities: NDArray[np.float64], slot: int) -> None:
    """Restore the heap after ``heap[slot]`` was added."""
    item = heap[slot]
    while slot > 0:
        above = (slot - 1) >> 1
        other = heap[above]
        if probabilities[other] >= probabilities[item]:
            break
        heap[slot] = other
        slot = above
    heap[slot] = item


@compiled(borrows=True)
def sift_down(heap: NDArray[np.int32], probabilities: NDArray[np.float64], size: int) -> None:
    """Restore the heap of ``size`` items after ``heap[0]`` was replaced."""
    item = heap[0]
    slot = 0
    while True:
        below = 2 * slot + 1
        if below >= size:
            break
        right = below + 1
        if right < size:
            left_p = probabilities[heap[below]]
            right_p = probabilities[heap[right]]
            if right_p > left_p or (right_p == left_p and heap[right] < heap[below]):
                below = right
        other = heap[below]
        better = probabilities[other] > probabilities[item]
        older = probabilities[other] == probabilities[item] and other < item
        if not (better or older):
            break
        heap[slot] = other
        slot = below
    heap[slot] = item
