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


def entropy_tokens(logits: NDArray[np.float32], top_k: int) -> list[int]:
    """Return tokens that are accepted after a node with these logits (float32 [vocabulary]) by
    EfficientEdit's entropy-aware verification (eq. 9, 10): where a model is unsure, more than its
    likeliest token is good enough. Lossy: the text is no longer the model's own.

    The entropy of the ``top_k`` likeliest tokens, normalised to [0, 1], times ``top_k`` and rounded
    up, says how many of them are good enough: one at least. ``top_k``: 2 or more.
    """
    likeliest = np.argsort(-logits, kind="stable")[:top_k]
    weights = np.exp(logits[likeliest].astype(np.float64) - float(logits[likeliest[0]]))
    chances = weights / weights.sum()
    present = chances[chances > 0]
    entropy = -float((present * np.log(present)).sum()) / float(np.log(top_k))
    accepted: list[int] = likeliest[: max(int(np.ceil(top_k * entropy)), 1)].tolist()
    return accepted
