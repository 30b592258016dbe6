"""Outputs of earlier requests in a workspace as a source of drafts."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from accel.draft_tree import Source, TokenArray
from accel.drafting.base import Continuations
from accel.drafting.retrieval.prompt_index import PromptIndex

# Measure with `python -m tests.benchmarks completion --cases CASES/completion_repoeval.jsonl`.
WORKSPACES = 16
TOKENS = 16_384
"""Tokens stored for a workspace; at twice as many the older half is dropped."""
CONTEXT = 24
"""Tokens of context stored before each output, so that its beginning can be found."""


class History:
    """Outputs of the last requests, by workspace; the least recently used workspace goes first."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[str, PromptIndex] = OrderedDict()

    def remember(self, workspace: str, context: TokenArray, output: TokenArray) -> None:
        """``output`` was written after ``context`` (both int32)."""
        if not len(output):
            return
        index = self._indexes.pop(workspace, None) or PromptIndex()
        if len(index.context) > 2 * TOKENS:
            recent = index.context[-TOKENS:].copy()
            index = PromptIndex()
            index.extend(recent)
        index.interrupt()
        index.extend(np.concatenate([context[-CONTEXT:], output]))
        self._indexes[workspace] = index
        while len(self._indexes) > WORKSPACES:
            self._indexes.popitem(last=False)

    def knows(self, workspace: str) -> bool:
        """Return whether anything was written in ``workspace``."""
        return workspace in self._indexes

    def lookup(
        self, workspace: str, context: TokenArray, *, max_match: int, limit: int, depth: int
    ) -> Continuations:
        """Return continuations of ``context`` in earlier outputs, as ``PromptIndex.lookup``."""
        index = self._indexes.get(workspace)
        if index is None:
            return Continuations.empty(depth)
        continuations = index.lookup(context, max_match=max_match, limit=limit, depth=depth)
        continuations.sources.fill(Source.HISTORY)
        return continuations
