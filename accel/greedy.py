"""The walk of greedy decoding along a draft tree, compiled: only rows that are visited are read.

Taking the likeliest token of every row costs more than the walk where trees are wide, and a
repetition penalty applied in Python costs tens of microseconds a node.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray

_BLOCK = 64
_LEAST = np.float32(-np.inf)


@njit(nogil=True, cache=True, inline="always")
def _score(logit: np.float32, is_seen: bool, penalty: np.float32) -> np.float32:
    """As ``sampling.penalised``, in fp32."""
    if is_seen:
        return logit * penalty if logit < 0 else logit / penalty
    return logit


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"}, error_model="numpy")
def _likeliest(logits: NDArray[np.float32], seen: NDArray[np.bool_], penalty: np.float32) -> int:
    """The first of the tokens with the highest score: the best block of them, then within it."""
    highest = _LEAST
    at = 0
    size = len(logits)
    for first in range(0, size, _BLOCK):
        top = _LEAST
        for token in range(first, min(first + _BLOCK, size)):
            top = max(top, _score(logits[token], seen[token], penalty))
        if top > highest:
            highest = top
            at = first
    for token in range(at, min(at + _BLOCK, size)):
        if _score(logits[token], seen[token], penalty) == highest:
            return token
    return at


@njit(nogil=True, cache=True)
def _walk(
    logits: NDArray[np.float32],
    tokens: TokenArray,
    parents: TokenArray,
    seen: NDArray[np.bool_],
    penalty: np.float32,
    path: TokenArray,
    chosen: TokenArray,
) -> int:
    """Write the nodes of the path and the tokens chosen; returns how many tokens."""
    node = -1
    count = 0
    while True:
        token = _likeliest(logits[node + 1], seen, penalty)
        chosen[count] = token
        count += 1
        if penalty != 1:
            seen[token] = True
        child = node + 1
        while child < len(tokens) and (parents[child] != node or tokens[child] != token):
            child += 1
        if child == len(tokens):
            return count
        path[count - 1] = child
        node = child


class GreedyWalk:
    """``verifier.walk`` by the likeliest token, each node's own history counted as seen."""

    def __init__(self, vocabulary_size: int, penalty: float, seen: TokenArray) -> None:
        """``penalty`` of tokens seen, 1 for none; ``seen``: int32, those of the prompt."""
        self._penalty = np.float32(penalty)
        self._seen = np.zeros(vocabulary_size, np.bool_)
        self._path = np.empty(0, np.int32)
        self._chosen = np.empty(0, np.int32)
        self.note(seen)

    def note(self, tokens: TokenArray | list[int]) -> None:
        """``tokens`` have become text without a walk of this kind."""
        if self._penalty != 1:
            self._seen[tokens] = True

    def __call__(self, tree: DraftTree, logits: NDArray[np.float32]) -> tuple[list[int], list[int]]:
        """Path and tokens, as ``verifier.walk``. logits: float32 [nodes + 1, vocabulary]."""
        if len(self._chosen) <= len(tree):
            self._path = np.empty(2 * len(tree) + 1, np.int32)
            self._chosen = np.empty(2 * len(tree) + 1, np.int32)
        count = _walk(
            logits,
            np.asarray(tree.tokens, np.int32),
            np.asarray(tree.parents, np.int32),
            self._seen,
            self._penalty,
            self._path,
            self._chosen,
        )
        return self._path[: count - 1].tolist(), self._chosen[:count].tolist()
