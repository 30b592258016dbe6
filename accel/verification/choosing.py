"""From scores to the next token, by noise that depends on seed and position alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from accel.verification.gumbel_sampling import draw
from accel.verification.sampling import Sampling

Logits = NDArray[np.float32]

_MASK = (1 << 64) - 1


def choose(scores: Logits, sampling: Sampling, position: int) -> int:
    """Next token after a node. ``scores`` float32 [vocabulary], -inf for excluded tokens: what
    ``LogitsProcessor`` makes of the logits.

    ``position`` counts the generated tokens before this one, so that the draw depends on seed and
    position and not on how it was computed (Gumbel-max with counter-based noise).
    """
    if sampling.greedy:
        return int(scores.argmax())
    return int(
        draw(
            likely_enough(scores, sampling),
            sampling.temperature,
            sampling.top_k,
            sampling.top_p,
            np.uint64(sampling.seed & _MASK),
            np.uint64(position & _MASK),
        )
    )


def likely_enough(scores: Logits, sampling: Sampling) -> Logits:
    """Scores without those of tokens that ``min_p`` excludes."""
    if not sampling.min_p:
        return scores
    least = scores.max() + np.float32(sampling.temperature * math.log(sampling.min_p))
    return np.where(scores < least, np.float32(-np.inf), scores)


def warm_up() -> None:
    """Compile the draw of a token, or load its compiled form."""
    choose(np.zeros(2, np.float32), Sampling(temperature=1.0, top_p=0.5), 0)
