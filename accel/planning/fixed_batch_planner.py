"""One batch size for all forwards of a request, for models whose numbers depend on it."""

from __future__ import annotations

from functools import partial

from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.step_overheads import DRAFTED_STEP_S, STEP_S
from accel.planning.cost_table import CostTable
from accel.planning.planner import DraftPlan, Planner

COMPLETIONS, EDITS = "completions", "edits"
# Measure with `python -m tests.benchmarks completion --max-nodes ROWS`, and `edit`, by replay.
TYPICAL_TOKENS = {
    COMPLETIONS: {1: 1.0, 4: 1.9, 8: 2.25, 12: 2.4, 16: 2.5, 32: 2.65},
    EDITS: {1: 1.0, 4: 3.2, 8: 5.4, 12: 6.7, 16: 7.8, 32: 10.0},
}
"""Tokens that a forward yielded in replays, by its batch size."""
_CLEARLY = 1.03
"""Another batch size is taken where it is faster by this factor: with it the same request may get
another text, where two tokens are nearly as likely."""


class FixedBatchPlanner(Planner):
    """The batch size of a request, for completions and for edits: the one with the most tokens a
    second, by the costs of forwards and by the tokens that they typically yield."""

    def __init__(self, costs: ForwardCosts) -> None:
        super().__init__()
        self._measured = costs
        self._sizes = [rows for rows in TYPICAL_TOKENS[COMPLETIONS] if rows in costs.rows]
        self._tables = {rows: CostTable(costs, rows, widths=(rows,)) for rows in self._sizes}
        self.chosen = {kind: self._fastest(kind) for kind in TYPICAL_TOKENS}
        """Batch sizes by kind of text; 1 where drafts do not pay."""
        self._costs = self._tables[self.chosen[COMPLETIONS]]

    @property
    def costs(self) -> CostTable:
        return self._costs

    @property
    def notice(self) -> str:
        """See ``Planner.notice``."""
        undrafted = [kind for kind, rows in self.chosen.items() if rows == 1]
        if not undrafted or len(self._sizes) < 2:
            return ""
        return (
            f"it computes {' and '.join(undrafted)} without drafts: forwards of several rows take "
            f"too long here (by rows, {self._measured})"
        )

    def begin(self, *, is_edit: bool = False) -> DraftPlan:
        """Return the plan of a new request, whose batch size never changes."""
        kind = EDITS if is_edit else COMPLETIONS
        self._choose(kind)
        return DraftPlan(self._tables[self.chosen[kind]])

    def _choose(self, kind: str) -> None:
        fastest = self._fastest(kind)
        if self._rate(kind, fastest) > _CLEARLY * self._rate(kind, self.chosen[kind]):
            self.chosen[kind] = fastest

    def _fastest(self, kind: str) -> int:
        return max(self._sizes, key=partial(self._rate, kind))

    def _rate(self, kind: str, rows: int) -> float:
        """Return the tokens a second that forwards of ``rows`` rows typically yield."""
        seconds = self._measured.by_rows(self._measured.contexts[0], rows)
        step_s = DRAFTED_STEP_S if rows > 1 else STEP_S
        return TYPICAL_TOKENS[kind][rows] / (float(seconds[rows]) + step_s)
