"""How long to wait before the next try."""

from __future__ import annotations

FIRST_S = 1.0
LONGEST_S = 60.0


class BackOff:
    """Waits of 1, 2, 4 … 60 seconds."""

    def __init__(self) -> None:
        self._tries = 0

    def next_s(self, wanted_s: float = 0.0) -> float:
        """Seconds until the next try, at least what the other side wants."""
        wait_s = min(LONGEST_S, FIRST_S * 2.0**self._tries)
        self._tries += 1
        return max(wait_s, wanted_s)

    def forget(self) -> None:
        """It works again."""
        self._tries = 0
