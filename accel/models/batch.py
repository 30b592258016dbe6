"""The rows of one forward: pending tokens in a chain, and the draft tree that hangs from the last.

Row ``pending - 1`` is the root of the tree; node ``i`` of the tree is row ``pending + i``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray
from accel.native.numba_cache import compiled


@dataclass(slots=True)
class ForwardBatch:
    """The input of one forward.

    tokens: int32 [T], writable; parents: int32 [T], the row that each follows, -1 for the committed
    text, parents first; offsets: int32 [T], position of every row after the committed text; mask:
    float32 [T, T], 0 where row i attends row j and ``BLOCKED`` elsewhere, as ``parents`` say, too;
    all rows attend the committed text. Logits are computed from row ``logits_from`` on: all numbers
    if ``wants_numbers``, else the likeliest token. Rows after ``meant`` are padding: they make the
    number of rows one that the model computes fast.
    """

    tokens: TokenArray
    parents: TokenArray
    offsets: TokenArray
    mask: NDArray[np.float32]
    logits_from: int
    wants_numbers: bool
    meant: int

    def __len__(self) -> int:
        return len(self.tokens)


BLOCKED = np.float32(np.finfo(np.float32).min)


def chain_batch(
    tokens: TokenArray, logits_from: int, *, wants_numbers: bool = False
) -> ForwardBatch:
    """Return rows of plain text."""
    count = len(tokens)
    # A copy: compiled code would be compiled anew for a read-only array.
    own = np.array(tokens, np.int32)
    return ForwardBatch(own, *_chain(count), logits_from, wants_numbers, count)


def tree_batch(
    pending: TokenArray, tree: DraftTree, padding: int = 0, *, wants_numbers: bool = False
) -> ForwardBatch:
    """Return rows of ``pending`` (at least one token) and of ``tree``, in this order, and
    ``padding`` rows without meaning."""
    root = len(pending) - 1
    if not padding and not len(tree):
        return chain_batch(pending, root, wants_numbers=wants_numbers)
    tokens, parents, offsets, mask = _tree_layout(
        np.asarray(pending, np.int32),
        np.asarray(tree.tokens, np.int32),
        np.asarray(tree.parents, np.int32),
        padding,
        BLOCKED,
    )
    count = len(pending) + len(tree)
    return ForwardBatch(tokens, parents, offsets, mask, root, wants_numbers, count)


@lru_cache(maxsize=64)
def _chain(count: int) -> tuple[TokenArray, TokenArray, NDArray[np.float32]]:
    """Return parents, offsets and mask of a chain of ``count`` rows. They are shared: models do not
    write into them."""
    rows = np.arange(count, dtype=np.int32)
    mask = np.triu(np.full((count, count), BLOCKED, np.float32), 1)
    return rows - 1, rows, mask


@compiled()
def _tree_layout(  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    pending_tokens, node_tokens, node_parents, padding, blocked
):
    pending, nodes = len(pending_tokens), len(node_tokens)
    count = pending + nodes + padding
    tokens = np.zeros(count, np.int32)
    # Loops compile in no time; assigning an array to another compiles error messages.
    for index in range(pending):
        tokens[index] = pending_tokens[index]
    for index in range(nodes):
        tokens[pending + index] = node_tokens[index]
    parents = np.full(count, -1, np.int32)
    offsets = np.zeros(count, np.int32)
    mask = np.full((count, count), blocked, np.float32)
    for row in range(pending):
        parents[row] = row - 1
        offsets[row] = row
        mask[row, : row + 1] = 0
    for node in range(nodes):
        row, above = pending + node, pending + node_parents[node]
        parents[row] = above
        offsets[row] = offsets[above] + 1
        for column in range(above + 1):
            mask[row, column] = mask[above, column]
        mask[row, row] = 0
    for row in range(pending + nodes, count):
        mask[row, row] = 0
    return tokens, parents, offsets, mask
