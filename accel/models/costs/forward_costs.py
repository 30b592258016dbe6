"""Seconds of a forward by rows and context, t(T), on this machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STATED_ROWS = 1, 4, 8, 12, 16, 32
"""Rows whose costs are stated in words."""


@dataclass(slots=True, eq=False)
class ForwardCosts:
    """Seconds of a forward. seconds: float64 [contexts, rows] at the grid points; ``version``
    changes with them, where they are learnt."""

    contexts: list[int]
    rows: list[int]
    seconds: NDArray[np.float64]
    version: int = 0

    def __str__(self) -> str:
        """Return milliseconds by rows, few of them, after the first context."""
        return ", ".join(
            f"{rows}: {1e3 * seconds:.1f} ms"
            for rows, seconds in zip(self.rows, self.seconds[0].tolist(), strict=True)
            if rows in STATED_ROWS
        )

    def by_rows(self, context: int, limit: int) -> NDArray[np.float64]:
        """Return seconds for 0 to ``limit`` rows after ``context`` tokens; index 0 is not used.
        Between grid points, and beyond the last, costs are linear."""
        at_grid = self._after(context)
        counts = np.arange(limit + 1)
        grid = np.array(self.rows, np.float64)
        costs = np.interp(counts, grid, at_grid)
        if limit > grid[-1] and len(grid) > 1:
            slope = max((at_grid[-1] - at_grid[-2]) / (grid[-1] - grid[-2]), 0.0)
            beyond = counts > grid[-1]
            costs[beyond] = at_grid[-1] + slope * (counts[beyond] - grid[-1])
        return costs

    def _after(self, context: int) -> NDArray[np.float64]:
        """Return seconds at the grid's numbers of rows after ``context`` tokens."""
        grid = np.array(self.contexts, np.float64)
        seconds = np.array([np.interp(float(context), grid, column) for column in self.seconds.T])
        if context > grid[-1] and len(grid) > 1:
            slopes = (self.seconds[-1] - self.seconds[-2]) / (grid[-1] - grid[-2])
            seconds += np.maximum(slopes, 0.0) * (context - grid[-1])
        return seconds
