"""Tokens of a vocabulary by the bytes that they begin with."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class ByteIndex:
    """Tokens of a vocabulary in order of their bytes. Control tokens are left out."""

    def __init__(self, byte_table: Sequence[bytes], order: NDArray[np.int64]) -> None:
        """``byte_table``: the bytes of every token, none for control tokens; ``order``: what
        ``byte_order`` gives for them."""
        self._of_token, self._tokens = byte_table, order
        self._bytes = list(map(byte_table.__getitem__, order.tolist()))

    def bytes_of(self, token: int) -> bytes:
        """Return bytes of a token; none for control tokens and ids without a token."""
        return self._of_token[token] if 0 <= token < len(self._of_token) else b""

    def starting_with(self, start: bytes) -> NDArray[np.int64]:
        """Return tokens whose bytes begin with ``start``."""
        first = bisect_left(self._bytes, start)
        last = bisect_left(self._bytes, _after(start), first) if _after(start) else len(self._bytes)
        return self._tokens[first:last]

    def agreeing(self, required: bytes) -> NDArray[np.int64]:
        """Return tokens that begin with ``required``, or with which ``required`` begins."""
        shorter = [self._exactly(required[:end]) for end in range(1, len(required))]
        return np.concatenate([*shorter, self.starting_with(required)])

    def can_grow(self, spelt: bytes) -> bool:
        """Return whether a token begins with ``spelt`` and is longer."""
        return len(self.starting_with(spelt)) > len(self._exactly(spelt))

    def _exactly(self, spelt: bytes) -> NDArray[np.int64]:
        first = bisect_left(self._bytes, spelt)
        last = first
        while last < len(self._bytes) and self._bytes[last] == spelt:
            last += 1
        return self._tokens[first:last]


def byte_order(byte_table: Sequence[bytes]) -> NDArray[np.int64]:
    """Return tokens in order of their bytes; those without any are left out."""
    tokens = (token for token, spelt in enumerate(byte_table) if spelt)
    return np.array(sorted(tokens, key=byte_table.__getitem__), np.int64)


def _after(start: bytes) -> bytes:
    """Return the least bytes after all that begin with ``start``; none for 0xFF…."""
    stripped = start.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else b""
