"""A rule that looks the end of a text up in the text, as a drafter that can be replayed."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest


class LookUp(Protocol):
    """A rule: what may follow a text."""

    def __call__(self, context: TokenArray) -> TokenArray: ...


class LookedUpDrafter:
    """Drafts one branch by such a rule."""

    def __init__(self, name: str, look_up: LookUp) -> None:
        self.name = name
        self._look_up = look_up
        self._context = np.empty(0, np.int32)

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        self._context = np.array(request.prompt, np.int32)

    def draft(self, max_nodes: int) -> DraftTree:
        """One branch of at most ``max_nodes`` tokens."""
        return DraftTree.chain(self._look_up(self._context)[:max_nodes], Source.PROMPT)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``."""
        self._context = np.concatenate([self._context, np.asarray(tokens, np.int32)])
