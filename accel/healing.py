"""Hold the first tokens of a generation to bytes that are already typed.

A prompt that ends inside a word, or after a newline whose indentation would be one token with it,
is text that the model never saw. The prompt then backs off to a border between tokens, and the
generation must begin with the bytes that were cut off (token healing).
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree
from accel.tokenizer import Tokenizer


class ByteIndex:
    """Tokens of a vocabulary in order of their bytes. Control tokens are left out."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        table = tokenizer.byte_table
        self._of_token = [
            b"" if token in tokenizer.special_tokens else spelt for token, spelt in enumerate(table)
        ]
        order = sorted(
            (token for token, spelt in enumerate(self._of_token) if spelt),
            key=self._of_token.__getitem__,
        )
        self._tokens = np.array(order, np.int64)
        self._bytes = [self._of_token[token] for token in order]

    def bytes_of(self, token: int) -> bytes:
        """Bytes of a token; none for control tokens and ids without a token."""
        return self._of_token[token] if 0 <= token < len(self._of_token) else b""

    def starting_with(self, start: bytes) -> NDArray[np.int64]:
        """Tokens whose bytes begin with ``start``."""
        first = bisect_left(self._bytes, start)
        last = bisect_left(self._bytes, _after(start), first) if _after(start) else len(self._bytes)
        return self._tokens[first:last]

    def agreeing(self, required: bytes) -> NDArray[np.int64]:
        """Tokens that begin with ``required``, or with which ``required`` begins."""
        shorter = [self._exactly(required[:end]) for end in range(1, len(required))]
        return np.concatenate([*shorter, self.starting_with(required)])

    def can_grow(self, spelt: bytes) -> bool:
        """Whether a token begins with ``spelt`` and is longer."""
        return len(self.starting_with(spelt)) > len(self._exactly(spelt))

    def _exactly(self, spelt: bytes) -> NDArray[np.int64]:
        first = bisect_left(self._bytes, spelt)
        last = first
        while last < len(self._bytes) and self._bytes[last] == spelt:
            last += 1
        return self._tokens[first:last]


def _after(start: bytes) -> bytes:
    """The least bytes that sort after everything that begins with ``start``; none for 0xFF…"""
    stripped = start.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else b""


def rest_after(required: bytes, spelt: bytes) -> bytes | None:
    """What is still required after a token of these bytes; None when it disagrees."""
    if spelt.startswith(required):
        return b""
    return required[len(spelt) :] if spelt and required.startswith(spelt) else None


def prune(tree: DraftTree, required: bytes, index: ByteIndex) -> DraftTree:
    """The nodes of ``tree`` that agree with ``required``, likelier for what they have survived."""
    rests: list[bytes | None] = []
    kept: list[int] = []
    place = np.full(len(tree) + 1, -1, np.int32)
    agreed = total = 0.0
    for node, (token, parent) in enumerate(
        zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True)
    ):
        before = required if parent < 0 else rests[parent]
        rest = (
            None
            if before is None
            else rest_after(before, index.bytes_of(token))
            if (before)
            else b""
        )
        rests.append(rest)
        if parent < 0:
            total += float(tree.probabilities[node])
        if rest is not None:
            if parent < 0:
                agreed += float(tree.probabilities[node])
            place[node] = len(kept)
            kept.append(node)
    nodes = np.array(kept, np.int64)
    unseen = 0.1 * max(1.0 - total, 0.0)
    scale = 1.0 / max(agreed + unseen, 1e-6)
    return DraftTree(
        tree.tokens[nodes],
        place[tree.parents[nodes]].astype(np.int32),
        np.minimum(tree.probabilities[nodes] * np.float32(scale), np.float32(1)),
        tree.sources[nodes],
    )
