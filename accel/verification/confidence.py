"""Probabilities of the tokens of a text: given the bytes that it has to begin with, and by the
model alone, beside likelier ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.text.token_healing import rest_after
from accel.text.tokenizer import Tokenizer

IMPOSSIBLE = -30.0
"""Log probability of what cannot be, as a number that JSON has."""

_NONE = np.empty(0, np.int64)


class Confidence(NamedTuple):
    """Log probabilities (nats) of a token and, before it, of the end of the text."""

    token: float
    end: float


def log_total(logits: NDArray[np.floating]) -> float:
    """Return the logarithm of the sum of the exponentials of logits, [n], n above 0."""
    highest = logits.max()
    return float(highest) + math.log(np.exp(logits - highest).sum(dtype=np.float64))


class Confidences:
    """The log probabilities of one token after another. While they spell ``required`` bytes, which
    are typed already, a token counts among those that agree with them, and the text does not end.
    ``ends``, int64 [n]: the tokens in whose place it would."""

    def __init__(
        self, tokenizer: Tokenizer, required: bytes = b"", ends: NDArray[np.int64] = _NONE
    ) -> None:
        self._index = tokenizer.byte_index
        self._rest, self._ends = required, ends

    def next(self, logits: NDArray[np.float32], token: int) -> Confidence:
        """Return those of the next token, by its row of logits, float32 [vocabulary]."""
        if self._rest:
            total = log_total(logits[self._index.agreeing(self._rest)])
            self._rest = rest_after(self._rest, self._index.bytes_of(token)) or b""
            return Confidence(float(logits[token]) - total, IMPOSSIBLE)
        total = log_total(logits)
        end = log_total(logits[self._ends]) - total if len(self._ends) else IMPOSSIBLE
        return Confidence(float(logits[token]) - total, max(end, IMPOSSIBLE))


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
    total = log_total(numbers)
    likeliest = np.argsort(-numbers, kind="stable")[:count]
    return Logprob(
        token,
        float(numbers[token] - total),
        [(int(other), float(numbers[other] - total)) for other in likeliest],
    )
