"""llama.cpp's ``ngram-simple``, as a drafter: what followed the last n tokens when they stood
before. Source: the project's README of its server (``--spec-type ngram-simple``)."""

from __future__ import annotations

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest


class NgramSimple:
    """The latest earlier occurrence of the last ``match`` tokens is copied, ``draft`` of them."""

    def __init__(self, match: int = 3, draft: int = 8) -> None:
        self._match, self._draft = match, draft

    def __call__(self, context: TokenArray) -> TokenArray:
        """What may follow a text; nothing where its end did not stand before."""
        size = self._match
        if len(context) <= size:
            return context[:0]
        windows = np.lib.stride_tricks.sliding_window_view(context[:-1], size)
        matches = np.flatnonzero((windows == context[-size:]).all(axis=1))
        start = int(matches[-1]) + size if len(matches) else len(context)
        return context[start : start + self._draft]


class NgramSimpleDrafter:
    """The same as a drafter, so that it can be replayed."""

    name = "ngram-simple"

    def __init__(self, match: int = 3, draft: int = 8) -> None:
        self._lookup = NgramSimple(match, draft)
        self._context = np.empty(0, np.int32)

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        self._context = np.array(request.prompt, np.int32)

    def draft(self, max_nodes: int) -> DraftTree:
        """One branch of at most ``max_nodes`` tokens."""
        return DraftTree.chain(self._lookup(self._context)[:max_nodes], Source.PROMPT)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``."""
        self._context = np.concatenate([self._context, np.asarray(tokens, np.int32)])
