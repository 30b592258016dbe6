"""A pool of things that one job uses at a time, and the next one again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Item = TypeVar("Item")
Key = tuple[str, ...]
Fits = Callable[[Item], int]
"""How well an item serves, 0 for not at all."""

MOST_IDLE = 16
"""Items of one key, from which on one that does not fit is used in place of a new one."""


class Pool(Generic[Item]):
    """Idle items by key; those of the keys used longest ago are dropped."""

    def __init__(self, most: int) -> None:
        """``most``: keys whose items stay."""
        self._most = most
        self._idle: dict[Key, list[Item]] = {}
        self._used: list[tuple[Key, Item]] = []

    def __iter__(self) -> Iterator[Item]:
        return (item for items in self._idle.values() for item in items)

    @contextmanager
    def acquire(
        self, key: Key, new: Callable[[], Item], fits: Fits[Item] | None = None
    ) -> Iterator[Item]:
        """An idle item of ``key``, or a new one, until the end of the ``with`` block.

        An item of a job under way is in use, so another job gets another. With ``fits`` the idle
        one that fits best; where none does, with 0, a new one, unless many are idle.
        """
        idle = self.take(key, fits)
        item = new() if idle is None else idle
        self._used.append((key, item))
        try:
            yield item
        finally:
            self._used.remove((key, item))
            self.release(key, item)

    def clear(self) -> None:
        """Drop all items."""
        self._idle.clear()

    def take(self, key: Key, fits: Fits[Item] | None = None) -> Item | None:
        """Remove an idle item, see ``acquire``."""
        items = self._idle.get(key)
        if not items or fits is None:
            return items.pop() if items else None
        found = [fits(item) for item in items]
        best = max(range(len(items)), key=lambda place: (found[place], place))
        if found[best]:
            return items.pop(best)
        # The first was used longest ago.
        return items.pop(0) if len(items) >= MOST_IDLE else None

    def used(self, key: Key) -> list[Item]:
        """The items of ``key`` that jobs under way use."""
        return [item for own, item in self._used if own == key]

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
