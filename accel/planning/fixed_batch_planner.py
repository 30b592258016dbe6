"""One batch size for all forwards of a request, for models whose numbers depend on it."""

from __future__ import annotations

from functools import partial
from typing import Any

from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.costs.step_overheads import DRAFTED_STEP_S, STEP_S
from accel.planning.cost_table import CostTable
from accel.planning.draft_log import DraftLog
from accel.planning.planner import DraftPlan, Planner
from accel.planning.tokens_per_forward import TokensPerForward

COMPLETIONS, EDITS = "completions", "edits"
TYPICAL_TOKENS = {
    COMPLETIONS: {1: 1.0, 4: 1.9, 8: 2.25, 12: 2.4, 16: 2.5, 32: 2.65},
    EDITS: {1: 1.0, 4: 3.2, 8: 5.4, 12: 6.7, 16: 7.8, 32: 10.0},
}
"""Tokens that a forward yielded in replays, by its batch size."""

_CLEARLY = 1.03
"""Another batch size is taken where it is so much faster: with it the same request may get another
text, where two tokens are nearly as likely."""
_KNOWN_TOKENS = 2000
_SELDOM = 8
"""Where nothing has paid for so many tokens, one in so many requests is drafted for the log alone:
drafts that nobody verifies cost something. A larger one than is verified costs next to nothing."""
_SAVE_EVERY = 8
"""Logged requests between two writes to the store."""
_NAME = "tokens per forward"


class FixedBatchPlanner(Planner):
    """Chooses the batch size of a request, for completions and for edits: the one with the most
    tokens a second, by measured costs and by what drafts of earlier requests gained."""

    def __init__(self, costs: ForwardCosts, store: ProfileStore | None = None) -> None:
        """``store``: where what is learnt is saved, if it is."""
        super().__init__()
        self._measured, self._store = costs, store
        self._sizes = [rows for rows in TYPICAL_TOKENS[COMPLETIONS] if rows in costs.rows]
        self._tables: dict[int, CostTable] = {}
        self._requests = self._unsaved = 0
        self._start_from(store.get(_NAME) if store is not None else None)
        self._costs = self._table(self.chosen[COMPLETIONS])

    def _start_from(self, saved: Any) -> None:
        self._tokens = {
            kind: TokensPerForward({rows: typical[rows] for rows in self._sizes})
            for kind, typical in TYPICAL_TOKENS.items()
        }
        for kind, tokens in self._tokens.items():
            tokens.restore(saved.get(kind) if isinstance(saved, dict) else None)
        self.chosen = {kind: self._fastest(kind) for kind in TYPICAL_TOKENS}
        """Batch sizes by kind of text; 1 where drafts do not pay."""

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
        """Return the plan of a new request, whose batch size never changes. Drafts that are not
        verified are logged for few requests."""
        kind = EDITS if is_edit else COMPLETIONS
        rows, tokens = self.chosen[kind], self._tokens[kind]
        self._requests += 1
        is_known = rows == 1 and tokens.learnt > _KNOWN_TOKENS
        if len(self._sizes) < 2 or (is_known and self._requests % _SELDOM):
            return DraftPlan(self._table(rows))
        return DraftPlan(self._table(rows), DraftLog(self._sizes, partial(self._learn, kind)))

    def _table(self, rows: int) -> CostTable:
        if rows not in self._tables:
            self._tables[rows] = CostTable(self._measured, rows, widths=(rows,))
        return self._tables[rows]

    def _learn(self, kind: str, tokens: int, forwards: dict[int, float]) -> None:
        self._tokens[kind].learn(tokens, forwards)
        self._choose()
        self._unsaved += 1
        if self._store is not None and self._unsaved >= _SAVE_EVERY:
            self._unsaved = 0
            self._store.put(_NAME, {kind: each.to_json() for kind, each in self._tokens.items()})

    def _choose(self) -> None:
        for kind, rows in self.chosen.items():
            fastest = self._fastest(kind)
            if self._rate(kind, fastest) > _CLEARLY * self._rate(kind, rows):
                self.chosen[kind] = fastest

    def _fastest(self, kind: str) -> int:
        return max(self._sizes, key=partial(self._rate, kind))

    def _rate(self, kind: str, rows: int) -> float:
        seconds = self._measured.by_rows(self._measured.contexts[0], rows)
        step_s = DRAFTED_STEP_S if rows > 1 else STEP_S
        return self._tokens[kind][rows] / (float(seconds[rows]) + step_s)
