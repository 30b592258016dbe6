"""Attention in splits that are merged, against softmax over each row's own path in fp64."""

from __future__ import annotations

import conformance
import numpy as np
import pytest
import torch
from torch import Tensor

from accel.models.batch import ForwardBatch, tree_batch
from accel.models.cuda.attention import attend
from accel.models.cuda.attention_plan import AttentionPlan, Splits
from accel.models.cuda.kv_pool import KVPool, PooledCache
from accel.models.cuda.pooled_llama import joined

PLACES, WIDTH, SCALE = 1500, 40, 0.3


def slow(query: Tensor, kv: Tensor, path: list[int]) -> Tensor:
    """[heads, D] of one row [heads, D] over the places of its path."""
    groups = query.shape[0] // kv.shape[2]
    keys, values = (each.repeat_interleave(groups, 1) for each in kv[path].double().unbind(1))
    scores = torch.einsum("hd,shd->hs", query.double(), keys) * SCALE
    return torch.einsum("hs,shd->hd", scores.softmax(-1), values)


def paths_of(batch: ForwardBatch, cache: PooledCache) -> list[list[int]]:
    paths: list[list[int]] = []
    for row, parent in enumerate(batch.parents.tolist()):
        above = paths[parent] if parent >= 0 else cache.places[: cache.length].tolist()
        paths.append([*above, int(cache.places[cache.length + row])])
    return paths


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim"), [(4, 2, 16), (9, 3, 64), (14, 2, 32), (3, 3, 24)]
)
def test_rows_of_random_trees_attend_their_paths(heads: int, kv_heads: int, head_dim: int) -> None:
    """Several requests, each behind a text of any length, in one forward or cut into two."""
    random, splits = np.random.default_rng(heads), Splits(64, int(32 // heads) or 1)
    for _ in range(12):
        pool = KVPool((1, kv_heads, head_dim), PLACES, torch.zeros(1))
        kv = pool.layers[0].normal_()
        plan = AttentionPlan(splits, WIDTH, PLACES, PLACES)
        pooled, paths = list[tuple[ForwardBatch, PooledCache]](), list[list[int]]()
        for _ in range(int(random.integers(1, 5))):
            cache = PooledCache(pool)
            tree = conformance.random_tree(random, int(random.integers(0, 10)))
            if random.random() < 0.4:
                tree.parents[:] = np.arange(-1, len(tree) - 1)
            batch = tree_batch(np.zeros(int(random.integers(1, 4)), np.int32), tree)
            cache.pretend(int(random.integers(0, 200)))
            cache.reserve(len(batch))
            pooled.append((batch, cache))
            paths += paths_of(batch, cache)
        query = torch.randn(WIDTH, heads, head_dim)
        middle = int(random.integers(0, len(paths)))
        for first in (0, middle):
            behind = min(len(paths), first + WIDTH)
            plan.fill(joined(pooled), first, behind)
            numbers = torch.from_numpy(plan.numbers)
            found = attend(query, kv, numbers, splits, SCALE)
            for row, path in enumerate(paths[first:behind]):
                assert (found[row] - slow(query[row], kv, path)).abs().max() < 1e-4
            assert not found[behind - first :].any()


def test_accepted_rows_stay_where_they_are() -> None:
    """500 random commits and trims equal a list of places, none of which anybody else gets."""
    random = np.random.default_rng(1)
    pool = KVPool((1, 1, 1), PLACES, torch.zeros(1))
    cache, other, expected = PooledCache(pool), PooledCache(pool), list[int]()
    other.reserve(300)
    for _ in range(500):
        count = int(random.integers(1, 12))
        cache.reserve(count)
        rows = cache.places[cache.length :][:count].tolist()
        kept = sorted(random.choice(count, random.integers(0, count + 1), replace=False).tolist())
        cache.commit(kept)
        expected += [rows[row] for row in kept]
        if len(expected) > 900 or random.random() < 0.1:
            expected = expected[: int(random.integers(0, len(expected) + 1))]
            cache.trim(len(expected))
        assert cache.places[: cache.length].tolist() == expected
    assert len({*cache.places.tolist(), *other.places.tolist(), 0}) == 1 + len(cache.places) + 320
    assert pool.left == PLACES - 1 - 320 - len(cache.places)
