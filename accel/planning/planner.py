"""The planners of drafts, and the plan of one request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial

from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.step_overheads import DRAFTED_STEP_S, STEP_S
from accel.planning.acceptance_rate import AcceptanceRate
from accel.planning.cost_table import Company, CostTable

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


@dataclass(slots=True)
class DraftPlan:
    """Costs and rates that size the drafts of one request. ``company``: requests that share its
    forwards."""

    costs: CostTable
    company: Company = field(default_factory=Company)
    acceptance: AcceptanceRate = field(default_factory=AcceptanceRate)


class Planner(ABC):
    """A planner of the drafts of one model in one dtype on one device, which all requests share."""

    costs: CostTable
    """Costs of forwards outside of a request: for prompts, and for time limits."""

    def __init__(self) -> None:
        self.company = Company()
        """Requests that share forwards now."""

    @property
    def notice(self) -> str:
        """A notice about the drafts for users; empty where drafts are made as usual."""
        return ""

    @abstractmethod
    def begin(self, *, is_edit: bool = False) -> DraftPlan:
        """Return the plan of a new request."""


class AdaptivePlanner(Planner):
    """Trees of any size: each as large as pays, by the acceptance of its own request."""

    def __init__(
        self, costs: ForwardCosts, limit: int = 320, *, widths: tuple[int, ...] | None = None
    ) -> None:
        """See ``CostTable``."""
        super().__init__()
        self.costs = CostTable(costs, limit, widths=widths)

    def begin(self, *, is_edit: bool = False) -> DraftPlan:
        return DraftPlan(self.costs, company=self.company)


class FixedBatchPlanner(Planner):
    """One batch size for all forwards of a request, for models whose numbers depend on it: the one,
    for completions and for edits, with the most tokens a second, by the costs of forwards and by
    the tokens that they typically yield."""

    def __init__(self, costs: ForwardCosts) -> None:
        super().__init__()
        self._measured = costs
        self._sizes = [rows for rows in TYPICAL_TOKENS[COMPLETIONS] if rows in costs.rows]
        self._tables = {rows: CostTable(costs, rows, widths=(rows,)) for rows in self._sizes}
        self.chosen = {kind: self._fastest(kind) for kind in TYPICAL_TOKENS}
        """Batch sizes by kind of text; 1 where drafts do not pay."""
        self.costs = self._tables[self.chosen[COMPLETIONS]]

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
