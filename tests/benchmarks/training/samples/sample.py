"""A training sample: token ids, and how much the prediction of each of them counts."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

AROUND_WEIGHT = 1 / 8
"""Of text around a hole."""
COPIED_WEIGHT = 5 / 16
"""Of an answer's tokens that stand in the original, too."""


@dataclass(frozen=True)
class Sample:
    """Token ids and, for each, the weight of its prediction from what stands before it."""

    tokens: list[int]
    weights: list[float]

    def __post_init__(self) -> None:
        assert len(self.tokens) == len(self.weights)


def answered(prompt: Sequence[int], original: Sequence[int], answer: Sequence[int]) -> Sample:
    """A prompt, which does not count, and its answer, whose changes count more than its copies."""
    weights = [0.0] * len(prompt) + change_weights(original, answer)
    return Sample([*map(int, prompt), *map(int, answer)], weights)


def change_weights(original: Sequence[int], answer: Sequence[int]) -> list[float]:
    """1 for tokens of the answer that are not the original's, for the one behind each change, and
    for the last; ``COPIED_WEIGHT`` for others."""
    weights = [COPIED_WEIGHT] * len(answer)
    matcher = difflib.SequenceMatcher(None, list(original), list(answer), autojunk=False)
    for what, _, _, start, end in matcher.get_opcodes():
        if what != "equal":
            for place in range(start, min(end + 1, len(answer))):
                weights[place] = 1.0
    weights[-1] = 1.0
    return weights
