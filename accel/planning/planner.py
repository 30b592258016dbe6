"""The interface of the two planners of drafts, and the plan of one request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from accel.models.costs.forward_costs import ForwardCosts
from accel.planning.acceptance_rate import AcceptanceRate
from accel.planning.cost_table import Company, CostTable


@dataclass(slots=True)
class DraftPlan:
    """Costs and rates that size the drafts of one request. ``company``: requests that share its
    forwards."""

    costs: CostTable
    company: Company = field(default_factory=Company)
    acceptance: AcceptanceRate = field(default_factory=AcceptanceRate)


class Planner(ABC):
    """A planner of the drafts of one model in one dtype on one device, which all requests share."""

    def __init__(self) -> None:
        self.company = Company()
        """Requests that share forwards now."""

    @property
    def notice(self) -> str:
        """A notice about the drafts for users; empty where drafts are made as usual."""
        return ""

    @property
    @abstractmethod
    def costs(self) -> CostTable:
        """Costs of forwards outside of a request: for prompts, and for time limits."""

    @abstractmethod
    def begin(self, *, is_edit: bool = False) -> DraftPlan:
        """Return the plan of a new request."""

    def seconds(self, rows: int, context: int) -> float:
        """Return the seconds of a forward of ``rows`` rows after ``context`` tokens."""
        return self.costs.seconds(rows, context)

    def prefill_seconds(self, rows: int, context: int) -> float:
        """Return the seconds of a forward of ``rows`` rows of a prompt."""
        return self.costs.prefill_seconds(rows, context)


class AdaptivePlanner(Planner):
    """Trees of any size: each as large as pays, by the acceptance of its own request."""

    def __init__(
        self, costs: ForwardCosts, limit: int = 320, *, widths: tuple[int, ...] | None = None
    ) -> None:
        """See ``CostTable``."""
        super().__init__()
        self._costs = CostTable(costs, limit, widths=widths)

    @property
    def costs(self) -> CostTable:
        return self._costs

    def begin(self, *, is_edit: bool = False) -> DraftPlan:
        return DraftPlan(self._costs, company=self.company)
