"""Costs of a model's forwards before any was run for a request: stored, or by a forward or two."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from accel.models.base import BatchKind, Cache, Model
from accel.models.batch import chain_batch
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.learnt_costs import OPTIMISM, LearntCosts
from accel.models.costs.profile_store import ProfileStore
from operating_system.machine import cores

ROWS = (1, 2, 3, 4, 5, 6, 8, 9, 12, 13, 16, 17, 24, 32, 48, 64, 96, 128, 256)
"""Kernels compute up to four or eight rows for nearly the price of one: the first row of the next
chunk is a step up, which a line between cells would hide."""
# Measure with `python -m tests.benchmarks forward --model FILE --threads 1`.
TYPICAL_COSTS = {1: 1.0, 8: 1.7, 64: 9.8, 256: 39.0}
"""Of forwards by rows on a CPU, in those of one row: of a model of 135 million weights in eight
bits, by one thread with AVX2."""
CONTEXTS = {256: 1.0, 2048: 1.25, 8192: 2.0}
"""Contexts of learnt costs, and how much longer forwards typically take after them."""
MANY_ROWS = 64
"""Rows of a forward that is timed where no typical costs are known: not on a CPU."""


def learn_costs(
    model: Model, store: ProfileStore, name: str, threads: Sequence[int] = (1,)
) -> ForwardCosts:
    """Have ``model`` learn its costs, by one of ``threads`` in each forward, and return them, which
    change as they are learnt. They begin with those in ``store`` by ``name``."""
    key = f"costs/{name}"
    # Another batch size may give another text, so none is tried for its costs alone.
    optimism = 0.0 if model.capability.fixed_batch else OPTIMISM
    learnt = LearntCosts.stored(store.get(key), threads, optimism=optimism)
    if learnt is None:
        learnt = LearntCosts(first_costs(model), threads, cores=cores(), optimism=optimism)
        store.put(key, learnt.to_json())
    model.learnt, learnt.save = learnt, lambda: store.put(key, learnt.to_json())
    return learnt.costs


def numbers_of_threads(most: int) -> list[int]:
    """Return 1, 2, 4, 8 and so on, and ``most``."""
    return [*(1 << power for power in range(most.bit_length()) if 1 << power < most), most]


def first_costs(model: Model) -> ForwardCosts:
    """Return what forwards of ``model`` may cost, by the second of two forwards of one row, and on
    a device whose typical costs by rows are unknown, by one of many rows."""
    widths = model.capability.widths
    rows = sorted({*(widths or ROWS), *(count for count in ROWS if count >= MANY_ROWS)})
    rows = [count for count in rows if count < model.max_positions] or rows[:1]
    contexts = [count for count in CONTEXTS if count < model.max_positions] or [min(CONTEXTS)]
    cache = model.new_cache(MANY_ROWS + 2)
    one_s = min(_seconds(model, cache, 1) for _ in range(2))
    shape = np.interp(rows, [*TYPICAL_COSTS], [*TYPICAL_COSTS.values()])
    many = max((count for count in rows if count <= MANY_ROWS), default=1)
    if model.device != "cpu" and many > 1 and model.capability.kind > BatchKind.PLAIN:
        many_s = min(_seconds(model, cache, many) for _ in range(2))
        shape = 1 + max(many_s / one_s - 1, 0.0) * (np.array(rows) - 1) / (many - 1)
    return ForwardCosts(
        contexts, rows, one_s * np.array([[CONTEXTS[count]] for count in contexts]) * shape
    )


def _seconds(model: Model, cache: Cache, rows: int) -> float:
    """Return the seconds of a forward of ``rows`` rows."""
    batch = chain_batch(np.arange(rows, dtype=np.int32) % 50, 0)
    started = time.perf_counter()
    assert model.forward(batch, [cache]).argmax()[0] >= 0
    elapsed = time.perf_counter() - started
    if model.capability.kind < BatchKind.TREE:
        # A state that runs over the text takes back all rows but the first.
        cache.commit([0])
    return elapsed
