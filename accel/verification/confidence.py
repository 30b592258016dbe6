"""How likely a model finds the tokens of a text, given the bytes that it has to begin with."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accel.text.token_healing import rest_after
from accel.text.tokenizer import Tokenizer


def log_confidence(
    logits: NDArray[np.float32], token: int, allowed: NDArray[np.int64] | None = None
) -> float:
    """Log probability (nats) of ``token`` in a row of logits, float32 [vocabulary], among the
    tokens ``allowed``, or among all."""
    among = logits if allowed is None else logits[allowed]
    highest = among.max()
    total = np.exp(among - highest).sum(dtype=np.float64)
    return float(logits[token]) - float(highest) - math.log(total)


class Confidences:
    """The log probabilities of one token after another. While they spell ``required`` bytes, which
    are typed already, a token counts among those that agree with them."""

    def __init__(self, tokenizer: Tokenizer, required: bytes = b"") -> None:
        self._index = tokenizer.byte_index
        self._rest = required

    def next(self, logits: NDArray[np.float32], token: int) -> float:
        """That of the next token, in nats, by its row of logits, float32 [vocabulary]."""
        if not self._rest:
            return log_confidence(logits, token)
        found = log_confidence(logits, token, self._index.agreeing(self._rest))
        self._rest = rest_after(self._rest, self._index.bytes_of(token)) or b""
        return found
