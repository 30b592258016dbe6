"""How long forwards of llama.cpp take, at the numbers of rows where its kernels change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from accel.models.base import BatchKind, Cache, Model
from accel.models.batch import ForwardBatch, chain_batch
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.llama_cpp.context import PIECE

BUDGET_S = 2.0
WIDTHS = (1, 4, 8, 12, 16, 32)
"""Numbers of rows between which the library changes its kernels."""
_IN_TURN = (8, 4, 16, 12, 32)
"""The likeliest to be best come first: of a slow model only some are measured."""
_CONTEXT = 256


class RowCosts:
    """t(T) of a model, measured forward by forward, so that a request may come between. The least
    time of each number of rows counts: interference only adds."""

    def __init__(self, model: Model) -> None:
        """Times pieces of a prompt and forwards of one row, in a quarter of ``BUDGET_S``."""
        self._model = model
        self._cache: Cache = model.new_cache(_CONTEXT + 2 * max(WIDTHS))
        kind, widths = model.capability.kind, model.capability.widths
        self._is_plain = kind == BatchKind.PLAIN
        self._in_turn = [rows for rows in (*_IN_TURN, 1) if widths is None or rows in widths]
        self._committed = [] if kind == BatchKind.TREE else [0]
        """Of a forward: a state that runs over the text takes back all rows but one at most."""
        self._least: dict[int, float] = {}
        self._spent_s = 0.0
        step = 1 if self._is_plain else PIECE
        while self._cache.length < _CONTEXT and self._spent_s < BUDGET_S / 4:
            self._time(chain_batch(np.zeros(step, np.int32), step))
            self._cache.commit(range(step))
        for _ in range(2):
            self._time_rows(1)
        self._left = self._forwards()

    @property
    def costs(self) -> ForwardCosts:
        """As far as they are measured."""
        rows = sorted(self._least)
        seconds = np.array([[self._least[count] for count in rows]])
        return ForwardCosts([self._cache.length], rows, seconds)

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to time."""
        return self._is_plain

    def go_on(self, interrupted: Callable[[], bool] = lambda: False) -> bool:
        """Time forwards of all ``WIDTHS`` until ``BUDGET_S`` is spent, of one of several rows at
        the least. Whether that is done; False where it was interrupted."""
        return not any(interrupted() for _ in self._left)

    def _forwards(self) -> Iterator[None]:
        """Yields before each one is timed, twice of each number of rows: with the first the library
        plans for it."""
        while not self.is_finished and self._may_go_on():
            for rows in self._in_turn:
                if self._may_go_on():
                    for _ in range(2):
                        yield
                        self._time_rows(rows)

    def _may_go_on(self) -> bool:
        is_enough = len(self._least) >= 3 and self._spent_s >= BUDGET_S
        return not is_enough and self._cache.length < 2 * _CONTEXT

    def _time_rows(self, rows: int) -> None:
        self._time(chain_batch(np.arange(rows, dtype=np.int32) % 50, 0))
        self._cache.commit(self._committed)

    def _time(self, batch: ForwardBatch) -> None:
        began = time.perf_counter()
        self._model.forward(batch, [self._cache]).argmax()
        elapsed = time.perf_counter() - began
        self._spent_s += elapsed
        self._least[len(batch)] = min(self._least.get(len(batch), np.inf), elapsed)
