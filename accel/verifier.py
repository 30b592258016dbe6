"""Walk a draft tree along the tokens that the model itself would choose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from accel.draft_tree import DraftTree

Choose = Callable[[int, list[int]], int]
"""From a node (-1 for the root) and the tokens on the path to it to the model's next token."""


def walk(tree: DraftTree, choose: Choose) -> tuple[list[int], list[int]]:
    """The longest path that the model agrees with, and the tokens that it yields.

    At every visited node one token is chosen: if it is a child the walk goes on there, otherwise
    it is the last token. A tree without nodes yields one token, as plain decoding does, so the
    text is the same whatever is drafted: lossless for greedy choice, and exact for sampling
    because every token is one draw from the model's own distribution.

    Returns (path, tokens): node indices, and one token more than the path has nodes.
    """
    children = _children(tree)
    path: list[int] = []
    tokens: list[int] = []
    node: int | None = -1
    while node is not None:
        token = choose(node, tokens)
        tokens.append(token)
        node = children.get((node, token))
        if node is not None:
            path.append(node)
    return path, tokens


def main_branch(tree: DraftTree) -> DraftTree:
    """The branch of the likeliest children, for models that verify one branch only."""
    nodes: list[int] = []
    parent = -1
    while True:
        children = np.flatnonzero(tree.parents == parent)
        if not len(children):
            break
        parent = int(children[tree.probabilities[children].argmax()])
        nodes.append(parent)
    return DraftTree(
        tree.tokens[nodes],
        np.arange(-1, len(nodes) - 1, dtype=np.int32),
        tree.probabilities[nodes],
        tree.sources[nodes],
    )


def _children(tree: DraftTree) -> dict[tuple[int, int], int]:
    """First node with each parent and token."""
    children: dict[tuple[int, int], int] = {}
    pairs = zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)
    for node, pair in enumerate(pairs):
        children.setdefault(pair, node)
    return children
