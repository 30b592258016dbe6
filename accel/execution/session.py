"""The tokens and KV cache of one line of requests, reused from one request to the next."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.errors import SessionBusy
from accel.models.base import Cache


class Session:
    """KV cache of the text seen last, trimmed to what the next request has in common with it."""

    def __init__(self, new_cache: Callable[[], Cache]) -> None:
        self._new_cache = new_cache
        self._cache: Cache | None = None
        self._parts = [_NOTHING]
        """The tokens in pieces, which are joined when they are read."""
        self._owner: Callable[[], object] = _nobody
        """Weak: the owner holds the session, and its cache is to go with the last of both."""

    @property
    def tokens(self) -> TokenArray:
        """Tokens whose keys and values are cached. int32 [n]."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        assert len(self._parts[0]) == self.length, "rows were committed that hold no tokens"
        return self._parts[0]

    @property
    def length(self) -> int:
        """Number of tokens whose keys and values are cached."""
        return self._cache.length if self._cache is not None else 0

    @property
    def nbytes(self) -> int:
        """Bytes of the cached keys and values."""
        return self._cache.nbytes if self._cache is not None else 0

    @property
    def cache(self) -> Cache:
        """The cache, made when first needed."""
        if self._cache is None:
            self._cache = self._new_cache()
        return self._cache

    @contextmanager
    def used_by(self, owner: object) -> Iterator[None]:
        """Let ``owner`` decode on this session; the one before it cannot go on."""
        self._owner = weakref.ref(owner)
        try:
            yield
        finally:
            if self._owner() is owner:
                self._owner = _nobody

    @property
    def is_used(self) -> bool:
        """Return whether work on this session is under way."""
        return self._owner() is not None

    def check(self, owner: object) -> None:
        """Raise SessionBusy unless ``owner`` still has the session."""
        if self._owner() is not owner:
            raise SessionBusy("a newer request took the session over; start this one again")

    def common(self, tokens: TokenArray) -> int:
        """Return the number of tokens at the beginning of ``tokens``, int32, that are cached."""
        cached = self.tokens
        limit = min(len(cached), len(tokens))
        same = cached[:limit] == tokens[:limit]
        return limit if same.all() else int(np.argmin(same))

    def reuse(self, tokens: TokenArray) -> int:
        """Trim to the prefix in common with ``tokens``, whose last token stays to be computed.
        Returns how many tokens of ``tokens`` are cached."""
        cached = self.tokens
        self.cache.trim(self.common(tokens[:-1]))
        self._parts = [cached[: self.length]]
        return self.length

    def commit(self, tokens: TokenArray | list[int], rows: list[int]) -> None:
        """Commit ``rows`` of the last forward, which hold ``tokens``."""
        self._parts.append(np.array(tokens, np.int32))
        self.cache.commit(rows)

    def commit_path(self, pending: TokenArray, path: list[int], tokens: TokenArray) -> None:
        """Commit the rows of ``pending`` and of a tree's nodes after it, in ``path``; ``tokens``,
        int32, begin with those of the nodes."""
        first, count = len(pending), len(path)
        self._parts += [pending, tokens[:count]]
        if not path or path[-1] == count - 1:
            self.cache.commit(range(first + count))
        else:
            self.cache.commit([*range(first), *[first + node for node in path]])

    def restore(self, tokens: TokenArray, state: list[NDArray[Any]]) -> None:
        """Hold ``tokens``, int32 [n], whose keys and values were those of ``Cache.state``. Raises
        ValueError, and holds nothing, where they are of another shape, and MemoryError."""
        self.drop()
        try:
            self.cache.restore(state, len(tokens))
        except (ValueError, MemoryError):
            self.drop()
            raise
        self._parts = [tokens]

    def hold(self, tokens: TokenArray, start: int, stretches: list[list[NDArray[Any]]]) -> None:
        """Hold ``tokens``, whose keys and values from ``start`` on are those of ``stretches``, and
        before it those that are held. Raises MemoryError."""
        self.cache.trim(start)
        self._parts = [tokens[:start]]
        self.cache.reserve(len(tokens) - start)
        for rows in stretches:
            self.cache.append_rows(rows)
        self._parts = [tokens]

    def copy(self, other: Session) -> bool:
        """Hold what ``other`` holds, a session of the same model. Whether that can be: not every
        cache can be copied. Raises MemoryError, and holds nothing then."""
        try:
            if not self.cache.copy(other.cache):
                return False
        except MemoryError:
            self.drop()
            raise
        self._parts = [other.tokens]
        return True

    def drop(self) -> None:
        """Free the cache."""
        self._cache = None
        self._parts = [_NOTHING]


_NOTHING = np.empty(0, np.int32)


def _nobody() -> None:
    return None
