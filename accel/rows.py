"""The rows of one forward: pending tokens in a chain, and the draft tree that hangs from the last.

Row ``pending - 1`` is the root of the tree; node ``i`` of the tree is row ``pending + i``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray


@dataclass(slots=True)
class Rows:
    """What a model computes in one forward.

    tokens: int32 [T]; offsets: int32 [T], position of every row counted from the first; mask:
    float32 [T, T], 0 where row i attends row j and ``BLOCKED`` elsewhere; all rows attend the
    committed text. ``is_chain`` when every row follows the one before it. Logits are wanted from
    row ``logits_from`` on.
    """

    tokens: TokenArray
    offsets: TokenArray
    mask: NDArray[np.float32]
    is_chain: bool
    logits_from: int

    def __len__(self) -> int:
        return len(self.tokens)


BLOCKED = np.float32(np.finfo(np.float32).min)


def chain_rows(tokens: TokenArray, logits_from: int) -> Rows:
    """Rows of plain text."""
    count = len(tokens)
    return Rows(tokens, np.arange(count, dtype=np.int32), _causal(count), True, logits_from)


def tree_rows(pending: TokenArray, tree: DraftTree, padding: int = 0) -> Rows:
    """Rows of ``pending`` (at least one token) and ``tree``, and ``padding`` rows of no meaning
    that bring the count to one that the device computes fast."""
    count = len(pending) + len(tree)
    if not padding and not len(tree):
        return chain_rows(pending, len(pending) - 1)
    tokens = np.zeros(count + padding, np.int32)
    tokens[: len(pending)] = pending
    tokens[len(pending) : count] = tree.tokens
    offsets, mask = _tree_layout(len(pending), tree.parents.astype(np.int32), padding, BLOCKED)
    is_chain = not padding and bool((tree.parents == np.arange(-1, len(tree) - 1)).all())
    return Rows(tokens, offsets, mask, is_chain, len(pending) - 1)


@lru_cache(maxsize=64)
def _causal(count: int) -> NDArray[np.float32]:
    return np.triu(np.full((count, count), BLOCKED, np.float32), 1)


@njit(cache=True, nogil=True)
def _tree_layout(  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    pending, parents, padding, blocked
):
    nodes = len(parents)
    count = pending + nodes + padding
    offsets = np.empty(count, np.int32)
    mask = np.full((count, count), blocked, np.float32)
    for row in range(pending):
        offsets[row] = row
        mask[row, : row + 1] = 0
    for node in range(nodes):
        row = pending + node
        above = pending + parents[node]
        offsets[row] = offsets[above] + 1
        mask[row] = mask[above]
        mask[row, row] = 0
    for row in range(pending + nodes, count):
        offsets[row] = 0
        mask[row, row] = 0
    return offsets, mask
