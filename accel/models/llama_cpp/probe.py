"""A probe of the batches that llama.cpp computes right for a model."""

from __future__ import annotations

import numpy as np

from accel.draft_tree import DraftTree, Source
from accel.errors import BackendDied, OutOfMemory
from accel.models.base import BatchKind, Model
from accel.models.batch import chain_batch, tree_batch

_TOLERANCE = 0.05
"""Of the largest logit: kernels for other numbers of rows round otherwise."""
_BEFORE = np.arange(1, 11, dtype=np.int32)
_PENDING, _WRONG, _RIGHT, _NEXT = (np.array([token], np.int32) for token in (11, 12, 13, 14))


def kind_of(model: Model) -> BatchKind:
    """Trees where a tree is computed as its path alone would be, chains where what is rejected of
    one leaves no trace, else one token after another."""
    for kind in (BatchKind.TREE, BatchKind.CHAIN):
        if kind <= model.capability.kind and _agrees(model, kind):
            return kind
    return BatchKind.PLAIN


def _agrees(model: Model, kind: BatchKind) -> bool:
    if kind == BatchKind.TREE:
        tree = DraftTree.chain(np.concatenate([_WRONG, _RIGHT]), Source.MODEL)
        tree.parents[:] = -1
        path = [0, 2]
    else:
        tree = DraftTree.chain(np.concatenate([_RIGHT, _WRONG]), Source.MODEL)
        path = [0, 1]
    try:
        cache = model.new_cache(32)
        model.forward(chain_batch(_BEFORE, len(_BEFORE)), [cache])
        cache.commit(range(len(_BEFORE)))
        model.forward(tree_batch(_PENDING, tree), [cache])
        cache.commit(path)
        logits = model.forward(chain_batch(_NEXT, 0), [cache]).row(0)
        text = np.concatenate([_BEFORE, _PENDING, _RIGHT, _NEXT])
        expected = model.forward(chain_batch(text, len(text) - 1), [model.new_cache(32)]).row(0)
    except (BackendDied, OutOfMemory):
        return False
    return bool(np.abs(logits - expected).max() < _TOLERANCE * np.abs(expected).max())
