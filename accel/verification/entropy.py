"""EfficientEdit's entropy-aware verification: where a model is unsure, more than its likeliest
token is good enough. Lossy: the text is no longer the model's own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def entropy_tokens(logits: NDArray[np.float32], top_k: int) -> list[int]:
    """Return tokens that are accepted after a node with these logits (float32 [vocabulary]; eq. 9,
    10).

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
