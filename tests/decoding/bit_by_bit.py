"""Results of a compiled forward, compared to the last bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tiny_models import numbers

from accel.draft_tree import DraftTree, TokenArray
from accel.models.batch import ForwardBatch, chain_batch, tree_batch
from accel.models.cpu.cache import CompiledCache
from accel.models.cpu.llama import CompiledLlama


def computed(
    model: CompiledLlama, text: ForwardBatch, rows: ForwardBatch
) -> tuple[NDArray[np.float32], CompiledCache]:
    """The logits of ``rows`` behind a text, float32 [rows, vocabulary], and the cache of both."""
    cache = model.new_cache(128)
    assert isinstance(cache, CompiledCache)
    model.forward(text, [cache])
    cache.commit(list(range(len(text))))
    return numbers(model, rows, cache), cache


def check_nodes(
    model: CompiledLlama, text: TokenArray, tree: DraftTree, room: int, seed: int
) -> None:
    """The nodes on the way to a tree's last one have the logits of plain decoding, and so has the
    row behind that branch, once it is kept. ``room``: rows of a new cache."""
    path, node = [], len(tree) - 1
    while node >= 0:
        path.insert(0, node)
        node = int(tree.parents[node])
    caches = [model.new_cache(room) for _ in range(2)]
    for cache in caches:
        model.forward(chain_batch(text[:-1], 1), [cache])
        cache.commit(list(range(len(text) - 1)))
    drafted = numbers(model, tree_batch(text[-1:], tree), caches[0])
    caches[0].commit([0, *(1 + node for node in path)])
    branch = [int(text[-1]), *tree.tokens[path].tolist()]
    for node, token in zip([-1, *path], branch, strict=True):
        plain = numbers(model, chain_batch(np.array([token], np.int32), 0), caches[1])
        caches[1].commit([0])
        assert np.array_equal(drafted[node + 1], plain[0]), f"seed {seed}, node {node}"
    last = chain_batch(np.array([7], np.int32), 0)
    assert np.array_equal(*(numbers(model, last, cache) for cache in caches)), f"seed {seed}"
