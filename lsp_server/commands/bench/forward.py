"""Milliseconds of one forward by its number of rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from accel.decoding.engine import Engine
    from accel.models.base import Cache, Model

ROWS = (1, 2, 4, 8, 16, 32, 64)
CONTEXT = 1024
LEAST_TURNS = 3
TIMES = 5
"""Forwards of each number of rows in a turn, after one that is not counted."""


def forward_table(figures: dict[str, dict[str, Any]], context: int) -> Table:
    """Return the figures of ``forward_ms`` by engine, as a table."""
    from lsp_server.commands.bench.report import table

    counts = dict.fromkeys(name for row in figures.values() for name in row if name.isdigit())
    columns = {"threads": "threads"} | {count: f"{count} rows" for count in counts}
    return table(f"ms of one forward after {context} tokens", figures, columns, "engine")


def forward_ms(engine: Engine, context: int, seconds: float) -> dict[str, Any]:
    """Return number of rows (as text) to milliseconds of a forward, ``threads``, and the ``type``
    of the weights. A figure is the least of several turns' medians: what else a machine does only
    adds."""
    model = engine.model
    rows = [count for count in ROWS if count + context < model.max_positions]
    if model.capability.widths is not None:
        rows = [count for count in rows if count in model.capability.widths] or [1]
    cache, least = behind(model, context), dict.fromkeys(rows, float("inf"))
    started, turns = time.perf_counter(), 0
    while turns < LEAST_TURNS or time.perf_counter() - started < seconds:
        for count in reversed(rows):
            times = sorted(forward_s(model, cache, count, TIMES + 1)[1:])
            least[count] = min(least[count], times[len(times) // 2])
        turns += 1
    return {
        "threads": engine.threads,
        "type": engine.dtype,
        **{str(count): 1e3 * least[count] for count in rows},
    }


def behind(model: Model, context: int) -> Cache:
    """Return a cache that holds ``tokens`` arbitrary tokens."""
    cache = model.new_cache(context + max(ROWS))
    fill(model, cache, context)
    return cache


def fill(model: Model, cache: Cache, count: int) -> None:
    """Have a cache hold ``count`` tokens, where its state does not run over the text."""
    import numpy as np

    from accel.models.base import BatchKind
    from accel.models.batch import chain_batch

    while cache.length < count and model.capability.kind > BatchKind.PLAIN:
        rows = min(max(ROWS), count - cache.length)
        model.forward(chain_batch(np.zeros(rows, np.int32), rows), [cache])
        cache.commit(range(rows))


def forward_s(model: Model, cache: Cache, rows: int, times: int) -> list[float]:
    """Return seconds of forwards of a chain of ``rows`` after a cache, on the wall's clock. As in
    decoding, logits are made for the rows that a walk from the first may come to."""
    import numpy as np

    from accel.draft_tree import DraftTree, Source
    from accel.models.batch import tree_batch

    rng, seconds = np.random.default_rng(0), []
    for _ in range(times):
        tokens = rng.integers(0, model.vocabulary_size, rows, np.int32)
        batch = tree_batch(tokens[:1], DraftTree.chain(tokens[1:], Source.MODEL))
        started = time.perf_counter()
        assert model.forward(batch, [cache]).argmax()[0] >= 0
        seconds.append(time.perf_counter() - started)
    return seconds
