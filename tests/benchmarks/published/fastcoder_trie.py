"""FastCoder's draft construction: a weighted trie, its heaviest prefixes, and REST's cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray


@dataclass(slots=True)
class Trie:
    """All prefixes of some rows, heaviest first; of equal weight the one met first, then the
    shorter. So a parent stands before its children.

    tokens, parents, depths: int32 [n] (parents -1 at the root, depths from 1); weights: float64
    [n], summed weights of the rows that begin so; sources: int8 [n].
    """

    tokens: TokenArray
    parents: TokenArray
    depths: TokenArray
    weights: NDArray[np.float64]
    sources: NDArray[np.int8]

    @classmethod
    def build(
        cls, rows: TokenArray, weights: NDArray[np.float64], sources: NDArray[np.int8]
    ) -> Trie:
        """Merge ``rows`` (int32 [r, depth], padded at the end with -1) by common prefix.

        A node's source is that of the first row through it.
        """
        node_of_row = np.full(len(rows), -1, np.int64)
        tokens, parents, depths, first_rows = (np.empty(0, np.int64) for _ in range(4))
        total = np.empty(0, np.float64)
        for depth in range(rows.shape[1]):
            alive = np.flatnonzero(rows[:, depth] >= 0)
            keys = (node_of_row[alive] + 1) << 32 | rows[alive, depth]
            unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
            node_of_row[alive] = len(tokens) + inverse
            tokens = np.concatenate([tokens, unique & 0xFFFFFFFF])
            parents = np.concatenate([parents, (unique >> 32) - 1])
            depths = np.concatenate([depths, np.full(len(unique), depth + 1)])
            first_rows = np.concatenate([first_rows, alive[first]])
            total = np.concatenate([total, np.bincount(inverse, weights[alive])])
        order = np.lexsort((depths, first_rows, -total))
        rank = np.full(len(tokens) + 1, -1, np.int64)
        rank[order] = np.arange(len(tokens))
        return cls(
            tokens[order].astype(np.int32),
            rank[parents[order]].astype(np.int32),
            depths[order].astype(np.int32),
            total[order],
            sources[first_rows[order]],
        )

    def distinct_tokens(self, count: int) -> list[int]:
        """Number of different tokens on the path to each of the first ``count`` nodes."""
        seen: list[frozenset[int]] = []
        for token, parent in zip(
            self.tokens[:count].tolist(), self.parents[:count].tolist(), strict=True
        ):
            seen.append((seen[parent] if parent >= 0 else frozenset()) | {token})
        return [len(tokens) for tokens in seen]

    def best(self, choices: int, max_nodes: int) -> DraftTree:
        """The ``choices`` heaviest prefixes after REST's cut, as a tree of at most ``max_nodes``.

        REST's cut adds up the different tokens of every prefix, each prefix on its own, and drops
        the prefixes with most of them until the sum is at most ``choices``: a promised tree of 64
        nodes holds about 20 (REST, ``cut_to_choices``).
        """
        count = min(choices, len(self.tokens))
        costs = self.distinct_tokens(count)
        is_included = np.ones(count, np.bool_)
        total = sum(costs)
        for node in sorted(range(count), key=lambda node: (costs[node], node), reverse=True):
            if total <= choices:
                break
            total -= costs[node]
            is_included[node] = False
        for node in range(count - 1, -1, -1):
            if is_included[node] and self.parents[node] >= 0:
                is_included[self.parents[node]] = True
        nodes = np.flatnonzero(is_included)[:max_nodes]
        rank = np.full(count + 1, -1, np.int32)
        rank[nodes] = np.arange(len(nodes))
        whole = self.weights[self.parents == -1].sum()
        return DraftTree(
            self.tokens[nodes],
            rank[self.parents[nodes]],
            (self.weights[nodes] / whole).astype(np.float32),
            self.sources[nodes],
        )
