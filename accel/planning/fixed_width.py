"""How many rows the forwards of a request have, where a model's numbers depend on that."""

from __future__ import annotations

from math import sqrt

from accel.planning.cost_model import ForwardCosts

_COMPLETION_TOKENS = {1: 1.0, 4: 1.9, 8: 2.25, 12: 2.4, 16: 2.5, 32: 2.65}
_EDIT_TOKENS = {1: 1.0, 4: 3.2, 8: 5.4, 12: 6.7, 16: 7.8, 32: 10.0}
"""Tokens that a forward of so many rows brought in replays of completions and of edits."""


def fixed_widths(costs: ForwardCosts) -> tuple[int, int]:
    """The numbers of rows with the most tokens a second, for completions and for edits; 1 where
    drafts do not pay. costs: of these numbers of rows."""
    completions, edits = (
        max((rows for rows in costs.rows if rows in tokens), key=lambda n: _rate(costs, tokens, n))
        for tokens in (_COMPLETION_TOKENS, _EDIT_TOKENS)
    )
    return completions, edits


def typical_rate(costs: ForwardCosts) -> float:
    """Tokens a second with the best numbers of rows, in the geometric mean of completions and
    edits. costs: of any numbers."""
    most = max(costs.rows)
    completions, edits = (
        max(_rate(costs, tokens, rows) for rows in tokens if rows <= most)
        for tokens in (_COMPLETION_TOKENS, _EDIT_TOKENS)
    )
    return sqrt(completions * edits)


def _rate(costs: ForwardCosts, tokens: dict[int, float], rows: int) -> float:
    seconds = costs.by_rows(costs.contexts[0], max(rows, *costs.rows))
    return tokens[rows] / float(seconds[rows])
