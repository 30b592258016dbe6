"""Keys and values of prompts that wait for being asked again, each stretch of tokens held once."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.execution.session import Session

STRETCH = 64
"""Tokens that are held together, a multiple of the block of every cache that can be cut."""


@dataclass(slots=True, eq=False)
class _Stretch:
    """Keys and values of ``STRETCH`` tokens behind those of ``above``."""

    above: _Stretch | None
    name: Hashable
    """Its tokens as bytes; of a root, what shares it."""
    rows: list[NDArray[Any]]
    used: int = 0
    """The number of its last use."""
    below: dict[Hashable, _Stretch] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.rows)


class PrefixStore:
    """Prefixes by the root that shares them, as trees of stretches."""

    def __init__(self) -> None:
        self.nbytes = 0
        """Bytes of all stretches."""
        self._roots: dict[Hashable, _Stretch] = {}
        self._uses = itertools.count(1)

    def keep(self, root: Hashable, session: Session) -> None:
        """Hold a copy of what ``session`` holds, for ``restore`` by ``root``."""
        tokens, cache = session.tokens, session.cache
        if not cache.is_cut or len(tokens) < STRETCH:
            return
        use = next(self._uses)
        above = self._roots.setdefault(root, _Stretch(None, root, []))
        for start, name in _names(tokens):
            stretch = above.below.get(name)
            if stretch is None:
                rows = [each.copy() for each in cache.rows(start, start + STRETCH)]
                stretch = above.below[name] = _Stretch(above, name, rows)
                self.nbytes += stretch.nbytes
            stretch.used = use
            above = stretch

    def restore(self, root: Hashable, prompt: TokenArray, session: Session) -> None:
        """Have ``session`` hold the longest prefix of ``prompt`` that is known by ``root``, where
        that is longer than what it holds of it."""
        entries = self._find(root, prompt)
        first = session.common(prompt) // STRETCH
        if len(entries) <= first:
            return
        use = next(self._uses)
        for stretch in entries:
            stretch.used = use
        tokens = prompt[: len(entries) * STRETCH]
        session.hold(tokens, first * STRETCH, [stretch.rows for stretch in entries[first:]])

    def shrink(self, most: int) -> None:
        """Drop stretches used longest ago, the last of a prefix first, until all are at most
        ``most`` bytes."""
        if self.nbytes <= most:
            return
        ends = [(stretch.used, id(stretch), stretch) for stretch in self._ends()]
        heapq.heapify(ends)
        while self.nbytes > max(most, 0):
            _, _, stretch = heapq.heappop(ends)
            above = self._drop(stretch)
            if above.above is not None and not above.below:
                heapq.heappush(ends, (above.used, id(above), above))

    def forget(self, matches: Callable[[Any], bool] = lambda root: True) -> None:
        """Drop the prefixes of all roots that match."""
        for root in [root for root in self._roots if matches(root)]:
            stretches = [self._roots.pop(root)]
            while stretches:
                stretch = stretches.pop()
                self.nbytes -= stretch.nbytes
                stretches += stretch.below.values()

    def _find(self, root: Hashable, prompt: TokenArray) -> Sequence[_Stretch]:
        """Return the stretches of the longest known prefix of ``prompt``."""
        above, entries = self._roots.get(root), []
        for _, name in _names(prompt):
            above = None if above is None else above.below.get(name)
            if above is None:
                break
            entries.append(above)
        return entries

    def _ends(self) -> Iterator[_Stretch]:
        """Yield the stretches that no other follows."""
        stretches = list(self._roots.values())
        while stretches:
            stretch = stretches.pop()
            stretches += stretch.below.values()
            if not stretch.below and stretch.above is not None:
                yield stretch

    def _drop(self, stretch: _Stretch) -> _Stretch:
        """Drop a stretch that no other follows; return the one before it."""
        self.nbytes -= stretch.nbytes
        above = stretch.above
        assert above is not None, "a root has no rows"
        del above.below[stretch.name]
        if above.above is None and not above.below:
            del self._roots[above.name]
        return above


def _names(tokens: TokenArray) -> Iterator[tuple[int, bytes]]:
    """Yield where each whole stretch of ``tokens`` begins, and its name."""
    for start in range(0, len(tokens) - STRETCH + 1, STRETCH):
        yield start, tokens[start : start + STRETCH].tobytes()
