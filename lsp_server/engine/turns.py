"""Turns: keys take turns, then the connections of a key, then the jobs of a connection."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

MOST_NOTED = 4096
"""Clients and connections; of those that had a turn longest ago nothing is known."""


class Turns:
    """The last turns, by number."""

    def __init__(self) -> None:
        self._clock = itertools.count(1)
        self._last: dict[tuple[str, ...], int] = {}

    def note(self, client: str, connection: str) -> int:
        """Return a job of theirs has a turn, of the number that is returned."""
        number = next(self._clock)
        for who in ((client,), (client, connection)):
            self._last.pop(who, None)
            self._last[who] = number
        while len(self._last) > MOST_NOTED:
            del self._last[next(iter(self._last))]
        return number

    def last(self, client: str, connection: str) -> Sequence[int]:
        """Return the numbers of the last turns of a client and of its connection; 0 for none."""
        return self._last.get((client,), 0), self._last.get((client, connection), 0)
