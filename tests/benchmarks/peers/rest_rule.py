"""REST's rule on our own index: one store, its longest match, the heaviest prefixes, the cut.

The same drafts as :mod:`tests.benchmarks.peers.rest` but for the order of equal counts, which REST
leaves to chance; needs no package of REST's.
"""

from __future__ import annotations

import numpy as np

from accel.draft_tree import DraftTree, TokenArray
from accel.drafting.base import ContinuationIndex, DraftRequest
from tests.benchmarks.published.fastcoder_trie import Trie

LONGEST = 16
SHORTEST = 2
CONTINUATION = 10
CHOICES = 64
MATCHES = 500


class RestRuleDrafter:
    """REST (section 3), repository and common code in one datastore."""

    name = "rest-rule"

    def __init__(self) -> None:
        self._index: ContinuationIndex | None = None
        self._end = np.empty(0, np.int32)

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        self._index = request.index
        self._end = np.array(request.prompt[-LONGEST:], np.int32)

    def draft(self, max_nodes: int) -> DraftTree:
        """A tree of at most ``max_nodes`` nodes, at most 64."""
        if self._index is None or not len(self._end):
            return DraftTree.empty()
        found = self._index.lookup(self._end, max_match=LONGEST, limit=MATCHES, depth=CONTINUATION)
        if not len(found) or found.lengths.max() < SHORTEST:
            return DraftTree.empty()
        longest = found.lengths == found.lengths.max()
        trie = Trie.build(
            found.tokens[longest],
            found.counts[longest].astype(np.float64),
            found.sources[longest],
        )
        return trie.best(min(max_nodes, CHOICES), max_nodes)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``."""
        self._end = np.concatenate([self._end, np.asarray(tokens, np.int32)])[-LONGEST:]
