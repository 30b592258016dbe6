"""How long a forward takes by rows and context, t(T), as it was measured on this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class ForwardCosts:
    """Seconds of a forward. seconds: float64 [contexts, rows] at the grid points.

    ``shared_from``: rows from which ``threads`` threads share it, 0 for never. ``was_busy``: other
    programs had the cores meanwhile: all takes longer, and threads cannot show what they gain.
    """

    contexts: list[int]
    rows: list[int]
    seconds: NDArray[np.float64]
    shared_from: int = 0
    was_busy: bool = False
    threads: int = 1

    def __str__(self) -> str:
        """Milliseconds by rows after the first context."""
        return ", ".join(
            f"{rows}: {1e3 * seconds:.1f} ms"
            for rows, seconds in zip(self.rows, self.seconds[0].tolist(), strict=True)
        )

    def by_rows(self, context: int, limit: int) -> NDArray[np.float64]:
        """Seconds for 0 to ``limit`` rows after ``context`` tokens; index 0 is not used. Between
        grid points, and beyond the last, costs are linear."""
        at = self._behind(context)
        counts = np.arange(limit + 1)
        known = np.array(self.rows, np.float64)
        costs = np.interp(counts, known, at)
        if limit > known[-1] and len(known) > 1:
            slope = max((at[-1] - at[-2]) / (known[-1] - known[-2]), 0.0)
            beyond = counts > known[-1]
            costs[beyond] = at[-1] + slope * (counts[beyond] - known[-1])
        return costs

    def _behind(self, context: int) -> NDArray[np.float64]:
        """Seconds at the grid's numbers of rows after ``context`` tokens."""
        contexts = np.array(self.contexts, np.float64)
        at = np.array([np.interp(float(context), contexts, column) for column in self.seconds.T])
        if context > contexts[-1] and len(contexts) > 1:
            slopes = (self.seconds[-1] - self.seconds[-2]) / (contexts[-1] - contexts[-2])
            at += np.maximum(slopes, 0.0) * (context - contexts[-1])
        return at

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        return asdict(self) | {"seconds": self.seconds.tolist()}

    @classmethod
    def stored(cls, data: Any) -> ForwardCosts | None:
        """``from_json``, but None for what ``to_json`` did not write."""
        try:
            return cls.from_json(data)
        except (KeyError, TypeError, ValueError):
            return None

    @classmethod
    def from_json(cls, data: Any) -> ForwardCosts:
        """Raises KeyError, TypeError or ValueError for what ``to_json`` did not write."""
        costs = cls(
            [int(context) for context in data["contexts"]],
            [int(count) for count in data["rows"]],
            np.array(data["seconds"], np.float64),
            int(data["shared_from"]),
            bool(data["was_busy"]),
            int(data["threads"]),
        )
        if costs.seconds.shape != (len(costs.contexts), len(costs.rows)):
            raise ValueError("costs of another shape than their grid")
        if not (costs.rows and costs.contexts and (costs.seconds > 0).all()):
            raise ValueError("costs without a grid, or not above zero")
        return costs
