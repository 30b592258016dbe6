"""The tokens and KV cache of one line of requests, kept from one request to the next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel.draft_tree import TokenArray
from accel.errors import SessionBusy
from accel.kv_cache import KVCache


class Session:
    """KV cache of the text seen last, trimmed to what the next request has in common with it."""

    def __init__(self, new_cache: Callable[[], KVCache]) -> None:
        self._new_cache = new_cache
        self._cache: KVCache | None = None
        self._tokens = np.empty(0, np.int32)
        self._owner: object = None

    @property
    def tokens(self) -> TokenArray:
        """Tokens whose keys and values are held. int32 [n]."""
        return self._tokens[: self.length]

    @property
    def length(self) -> int:
        """Number of tokens whose keys and values are held."""
        return self._cache.length if self._cache is not None else 0

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values held."""
        return self._cache.nbytes if self._cache is not None else 0

    @property
    def cache(self) -> KVCache:
        """The cache, made when first needed."""
        if self._cache is None:
            self._cache = self._new_cache()
        return self._cache

    def take(self, owner: object) -> None:
        """Make ``owner`` the one that decodes on this session; the one before it cannot go on."""
        self._owner = owner

    def check(self, owner: object) -> None:
        """Raise SessionBusy unless ``owner`` still has the session."""
        if self._owner is not owner:
            raise SessionBusy("a newer request took the session over; start this one again")

    def reuse(self, tokens: TokenArray) -> int:
        """Trim to the prefix in common with ``tokens``, whose last token stays to be computed.

        Returns how many tokens of ``tokens`` are held.
        """
        limit = min(self.length, len(tokens) - 1)
        same = self._tokens[:limit] == tokens[:limit]
        common = limit if same.all() else int(np.argmin(same))
        self.cache.trim(common)
        return self.length

    def keep(self, tokens: TokenArray | list[int], rows: list[int]) -> None:
        """Commit ``rows`` of the last forward, which hold ``tokens``."""
        length = self.length
        needed = length + len(tokens)
        if needed > len(self._tokens):
            grown = np.empty(max(needed, 2 * len(self._tokens)), np.int32)
            grown[:length] = self._tokens[:length]
            self._tokens = grown
        self._tokens[length:needed] = tokens
        self.cache.keep(rows)

    def drop(self) -> None:
        """Free the cache."""
        self._cache = None
