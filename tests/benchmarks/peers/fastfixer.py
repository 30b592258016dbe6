"""FastFixer's rule: segments of the code to be changed, found by the output's last tokens.

Fang Liu et al., "FastFixer: An Efficient and Effective Approach for Repairing Programming
Assignments", ASE 2024, adapted to edits as in EfficientEdit's section IV.D. A peer in the benches.
"""

from __future__ import annotations

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest

MATCH = 1
"""Tokens that must match: the number that serves the rule best on the edit cases, of 1 to 6."""


class FastFixerDrafter:
    """The original is searched anew in every step: what follows the last ``match`` output tokens.

    The nearest place after the one used last is taken, otherwise the first one; the whole text
    behind it is the draft. The first draft is the original itself.
    """

    name = "fastfixer"

    def __init__(self, match: int = MATCH) -> None:
        self._match = match
        self.begin(DraftRequest(np.empty(0, np.int32)))

    def begin(self, request: DraftRequest) -> None:
        """Search the request's original."""
        original = request.original if request.original is not None else np.empty(0, np.int32)
        self._original = np.asarray(original, np.int32)
        self._used = 0
        self._output = np.empty(0, np.int32)

    def draft(self, max_nodes: int) -> DraftTree:
        """The segment behind the place found, as one chain."""
        if not len(self._output):
            return DraftTree.chain(self._original[:max_nodes], Source.ORIGINAL)
        match = self._match
        if len(self._output) < match or len(self._original) < match:
            return DraftTree.empty()
        windows = np.lib.stride_tricks.sliding_window_view(self._original, match)
        ends = np.flatnonzero((windows == self._output[-match:]).all(axis=1)) + match
        if not len(ends):
            return DraftTree.empty()
        later = ends[ends > self._used]
        self._used = int(later[0] if len(later) else ends[0])
        return DraftTree.chain(self._original[self._used : self._used + max_nodes], Source.ORIGINAL)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Extend the output."""
        self._used += len(path)
        self._output = np.concatenate([self._output, np.asarray(tokens, np.int32)])
