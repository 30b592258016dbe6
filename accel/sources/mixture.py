"""The default drafter for completion: one tree mixed from all match lengths and sources."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.sources import expansion, prompt
from accel.sources.prompt import PromptIndex
from accel.sources.protocol import ContinuationIndex, Continuations, DraftRequest

MAX_MATCH = 24
DEPTH = 24
ROWS_PER_SOURCE = 300
ESCAPE = 2.0
LENGTH_BASE = 1.6
SOURCE_WEIGHT = np.ones(len(Source), np.float64)
SOURCE_WEIGHT[[Source.PROMPT, Source.SUFFIX]] = 3.0, 1.0
SOURCE_WEIGHT[Source.COMMON] = 0.3


class MixtureDrafter:
    """Every known continuation votes, the longer its match the louder (``expansion.expand``)."""

    name = "redraft"

    def __init__(self) -> None:
        self._prompt = PromptIndex()
        self._index: ContinuationIndex | None = None

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        self._prompt.begin(request.prompt, request.suffix)
        self._index = request.index

    def draft(self, max_nodes: int) -> DraftTree:
        """A tree of at most ``max_nodes`` nodes in decreasing path probability."""
        found = [self._prompt.lookup(max_match=MAX_MATCH, limit=ROWS_PER_SOURCE, depth=DEPTH)]
        if self._index is not None:
            found.append(
                self._index.lookup(
                    self._prompt.context[-MAX_MATCH:],
                    max_match=MAX_MATCH,
                    limit=ROWS_PER_SOURCE,
                    depth=DEPTH,
                )
            )
        return expansion.expand(
            np.concatenate([each.tokens for each in found]),
            np.concatenate([_weights(each) for each in found]),
            np.concatenate([each.sources for each in found]),
            max_nodes=max_nodes,
            escape=ESCAPE,
        )

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``."""
        self._prompt.extend(tokens)


def _weights(found: Continuations) -> NDArray[np.float64]:
    return SOURCE_WEIGHT[found.sources] * LENGTH_BASE**found.lengths * found.counts


def warm_up() -> None:
    """Compile (or load the compiled form of) everything that drafting calls."""
    expansion.warm_up()
    prompt.warm_up()
