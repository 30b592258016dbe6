"""The draft tree: several possible continuations merged into one set of rows for one forward."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from accel.rows import Rows

TokenArray = NDArray[np.int32]


class Source(IntEnum):
    """Where a token came from. ``MODEL`` is the model's own, never drafted token."""

    MODEL = 0
    PROMPT = 1
    SUFFIX = 2
    BUFFER = 3
    REPOSITORY = 4
    COMMON = 5
    HISTORY = 6
    ORIGINAL = 7
    RECYCLED = 8
    DRAFT_MODEL = 9
    ADAPTIVE = 10
    SPECULATED = 11


@dataclass(slots=True)
class DraftTree:
    """Nodes in an order in which parents stand before their children.

    The root is not a node: it is the last token of the context, whose row every forward computes
    anyway. ``parents`` holds node indices, -1 for children of the root.

    tokens: int32 [n]; parents: int32 [n]; probabilities: float32 [n], the probability that the
    whole path to the node is accepted; sources: int8 [n], values of :class:`Source`.

    A tree built best first stays a valid tree when cut after any number of nodes, which is what a
    planner does (``prefix``). ``is_chain``: whoever made it says that every node follows
    the one before it, which spares a look. ``rows``: the rows of the text's last token and the
    nodes, where whoever made it has laid them out, until it makes the next.
    """

    tokens: TokenArray
    parents: TokenArray
    probabilities: NDArray[np.float32]
    sources: NDArray[np.int8]
    is_chain: bool = False
    rows: Rows | None = None

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def empty(cls) -> DraftTree:
        """A tree without nodes: plain decoding."""
        return _EMPTY

    @classmethod
    def chain(cls, tokens: TokenArray, source: Source, acceptance: float = 1.0) -> DraftTree:
        """One branch. ``acceptance`` is the probability of each token given the one before it."""
        count = len(tokens)
        return cls(
            np.asarray(tokens, np.int32),
            np.arange(-1, count - 1, dtype=np.int32),
            np.power(np.float32(acceptance), np.arange(1, count + 1, dtype=np.float32)),
            np.full(count, source, np.int8),
        )

    @classmethod
    def shared_chain(cls, tokens: TokenArray, source: Source) -> DraftTree:
        """One branch of certain tokens, ``SHARED`` at most, whose other parts it shares with all
        such: nobody may write to them. Behind a forward ``chain`` takes five times as long."""
        count = len(tokens)
        sources = _OF_SOURCES[source]
        return cls(tokens, _PARENTS[:count], _CERTAIN[:count], sources[:count], is_chain=True)

    @classmethod
    def merge(cls, branches: list[TokenArray], source: Source) -> DraftTree:
        """Branches merged by common prefix, in the order given, without probabilities of use."""
        tokens: list[int] = []
        parents: list[int] = []
        children: dict[tuple[int, int], int] = {}
        for branch in branches:
            parent = -1
            for token in branch:
                key = (parent, int(token))
                if key not in children:
                    children[key] = len(tokens)
                    tokens.append(int(token))
                    parents.append(parent)
                parent = children[key]
        return cls(
            np.array(tokens, np.int32),
            np.array(parents, np.int32),
            np.ones(len(tokens), np.float32),
            np.full(len(tokens), source, np.int8),
        )

    def prefix(self, count: int) -> DraftTree:
        """The tree of the first ``count`` nodes."""
        return DraftTree(
            self.tokens[:count],
            self.parents[:count],
            self.probabilities[:count],
            self.sources[:count],
        )

    def depths(self) -> TokenArray:
        """Depth of every node, 1 for children of the root. int32 [n]."""
        depths = np.empty(len(self), np.int32)
        for node, parent in enumerate(self.parents):
            depths[node] = 1 if parent < 0 else depths[parent] + 1
        return depths

    def ancestor_mask(self) -> NDArray[np.bool_]:
        """bool [n, n]: row i attends column j when j is i or an ancestor of i."""
        mask = np.zeros((len(self), len(self)), np.bool_)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                mask[node] = mask[parent]
            mask[node, node] = True
        return mask

    def accepted_path(self, continuation: TokenArray) -> list[int]:
        """Node indices of the longest path that spells a prefix of ``continuation``."""
        path: list[int] = []
        parent = -1
        for token in continuation:
            matches = np.flatnonzero((self.parents == parent) & (self.tokens == token))
            if not len(matches):
                break
            parent = int(matches[0])
            path.append(parent)
        return path


_EMPTY = DraftTree(
    np.empty(0, np.int32),
    np.empty(0, np.int32),
    np.empty(0, np.float32),
    np.empty(0, np.int8),
)
SHARED = 512
_PARENTS, _CERTAIN = np.arange(-1, SHARED - 1, dtype=np.int32), np.ones(SHARED, np.float32)
_OF_SOURCES = [np.full(SHARED, source, np.int8) for source in Source]
