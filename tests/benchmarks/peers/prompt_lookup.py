"""Prompt lookup decoding by transformers' rule, alone and as a drafter that can be replayed.

``transformers.generate`` itself is measured by :mod:`tests.benchmarks.peers.hf_generate`; a
test holds the two to the same drafts.
"""

from __future__ import annotations

import numpy as np

from accel.draft_tree import TokenArray
from tests.benchmarks.peers.looked_up import LookedUpDrafter


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


def prompt_lookup_drafter(longest_match: int = 2, draft_tokens: int = 10) -> LookedUpDrafter:
    """The same as a drafter."""
    return LookedUpDrafter("hf-prompt-lookup", PromptLookup(longest_match, draft_tokens))
