"""Times of forwards by rows and context, each the least of many."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from accel.draft_tree import DraftTree, Source
from accel.models.base import Model
from accel.models.batch import tree_batch
from accel.models.costs.forward_costs import ForwardCosts
from lsp_server.commands.bench.forward import fill


def timed_costs(
    model: Model, seconds: float, rows: Sequence[int], contexts: Sequence[int]
) -> ForwardCosts:
    """Time forwards of ``model`` by its ``threads`` for about ``seconds``: rounds over the grid."""
    least = np.full((len(contexts), len(rows)), np.inf)
    caches = [model.new_cache(context + max(rows)) for context in contexts]
    for cache, context in zip(caches, contexts, strict=True):
        fill(model, cache, context)
    until = time.perf_counter() + seconds
    while not np.isfinite(least).all() or time.perf_counter() < until:
        for cache, found in zip(caches, least, strict=True):
            for column, count in reversed([*enumerate(rows)]):
                tree = DraftTree.chain(np.arange(1, count, dtype=np.int32) % 50, Source.MODEL)
                tree.parents = (np.arange(count - 1, dtype=np.int32) - 2).clip(-1)
                batch = tree_batch(np.zeros(1, np.int32), tree)
                for _ in range(2):
                    started = time.perf_counter()
                    assert model.forward(batch, [cache]).argmax()[0] >= 0
                    found[column] = min(found[column], time.perf_counter() - started)
    return ForwardCosts(list(contexts), list(rows), least)
