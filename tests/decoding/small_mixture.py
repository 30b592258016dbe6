"""A default drafter of a small vocabulary, and what it is asked."""

from __future__ import annotations

import numpy as np

from accel.draft_tree import Source
from accel.drafting.base import DraftRequest
from accel.drafting.retrieval.acceptance_model import PRIOR, AcceptanceWeights
from accel.drafting.retrieval.drafter import RetrievalDrafter
from accel.drafting.retrieval.prompt_index import PromptIndex
from accel.drafting.retrieval.token_classes import TokenShapes

WORDS = [b"", *(f"{mark}w{i}".encode() for i in range(12) for mark in (" ", "(", ".", ""))]
WEIGHTS = AcceptanceWeights.load(PRIOR)


class IndexOfText:
    """Continuations in one known text, by the dynamic index."""

    def __init__(self, text):
        self._index = PromptIndex()
        self._index.extend(np.asarray(text, np.int32))

    def lookup(self, context, *, max_match=16, limit=64, depth=16):
        actual = self._index.lookup(context, max_match=max_match, limit=limit, depth=depth)
        actual.sources[:] = Source.REPOSITORY
        return actual


def drafter(**options):
    return RetrievalDrafter(TokenShapes.of(WORDS), weights=WEIGHTS, **options)


def request_of(random, *, index=True):
    text = random.integers(1, 40, 300)
    return DraftRequest(
        prompt=np.concatenate([random.integers(1, 40, 50), text[40:90]]).astype(np.int32),
        suffix=random.integers(1, 40, 30).astype(np.int32),
        index=IndexOfText(text) if index else None,
    )


def paths_of(tree):
    paths = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), token))
    return paths
