"""How much to draft: the interface of the two planners, and the plan of one request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from accel.models.costs.forward_costs import ForwardCosts
from accel.planning.acceptance_rate import AcceptanceRate
from accel.planning.cost_table import Company, CostTable
from accel.planning.draft_log import DraftLog


@dataclass(slots=True)
class DraftPlan:
    """What the drafts of one request go by. ``log``: where they are noted, if anybody reads it;
    ``company``: who shares its forwards."""

    costs: CostTable
    log: DraftLog | None = None
    company: Company = field(default_factory=Company)
    acceptance: AcceptanceRate = field(default_factory=AcceptanceRate)


class Planner(ABC):
    """Decides how much is drafted for one model in one dtype on one device. Shared by all
    requests."""

    def __init__(self) -> None:
        self.company = Company()
        """Who shares forwards now."""

    @property
    def notice(self) -> str:
        """What a user should know of how drafts are planned; empty where that is nothing."""
        return ""

    @property
    @abstractmethod
    def costs(self) -> CostTable:
        """What forwards cost outside of a request: for prompts, and for time limits."""

    @abstractmethod
    def begin(self, *, is_edit: bool = False) -> DraftPlan:
        """The plan of a new request."""

    def seconds(self, rows: int, context: int) -> float:
        """Time of a forward of ``rows`` after ``context`` tokens."""
        return self.costs.seconds(rows, context)

    def prefill_seconds(self, rows: int, context: int) -> float:
        """Time of a forward of ``rows`` rows of a prompt."""
        return self.costs.prefill_seconds(rows, context)

    def forget(self) -> None:  # noqa: B027
        """Drop what earlier requests taught, and write nothing to disk from now on."""

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Meanwhile requests of a kind are planned alike, whatever is learnt."""
        yield


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
