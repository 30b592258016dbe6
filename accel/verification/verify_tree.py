"""Verification of a draft tree: its path along the tokens that the model itself would choose."""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source

Relaxed = Callable[[NDArray[np.float32]], Container[int]]
"""From the logits after a node to the tokens that are good enough there."""

Choose = Callable[[int, list[int]], int]
"""From a node (-1 for the root) and the tokens on the path to it to the model's next token."""


def verify_tree(
    tree: DraftTree, choose: Choose, relaxed: Callable[[int], Container[int]] | None = None
) -> tuple[list[int], list[int]]:
    """Return the longest path that the model accepts, and the tokens that it yields.

    At every visited node one token is chosen: if it is a child, verification goes on there,
    otherwise it is the last token. A tree without nodes yields one token, as plain decoding does.
    The text does not depend on the drafts: lossless for greedy choice, and exact for sampling
    because every token is one draw from the model's own distribution.

    ``relaxed`` gives further tokens that may be accepted after a node, from a draft model only;
    this is EfficientEdit's lossy verification and off by default.

    Returns (path, tokens): node indices, and one token more than the path has nodes.
    """
    pairs = zip(tree.parents.tolist(), tree.tokens.tolist(), strict=True)
    # Of equal children the first counts.
    children = {pair: node for node, pair in reversed([*enumerate(pairs)])}
    path: list[int] = []
    tokens: list[int] = []
    node: int | None = -1
    while node is not None:
        token = choose(node, tokens)
        child = children.get((node, token))
        if child is None and relaxed is not None:
            child = _draft_model_child(tree, node, relaxed)
        tokens.append(token if child is None else int(tree.tokens[child]))
        node = child
        if node is not None:
            path.append(node)
    return path, tokens


def _draft_model_child(
    tree: DraftTree, node: int, relaxed: Callable[[int], Container[int]]
) -> int | None:
    """Return the first child that a draft model proposed and that is good enough."""
    children = np.flatnonzero((tree.parents == node) & (tree.sources == Source.DRAFT_MODEL))
    if not len(children):
        return None
    accepted = relaxed(node)
    return next((int(child) for child in children if int(tree.tokens[child]) in accepted), None)
