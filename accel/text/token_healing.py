"""Token healing: a prompt that ends inside a word backs off to a border between tokens, and the
generation must begin with the bytes that were cut off."""

from __future__ import annotations

import numpy as np

from accel.draft_tree import DraftTree
from accel.text.byte_index import ByteIndex


def rest_after(required: bytes, spelt: bytes) -> bytes | None:
    """Return the rest of ``required`` after a token of the bytes ``spelt``; None when it
    disagrees."""
    if spelt.startswith(required):
        return b""
    return required[len(spelt) :] if spelt and required.startswith(spelt) else None


def prune(tree: DraftTree, required: bytes, index: ByteIndex) -> DraftTree:
    """Return the nodes of ``tree`` that agree with ``required``, likelier for what they have
    survived."""
    rests: list[bytes | None] = []
    included: list[int] = []
    position = np.full(len(tree) + 1, -1, np.int32)
    agreed = total = 0.0
    for node, (token, parent) in enumerate(
        zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True)
    ):
        before = required if parent < 0 else rests[parent]
        rest = None if before is None else rest_after(before, index.bytes_of(token))
        rests.append(rest)
        if parent < 0:
            total += float(tree.probabilities[node])
        if rest is not None:
            if parent < 0:
                agreed += float(tree.probabilities[node])
            position[node] = len(included)
            included.append(node)
    nodes = np.array(included, np.int64)
    unseen = 0.1 * max(1.0 - total, 0.0)
    scale = 1.0 / max(agreed + unseen, 1e-6)
    return DraftTree(
        tree.tokens[nodes],
        position[tree.parents[nodes]].astype(np.int32),
        np.minimum(tree.probabilities[nodes] * np.float32(scale), np.float32(1)),
        tree.sources[nodes],
    )
