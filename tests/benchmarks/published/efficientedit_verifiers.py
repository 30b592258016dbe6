"""The lossy verifiers of EfficientEdit's Table III: which tokens of a draft model are accepted
beside the likeliest, by the logits behind a node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def entropy_tokens(logits: NDArray[np.float32], top_k: int) -> list[int]:
    """Tokens that EfficientEdit's entropy-aware verification accepts after a node (eq. 9, 10).

    The entropy of the ``top_k`` likeliest tokens, normalised to [0, 1], times ``top_k`` and rounded
    up, says how many of them are good enough.
    """
    likeliest = np.argsort(-logits, kind="stable")[:top_k]
    weights = np.exp(logits[likeliest].astype(np.float64) - float(logits[likeliest[0]]))
    chances = weights / weights.sum()
    present = chances[chances > 0]
    entropy = -float((present * np.log(present)).sum()) / float(np.log(top_k))
    accepted: list[int] = likeliest[: max(int(np.ceil(top_k * entropy)), 1)].tolist()
    return accepted


def likeliest_tokens(logits: NDArray[np.float32], top_k: int) -> list[int]:
    """Tokens that verification by a fixed rank accepts (top-k of EfficientEdit's Table III)."""
    likeliest: list[int] = np.argsort(-logits, kind="stable")[:top_k].tolist()
    return likeliest


def all_tokens(logits: NDArray[np.float32]) -> range:
    """Whatever the draft model says (Table III's row without verification)."""
    return range(len(logits))
