"""Tokens a second by what forwards cost, with the acceptance that drafts had in replays."""

from __future__ import annotations

from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.step_overheads import DRAFTED_STEP_S, STEP_S

COMPLETIONS, EDITS = "completions", "edits"
TYPICAL_TOKENS = {
    COMPLETIONS: {1: 1.0, 4: 1.9, 8: 2.25, 12: 2.4, 16: 2.5, 32: 2.65},
    EDITS: {1: 1.0, 4: 3.2, 8: 5.4, 12: 6.7, 16: 7.8, 32: 10.0},
}
"""Tokens that a forward yielded in replays, by its batch size."""


def tokens_per_s(costs: ForwardCosts, tokens: float, rows: int) -> float:
    """Where a forward of ``rows`` yields so many tokens."""
    seconds = costs.by_rows(costs.contexts[0], max(rows, *costs.rows))
    return tokens / (float(seconds[rows]) + (DRAFTED_STEP_S if rows > 1 else STEP_S))
