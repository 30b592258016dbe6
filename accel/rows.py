"""The rows of one forward: pending tokens in a chain, and the draft tree that hangs from the last.

Row ``pending - 1`` is the root of the tree; node ``i`` of the tree is row ``pending + i``. Groups
of mask rows may hang behind the root and the nodes: they see what is above them, and no other row
sees them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray

NO_MASKS = np.empty(0, np.int32)


@dataclass(slots=True)
class MaskGroups:
    """Where mask rows hang. nodes: int32 [groups], -1 for the root; sizes: int32 [groups], rows of
    each."""

    nodes: TokenArray
    sizes: TokenArray

    @property
    def rows(self) -> int:
        """Rows of all groups."""
        return int(self.sizes.sum()) if len(self.sizes) else 0

    @classmethod
    def none(cls) -> MaskGroups:
        """No mask rows."""
        return cls(NO_MASKS, NO_MASKS)

    @classmethod
    def alike(cls, nodes: list[int], size: int) -> MaskGroups:
        """Groups of ``size`` rows each."""
        return cls(np.array(nodes, np.int32), np.full(len(nodes), size, np.int32))

    def rows_behind(self, node: int) -> slice:
        """Places of the rows of a node's group among all mask rows, empty where it has none."""
        here = np.flatnonzero(self.nodes == node)
        if not len(here):
            return slice(0, 0)
        first = int(self.sizes[: here[0]].sum())
        return slice(first, first + int(self.sizes[here[0]]))


@dataclass(slots=True)
class Rows:
    """What a model computes in one forward.

    tokens: int32 [T]; offsets: int32 [T], position of every row counted from the first; mask:
    float32 [T, T], 0 where row i attends row j and ``BLOCKED`` elsewhere; all rows attend the
    committed text. ``is_chain`` when every row follows the one before it. Logits are wanted from
    row ``logits_from`` on. mask_places: int32 [M], place of every mask row in its group; these rows
    begin at ``masks_from``, and their tokens count for nothing.
    """

    tokens: TokenArray
    offsets: TokenArray
    mask: NDArray[np.float32]
    is_chain: bool
    logits_from: int
    masks_from: int = 0
    mask_places: TokenArray = field(default_factory=lambda: NO_MASKS)

    def __len__(self) -> int:
        return len(self.tokens)


BLOCKED = np.float32(np.finfo(np.float32).min)


def chain_rows(tokens: TokenArray, logits_from: int) -> Rows:
    """Rows of plain text."""
    count = len(tokens)
    return Rows(tokens, np.arange(count, dtype=np.int32), _causal(count), True, logits_from)


def tree_rows(
    pending: TokenArray, tree: DraftTree, padding: int = 0, groups: MaskGroups | None = None
) -> Rows:
    """Rows of ``pending`` (at least one token), ``tree`` and the mask rows of ``groups``, in this
    order, and ``padding`` rows of no meaning that bring the count to one that the device computes
    fast."""
    groups = groups or MaskGroups.none()
    nodes, masks = len(pending) + len(tree), groups.rows
    count = nodes + masks
    if not padding and count == len(pending):
        return chain_rows(pending, len(pending) - 1)
    tokens = np.zeros(count + padding, np.int32)
    tokens[: len(pending)] = pending
    tokens[len(pending) : nodes] = tree.tokens
    parents = tree.parents.astype(np.int32)
    places = NO_MASKS
    if masks:
        parents = np.concatenate([parents, _hanging(groups, len(tree))])
        places = _places(groups)
    offsets, mask, is_chain = _tree_layout(len(pending), parents, padding, BLOCKED)
    return Rows(tokens, offsets, mask, is_chain, len(pending) - 1, nodes, places)


def _places(groups: MaskGroups) -> TokenArray:
    """Place of every mask row in its group."""
    return np.concatenate([np.arange(size, dtype=np.int32) for size in groups.sizes])


def _hanging(groups: MaskGroups, nodes: int) -> TokenArray:
    """Parents of mask rows: the node of the group, then the row before."""
    parents = np.arange(nodes - 1, nodes - 1 + groups.rows, dtype=np.int32)
    parents[np.cumsum(groups.sizes) - groups.sizes] = groups.nodes
    return parents


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
    is_chain = padding == 0
    for node in range(nodes):
        is_chain = is_chain and parents[node] == node - 1
        row = pending + node
        above = pending + parents[node]
        offsets[row] = offsets[above] + 1
        mask[row] = mask[above]
        mask[row, row] = 0
    for row in range(pending + nodes, count):
        offsets[row] = 0
        mask[row, row] = 0
    return offsets, mask, is_chain
