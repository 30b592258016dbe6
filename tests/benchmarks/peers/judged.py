"""What a model says of each place of a text, in few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray

_ROWS = 64
"""Rows looked at together, so that they stay in the caches."""


@dataclass(frozen=True, slots=True)
class Judged:
    """greedy: int32 [n], the likeliest token after each; gaps: float32 [n], by how much its logit
    exceeds that of the second; log_likelihoods: float64 [n], nats, of the token that follows."""

    greedy: TokenArray
    gaps: NDArray[np.float32]
    log_likelihoods: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence[Judged]) -> Judged:
        """Of the parts one after another."""
        return cls(
            np.concatenate([part.greedy for part in parts]),
            np.concatenate([part.gaps for part in parts]),
            np.concatenate([part.log_likelihoods for part in parts]),
        )


def judge(logits: NDArray[np.float32], following: TokenArray) -> Judged:
    """Of logits, float32 [n, vocabulary], where ``following``, int32 [n], are the next tokens."""
    parts = range(0, len(logits), _ROWS)
    return Judged.joined(
        [_judged(logits[at : at + _ROWS], following[at : at + _ROWS]) for at in parts]
    )


def _judged(logits: NDArray[np.float32], following: TokenArray) -> Judged:
    rows = np.arange(len(logits))
    greedy = logits.argmax(1)
    highest = logits[rows, greedy]
    # Logits are of the order of ten: float32 keeps seven digits of the exponentials' sum.
    sums = np.exp(logits - highest[:, None]).sum(1, dtype=np.float64)
    likelihoods = (logits[rows, following] - highest).astype(np.float64) - np.log(sums)
    others = logits.copy()
    others[rows, greedy] = -np.inf
    return Judged(greedy.astype(np.int32), highest - others.max(1), likelihoods)
