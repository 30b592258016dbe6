"""Prompt lookup decoding by transformers' rule, alone and as a drafter that can be replayed.

``transformers.generate`` itself is measured by :mod:`tests.benchmarks.peers.hf_generate`; a
test holds the two to the same drafts.
"""

from __future__ import annotations

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest


class PromptLookup:
    """The first earlier occurrence of the last n tokens, n from 2 down to 1, is copied.

    transformers 5, ``PromptLookupCandidateGenerator`` with its defaults: at most 10 tokens, the
    leftmost match wins, the longest n first.
    """

    def __init__(self, longest_match: int = 2, draft_tokens: int = 10) -> None:
        self._longest_match = longest_match
        self._draft_tokens = draft_tokens

    def __call__(self, context: TokenArray) -> TokenArray:
        """What may follow a text; nothing where no end of it stood before."""
        for size in range(min(self._longest_match, len(context) - 1), 0, -1):
            windows = np.lib.stride_tricks.sliding_window_view(context[:-1], size)
            matches = np.flatnonzero((windows == context[-size:]).all(axis=1))
            if len(matches):
                start = int(matches[0]) + size
                return context[start : start + self._draft_tokens]
        return context[:0]


class PromptLookupDrafter:
    """The same as a drafter, so that it can be replayed."""

    name = "hf-prompt-lookup"

    def __init__(self, longest_match: int = 2, draft_tokens: int = 10) -> None:
        self._lookup = PromptLookup(longest_match, draft_tokens)
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
