"""How many rows the forwards of a request have, where a model's numbers depend on that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import sqrt
from typing import Any

from accel.planning.cost_model import ForwardCosts
from accel.planning.draft_log import DraftLog
from accel.planning.overheads import DRAFTED_STEP_S, STEP_S
from accel.planning.planner import Planner
from accel.planning.profile_store import ProfileStore
from accel.planning.tokens_per_forward import TokensPerForward

COMPLETIONS, EDITS = "completions", "edits"
_TYPICAL = {
    COMPLETIONS: {1: 1.0, 4: 1.9, 8: 2.25, 12: 2.4, 16: 2.5, 32: 2.65},
    EDITS: {1: 1.0, 4: 3.2, 8: 5.4, 12: 6.7, 16: 7.8, 32: 10.0},
}
"""Tokens that a forward of so many rows brought in replays."""

_CLEARLY = 1.03
"""Another number of rows is taken where it is so much faster: with it the same request may get
another text, where two tokens are nearly as likely."""
_KNOWN_TOKENS = 2000
_SELDOM = 8
"""Where nothing is drafted for so many tokens, one in so many requests is looked at: drafts that
nobody verifies cost something. A larger one than is verified costs next to nothing."""
_KEPT_EVERY = 8
"""Requests that are looked at between two writes to the store."""
_NAME = "tokens per forward"


class FixedWidths:
    """Chooses the rows of all forwards of a request, for completions and for edits: those with the
    most tokens a second, by what forwards cost and by what drafts of earlier requests brought."""

    def __init__(self, costs: ForwardCosts, store: ProfileStore | None = None) -> None:
        """``store``: where what was learnt is kept, if it is."""
        self._costs, self._store = costs, store
        self._widths = [rows for rows in _TYPICAL[COMPLETIONS] if rows in costs.rows]
        self._planners: dict[int, Planner] = {}
        self._is_held = False
        self._requests = self._unkept = 0
        self._go_by(store.get(_NAME) if store is not None else None)

    def _go_by(self, kept: Any) -> None:
        self._tokens = {
            kind: TokensPerForward({rows: typical[rows] for rows in self._widths})
            for kind, typical in _TYPICAL.items()
        }
        for kind, tokens in self._tokens.items():
            tokens.restore(kept.get(kind) if isinstance(kept, dict) else None)
        self.chosen = {kind: self._fastest(kind) for kind in _TYPICAL}
        """Rows by kind of text; 1 where drafts do not pay."""

    @property
    def has_choice(self) -> bool:
        """Whether it is known what forwards of several numbers of rows cost."""
        return len(self._widths) > 1

    def forget(self) -> None:
        """Go by what is typical again, and keep nothing from now on."""
        self._store = None
        self._go_by(None)

    def begin(self, *, is_edit: bool) -> tuple[Planner, DraftLog | None]:
        """What plans a new request, whose width never changes, and where its drafts are noted; None
        where nobody looks at them."""
        kind = EDITS if is_edit else COMPLETIONS
        rows, tokens = self.chosen[kind], self._tokens[kind]
        planner = self._planners.get(rows)
        if planner is None:
            planner = self._planners[rows] = Planner(self._costs, rows, widths=(rows,))
        self._requests += 1
        is_known = rows == 1 and tokens.learnt > _KNOWN_TOKENS
        if not self.has_choice or (is_known and self._requests % _SELDOM):
            return planner, None
        return planner, DraftLog(self._widths, partial(self._learn, kind))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile all requests have one width, whatever is learnt."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self._choose()

    def _learn(self, kind: str, tokens: int, forwards: dict[int, float]) -> None:
        self._tokens[kind].learn(tokens, forwards)
        if not self._is_held:
            self._choose()
        self._unkept += 1
        if self._store is not None and self._unkept >= _KEPT_EVERY:
            self._unkept = 0
            self._store.put(_NAME, {kind: each.to_json() for kind, each in self._tokens.items()})

    def _choose(self) -> None:
        for kind, rows in self.chosen.items():
            fastest = self._fastest(kind)
            if self._rate(kind, fastest) > _CLEARLY * self._rate(kind, rows):
                self.chosen[kind] = fastest

    def _fastest(self, kind: str) -> int:
        return max(self._widths, key=partial(self._rate, kind))

    def _rate(self, kind: str, rows: int) -> float:
        return _rate(self._costs, self._tokens[kind][rows], rows)


def typical_rate(costs: ForwardCosts) -> float:
    """Tokens a second with the best numbers of rows, in the geometric mean of completions and
    edits. costs: of any numbers."""
    most = max(costs.rows)
    completions, edits = (
        max(_rate(costs, tokens, rows) for rows, tokens in typical.items() if rows <= most)
        for typical in _TYPICAL.values()
    )
    return sqrt(completions * edits)


def _rate(costs: ForwardCosts, tokens: float, rows: int) -> float:
    seconds = costs.by_rows(costs.contexts[0], max(rows, *costs.rows))
    return tokens / (float(seconds[rows]) + (DRAFTED_STEP_S if rows > 1 else STEP_S))
