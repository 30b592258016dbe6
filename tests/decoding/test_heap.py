"""The heap of candidates against sorting them."""

from __future__ import annotations

import numpy as np
from seeds import for_each_seed

from accel.drafting.heap import sift_down, sift_up


@for_each_seed(range(20))
def test_the_most_probable_comes_first_and_of_equals_the_older(seed: int) -> None:
    random = np.random.default_rng(seed)
    items = int(random.integers(1, 200))
    # Few different ones, so that many are equal.
    probabilities = random.integers(1, int(random.integers(2, 50)), items) / 50
    heap, waiting, size = np.full(items, -1, np.int32), set[int](), 0
    taken, added = 0, 0
    while taken < items:
        if added < items and (not size or random.random() < 0.6):
            heap[size] = added
            sift_up(heap, probabilities, size)
            waiting.add(added)
            added, size = added + 1, size + 1
            continue
        best = int(heap[0])
        assert best == min(waiting, key=lambda item: (-probabilities[item], item))
        waiting.remove(best)
        taken, size = taken + 1, size - 1
        if size:
            heap[0] = heap[size]
            sift_down(heap, probabilities, size)
