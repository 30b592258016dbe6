"""A pool of things that one job uses at a time, and the next one again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")
Key = tuple[str, ...]


class Pool(Generic[Item]):
    """Idle items by key; those of the keys used longest ago are dropped."""

    def __init__(self, most: int) -> None:
        """``most``: keys whose items stay."""
        self._most = most
        self._idle: dict[Key, list[Item]] = {}

    def __iter__(self) -> Iterator[Item]:
        return (item for items in self._idle.values() for item in items)

    def acquire(self, key: Key, new: Callable[[], Item]) -> Lease[Item]:
        """An idle item of ``key``, or a new one, until the end of the ``with`` block. An item of a
        job that was pre-empted is still in use, so the job that pre-empts it gets another."""
        return Lease(self, key, new)

    def clear(self) -> None:
        """Drop all items."""
        self._idle.clear()

    def take(self, key: Key) -> Item | None:
        """Remove an idle item."""
        items = self._idle.get(key)
        return items.pop() if items else None

    def newest(self, key: Key) -> Item | None:
        """The idle item of ``key`` that would be acquired next."""
        items = self._idle.get(key)
        return items[-1] if items else None

    def forget(self, key: Key) -> None:
        """Drop the idle items of ``key``."""
        self._idle.pop(key, None)

    def forget_where(self, matches: Callable[[Key], bool]) -> None:
        """Drop the idle items of all keys that match."""
        for key in [key for key in self._idle if matches(key)]:
            del self._idle[key]

    def move(self, key: Key, to: Key) -> None:
        """The idle items of ``key`` replace those of ``to``."""
        self._idle[to] = self._idle.pop(key, [])

    def release(self, key: Key, item: Item) -> None:
        """The item is idle again."""
        self._idle[key] = [*self._idle.pop(key, []), item]
        while len(self._idle) > self._most:
            del self._idle[next(iter(self._idle))]


class Lease(Generic[Item]):
    """One item, for the length of a ``with`` block."""

    def __init__(self, pool: Pool[Item], key: Key, new: Callable[[], Item]) -> None:
        self._pool = pool
        self._key = key
        self._new = new

    def __enter__(self) -> Item:
        idle = self._pool.take(self._key)
        self._item = self._new() if idle is None else idle
        return self._item

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.release(self._key, self._item)
