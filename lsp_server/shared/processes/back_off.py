"""The delay before the next attempt. Standard library only."""

from __future__ import annotations

FIRST_S = 1.0
LONGEST_S = 60.0


class BackOff:
    """Waits that double with every failure, up to the longest: of 1, 2, 4 … 60 seconds."""

    def __init__(self, first_s: float | None = None, longest_s: float | None = None) -> None:
        self._first_s = FIRST_S if first_s is None else first_s
        self._longest_s = LONGEST_S if longest_s is None else longest_s
        self.failures = 0
        """One after another, without a success in between."""

    @property
    def wait_s(self) -> float:
        """The seconds to wait after the failures in a row so far; 0 after none."""
        if not self.failures:
            return 0.0
        return min(self._longest_s, self._first_s * 2.0 ** (self.failures - 1))

    def next_s(self, wanted_s: float = 0.0) -> float:
        """It failed: seconds until the next try, at least what the other side asks for."""
        self.failures += 1
        return max(self.wait_s, wanted_s)

    def forget(self) -> None:
        """It works again."""
        self.failures = 0
