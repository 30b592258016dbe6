"""How long forwards of llama.cpp take, at the numbers of rows where its kernels change."""

from __future__ import annotations

import time

import numpy as np

from accel.batch import chain_batch
from accel.models.base import BatchKind, Model
from accel.models.llama_cpp.context import PIECE
from accel.planning.cost_model import ForwardCosts

BUDGET_S = 2.0
WIDTHS = (1, 4, 8, 12, 16, 32)
"""Numbers of rows between which the library changes its kernels."""
_IN_TURN = (1, 8, 4, 16, 12, 32)
"""The likeliest to be best come first: of a slow model only some are measured."""
_CONTEXT = 256


def row_costs(model: Model) -> ForwardCosts:
    """Time forwards for ``BUDGET_S``, and at the least one of one row and one of several. The least
    of each is taken: interference only adds. A piece of a prompt is timed, too."""
    started = time.perf_counter()
    cache = model.new_cache(_CONTEXT + max(WIDTHS))
    is_plain = model.capability.kind == BatchKind.PLAIN
    step = 1 if is_plain else PIECE
    least: dict[int, float] = {}
    while cache.length < _CONTEXT and time.perf_counter() - started < BUDGET_S / 4:
        began = time.perf_counter()
        model.forward(chain_batch(np.zeros(step, np.int32), step), [cache])
        least[step] = min(least.get(step, np.inf), time.perf_counter() - began)
        cache.commit(range(step))
    context = cache.length
    widths = (1,) if is_plain else _IN_TURN

    def measure(rows: int) -> None:
        batch = chain_batch(np.arange(rows, dtype=np.int32) % 50, 0)
        began = time.perf_counter()
        model.forward(batch, [cache]).argmax()
        elapsed = time.perf_counter() - began
        least[rows] = min(least.get(rows, np.inf), elapsed)
        cache.commit([0] if is_plain else [])

    for rows in widths[:2]:
        measure(rows)
    while time.perf_counter() - started < BUDGET_S:
        for rows in widths:
            if time.perf_counter() - started < BUDGET_S:
                # The first makes the library plan for this number.
                measure(rows)
                measure(rows)
        if is_plain and cache.length > _CONTEXT:
            break
    measured = sorted(least)
    return ForwardCosts([context], measured, np.array([[least[rows] for rows in measured]]))
