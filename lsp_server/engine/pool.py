"""Things that are kept for reuse and lent to one job at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

Thing = TypeVar("Thing")
Key = tuple[str, ...]


class Spares(Generic[Thing]):
    """Spare things by key; of the keys used longest ago they are let go."""

    def __init__(self, most: int) -> None:
        """``most``: keys whose things are kept."""
        self._most = most
        self._things: dict[Key, list[Thing]] = {}

    def __iter__(self) -> Iterator[Thing]:
        return (thing for things in self._things.values() for thing in things)

    def lend(self, key: Key, new: Callable[[], Thing]) -> Loan[Thing]:
        """A spare thing of ``key``, or a new one, until the end of the ``with`` block.

        A thing of a job that was pre-empted is still in use, so the job that pre-empts it gets
        another.
        """
        return Loan(self, key, new)

    def clear(self) -> None:
        """Let everything go."""
        self._things.clear()

    def take(self, key: Key) -> Thing | None:
        """A spare thing, which is spare no more."""
        things = self._things.get(key)
        return things.pop() if things else None

    def newest(self, key: Key) -> Thing | None:
        """The spare thing of ``key`` that would be lent next."""
        things = self._things.get(key)
        return things[-1] if things else None

    def forget(self, key: Key) -> None:
        """Let go of what is spare of ``key``."""
        self._things.pop(key, None)

    def forget_where(self, matches: Callable[[Key], bool]) -> None:
        """Let go of what is spare of all keys that match."""
        for key in [key for key in self._things if matches(key)]:
            del self._things[key]

    def move(self, key: Key, to: Key) -> None:
        """What is spare of ``key`` takes the place of what is spare of ``to``."""
        self._things[to] = self._things.pop(key, [])

    def give_back(self, key: Key, thing: Thing) -> None:
        """The thing is spare again."""
        self._things[key] = [*self._things.pop(key, []), thing]
        while len(self._things) > self._most:
            del self._things[next(iter(self._things))]


class Loan(Generic[Thing]):
    """One thing, for the length of a ``with`` block."""

    def __init__(self, spares: Spares[Thing], key: Key, new: Callable[[], Thing]) -> None:
        self._spares = spares
        self._key = key
        self._new = new

    def __enter__(self) -> Thing:
        spare = self._spares.take(self._key)
        self._thing = self._new() if spare is None else spare
        return self._thing

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._spares.give_back(self._key, self._thing)
