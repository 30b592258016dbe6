"""llama.cpp's ``ngram-simple``, as a drafter: what followed the last n tokens when they stood
before. Source: the project's README of its server (``--spec-type ngram-simple``)."""

from __future__ import annotations

import numpy as np

from accel.draft_tree import TokenArray
from tests.benchmarks.peers.looked_up import LookedUpDrafter


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


def ngram_simple_drafter(match: int = 3, draft: int = 8) -> LookedUpDrafter:
    """The same as a drafter."""
    return LookedUpDrafter("ngram-simple", NgramSimple(match, draft))
