"""How many rows every forward has, where a model's numbers depend on that."""

from __future__ import annotations

from math import sqrt

from accel.planning.cost_model import ForwardCosts

_COMPLETION_TOKENS = {1: 1.0, 4: 1.9, 8: 2.25, 12: 2.4, 16: 2.5, 32: 2.65}
_EDIT_TOKENS = {1: 1.0, 4: 3.2, 8: 5.4, 12: 6.7, 16: 7.8, 32: 10.0}
"""Tokens that a forward of so many rows brought in replays of completions and of edits."""


def fixed_width(costs: ForwardCosts) -> int:
    """The number of rows with the most tokens a second, in the geometric mean of completions and
    edits; 1 where drafts do not pay. costs: of these numbers of rows."""
    return max(
        (rows for rows in costs.rows if rows in _COMPLETION_TOKENS),
        key=lambda rows: _rate(costs, rows),
    )


def typical_rate(costs: ForwardCosts) -> float:
    """Tokens a second with the best of some numbers of rows, as above. costs: of any numbers."""
    most = max(costs.rows)
    return max(_rate(costs, rows) for rows in _COMPLETION_TOKENS if rows <= most)


def _rate(costs: ForwardCosts, rows: int) -> float:
    seconds = costs.by_rows(costs.contexts[0], max(rows, *costs.rows))
    return sqrt(_COMPLETION_TOKENS[rows] * _EDIT_TOKENS[rows]) / float(seconds[rows])
