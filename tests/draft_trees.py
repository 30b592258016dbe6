"""Draft trees for tests and the laboratory."""

from __future__ import annotations

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray


def merged(branches: list[TokenArray], source: Source) -> DraftTree:
    """Return branches merged by common prefix, in the order given, each node of probability 1."""
    tokens: list[int] = []
    parents: list[int] = []
    children: dict[tuple[int, int], int] = {}
    for branch in branches:
        parent = -1
        for token in branch.tolist():
            if (parent, token) not in children:
                children[parent, token] = len(tokens)
                tokens.append(token)
                parents.append(parent)
            parent = children[parent, token]
    return DraftTree(
        np.array(tokens, np.int32),
        np.array(parents, np.int32),
        np.ones(len(tokens), np.float32),
        np.full(len(tokens), source, np.int8),
    )


def depths_of(tree: DraftTree) -> TokenArray:
    """Return the depth of every node, 1 for children of the root. int32 [n]."""
    depths = np.empty(len(tree), np.int32)
    for node, parent in enumerate(tree.parents):
        depths[node] = 1 if parent < 0 else depths[parent] + 1
    return depths


def accepted_path(tree: DraftTree, continuation: TokenArray) -> list[int]:
    """Return the nodes of the longest path that spells a prefix of ``continuation``."""
    path: list[int] = []
    parent = -1
    for token in continuation:
        matches = np.flatnonzero((tree.parents == parent) & (tree.tokens == token))
        if not len(matches):
            break
        parent = int(matches[0])
        path.append(parent)
    return path
