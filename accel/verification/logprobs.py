"""Log probabilities of the tokens that a model wrote, and of likelier ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Logprob:
    """A token's log probability (nats) by the model alone, before any sampling rule."""

    token: int
    logprob: float
    likeliest: list[tuple[int, float]]
    """The likeliest tokens at its position, the likeliest first, with their log probabilities."""


def logprob_of(logits: NDArray[np.float32], token: int, count: int) -> Logprob:
    """That of ``token`` in a row of logits, float32 [vocabulary], beside the ``count``
    likeliest."""
    numbers = logits.astype(np.float64)
    highest = numbers.max()
    total = highest + np.log(np.exp(numbers - highest).sum())
    likeliest = np.argsort(-numbers, kind="stable")[:count]
    return Logprob(
        token,
        float(numbers[token] - total),
        [(int(other), float(numbers[other] - total)) for other in likeliest],
    )
