"""The draft tree: several possible continuations merged into one set of rows for one forward."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

TokenArray = NDArray[np.int32]


class Source(IntEnum):
    """Source of a token. ``MODEL`` is the model's own, never drafted token."""

    MODEL = 0
    PROMPT = 1
    SUFFIX = 2
    BUFFER = 3
    REPOSITORY = 4
    COMMON = 5
    HISTORY = 6
    ORIGINAL = 7
    DRAFT_MODEL = 9
    ADAPTIVE = 10


SOURCE_NAMES = {source.value: source.name.lower() for source in Source}
"""In words, by the number that trees have; quicker to read than the enumeration."""


@dataclass(slots=True)
class DraftTree:
    """Nodes in an order in which parents come before their children.

    The root is not a node: it is the last token of the context, whose row every forward computes
    anyway. ``parents`` holds node indices, -1 for children of the root.

    tokens: int32 [n]; parents: int32 [n]; probabilities: float32 [n], the probability that the
    whole path to the node is accepted; sources: int8 [n], values of :class:`Source`.

    A tree built best first stays a valid tree when cut after any number of nodes, which is what a
    planner does (``prefix``).
    """

    tokens: TokenArray
    parents: TokenArray
    probabilities: NDArray[np.float32]
    sources: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def empty(cls) -> DraftTree:
        """Return a tree without nodes: plain decoding."""
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
    def likeliest_first(
        cls, tokens: list[int], parents: list[int], chances: list[float], sources: list[int]
    ) -> tuple[DraftTree, TokenArray]:
        """Return a tree of nodes in any order in which none is likelier than its parent, and the
        place of each of them in it, after the last that of the root, -1."""
        order = np.argsort(-np.array(chances, np.float32), kind="stable")
        positions = np.empty(len(order) + 1, np.int32)
        positions[order], positions[-1] = np.arange(len(order)), -1
        tree = cls(
            np.array(tokens, np.int32)[order],
            positions[np.array(parents, np.int32)[order]],
            np.array(chances, np.float32)[order],
            np.array(sources, np.int8)[order],
        )
        return tree, positions

    def prefix(self, count: int) -> DraftTree:
        """Return the tree of the first ``count`` nodes."""
        return DraftTree(
            self.tokens[:count],
            self.parents[:count],
            self.probabilities[:count],
            self.sources[:count],
        )

    def main_branch(self) -> DraftTree:
        """Return the branch of the likeliest children, for models that verify one branch only."""
        nodes: list[int] = []
        parent = -1
        while True:
            children = np.flatnonzero(self.parents == parent)
            if not len(children):
                break
            parent = int(children[self.probabilities[children].argmax()])
            nodes.append(parent)
        return DraftTree(
            self.tokens[nodes],
            np.arange(-1, len(nodes) - 1, dtype=np.int32),
            self.probabilities[nodes],
            self.sources[nodes],
        )

    def with_leaves(self, most: int) -> DraftTree:
        """Return the largest ``prefix`` with at most ``most`` leaves."""
        leaves: set[int] = set()
        for node, parent in enumerate(self.parents.tolist()):
            leaves.discard(parent)
            leaves.add(node)
            if len(leaves) > most:
                return self.prefix(node)
        return self


_EMPTY = DraftTree(
    np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.int8)
)
