"""Further verifiers of EfficientEdit's Table III: which tokens of a draft model are accepted beside
the likeliest, by the logits that follow a node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def likeliest_tokens(logits: NDArray[np.float32], top_k: int) -> list[int]:
    """Tokens that verification by a fixed rank accepts (top-k of EfficientEdit's Table III)."""
    likeliest: list[int] = np.argsort(-logits, kind="stable")[:top_k].tolist()
    return likeliest


def all_tokens(logits: NDArray[np.float32]) -> range:
    """Whatever the draft model says (Table III's row without verification)."""
    return range(len(logits))
