"""A pool of items, each used by one job at a time and then by the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Item = TypeVar("Item")
Key = tuple[str, ...]
Fits = Callable[[Item], int]
"""How well an item serves, 0 for not at all."""


class Pool(Generic[Item]):
    """Idle items by key; those used longest ago are dropped."""

    def __init__(
        self, most: int, on_drop: Callable[[Key, Item], None] = lambda key, item: None
    ) -> None:
        """Keep ``most`` idle items, and call ``on_drop`` for one that makes room."""
        self._most, self._on_drop = most, on_drop
        self._idle: list[tuple[Key, Item]] = []
        """The one used longest ago first."""
        self._used: list[tuple[Key, Item]] = []

    def __iter__(self) -> Iterator[Item]:
        return (item for _, item in self._idle)

    @contextmanager
    def acquire(
        self, key: Key, new: Callable[[], Item], fits: Fits[Item] | None = None
    ) -> Iterator[Item]:
        """Lend an idle item of ``key``, or a ``new`` one, until the end of the ``with`` block.

        An item of a job under way is in use, so another job gets another. With ``fits`` it is the
        idle one that fits best, and a new one where none does.
        """
        best, best_fit = None, 0
        for index, (own, item) in enumerate(self._idle):
            fit = 0 if own != key else 1 if fits is None else fits(item)
            if fit >= max(best_fit, 1):
                best, best_fit = index, fit
        item = new() if best is None else self._idle.pop(best)[1]
        self._used.append((key, item))
        try:
            yield item
        finally:
            self._used.remove((key, item))
            self.release(key, item)

    def clear(self) -> None:
        """Drop all items."""
        self._idle.clear()

    def idle(self, key: Key) -> list[Item]:
        """Return the idle items of ``key``, the one that would be acquired next last."""
        return [item for own, item in self._idle if own == key]

    def used(self, key: Key) -> list[Item]:
        """Return the items of ``key`` that jobs under way use."""
        return [item for own, item in self._used if own == key]

    def forget(self, matches: Callable[[Key], bool]) -> None:
        """Drop the idle items of all keys that match."""
        self._idle = [each for each in self._idle if not matches(each[0])]

    def move(self, key: Key, to: Key) -> None:
        """Replace the idle items of ``to`` by those of ``key``."""
        self.forget(lambda own: own == to)
        self._idle = [(to if own == key else own, item) for own, item in self._idle]

    def release(self, key: Key, item: Item) -> None:
        """Take ``item`` back, which is idle again."""
        self._idle.append((key, item))
        while len(self._idle) > self._most:
            self._on_drop(*self._idle.pop(0))
