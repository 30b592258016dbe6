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
    seconds = costs.by_rows(costs.contexts[0], max(costs.rows))

    def rate(rows: int) -> float:
        return sqrt(_COMPLETION_TOKENS[rows] * _EDIT_TOKENS[rows]) / float(seconds[rows])

    return max((rows for rows in costs.rows if rows in _COMPLETION_TOKENS), key=rate)
