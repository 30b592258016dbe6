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
    rows: int = field(init=False)
    """Rows of all groups."""

    def __post_init__(self) -> None:
        self.rows = sum(self.sizes.tolist())

    @classmethod
    def none(cls) -> MaskGroups:
        """No mask rows."""
        return _NO_GROUPS

    @classmethod
    def alike(cls, nodes: list[int], size: int) -> MaskGroups:
        """Groups of ``size`` rows each."""
        return cls(np.array(nodes, np.int32), np.full(len(nodes), size, np.int32))

    def rows_behind(self, node: int) -> slice:
        """Places of the rows of a node's group among all mask rows, empty where it has none."""
        first = 0
        for other, size in zip(self.nodes.tolist(), self.sizes.tolist(), strict=True):
            if other == node:
                return slice(first, first + size)
            first += size
        return slice(0, 0)


_NO_GROUPS = MaskGroups(NO_MASKS, NO_MASKS)


@dataclass(slots=True)
class Rows:
    """What a model computes in one forward.

    tokens: int32 [T], writable; offsets: int32 [T], position of every row counted from the first;
    mask: float32 [T, T], 0 where row i attends row j and ``BLOCKED`` elsewhere; all rows attend the
    committed text, and none a later row. ``is_chain`` when every row follows the one before it.
    Logits are wanted from row ``logits_from`` on. mask_places: int32 [M], place of every mask row
    in its group; these rows begin at ``masks_from``, and their tokens count for nothing.
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
    # A copy: compiled code would be compiled anew for a read-only array.
    own = np.array(tokens, np.int32)
    return Rows(own, np.arange(count, dtype=np.int32), _causal(count), True, logits_from)


def tree_rows(
    pending: TokenArray, tree: DraftTree, padding: int = 0, groups: MaskGroups | None = None
) -> Rows:
    """Rows of ``pending`` (at least one token), ``tree`` and the mask rows of ``groups``, in this
    order, and ``padding`` rows of no meaning that bring the count to one that the device computes
    fast."""
    masks = groups.rows if groups is not None else 0
    if tree.rows is not None and not (padding or masks) and len(pending) == 1:
        return tree.rows
    groups, nodes = groups or MaskGroups.none(), len(pending) + len(tree)
    count = nodes + masks
    if not padding and count == len(pending):
        return chain_rows(pending, len(pending) - 1)
    if not padding and not masks and tree.is_chain:
        return chain_rows(np.concatenate([pending, tree.tokens]), len(pending) - 1)
    tokens, offsets, mask, places, is_chain = _tree_layout(
        np.asarray(pending, np.int32),
        np.asarray(tree.tokens, np.int32),
        np.asarray(tree.parents, np.int32),
        groups.nodes,
        groups.sizes,
        padding,
        BLOCKED,
    )
    return Rows(tokens, offsets, mask, is_chain, len(pending) - 1, nodes, places)


@lru_cache(maxsize=64)
def _causal(count: int) -> NDArray[np.float32]:
    return np.triu(np.full((count, count), BLOCKED, np.float32), 1)


@njit(cache=True, nogil=True)
def _tree_layout(  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    pending_tokens, node_tokens, parents, group_nodes, group_sizes, padding, blocked
):
    pending, nodes = len(pending_tokens), len(node_tokens)
    masks = 0
    for size in group_sizes:
        masks += size
    count = pending + nodes + masks + padding
    tokens = np.zeros(count, np.int32)
    tokens[:pending] = pending_tokens
    tokens[pending : pending + nodes] = node_tokens
    offsets = np.empty(count, np.int32)
    mask = np.full((count, count), blocked, np.float32)
    places = np.empty(masks, np.int32)
    for row in range(pending):
        offsets[row] = row
        mask[row, : row + 1] = 0
    is_chain = padding == 0 and masks == 0
    group = place = 0
    for node in range(nodes + masks):
        row = pending + node
        if node < nodes:
            above = pending + parents[node]
            is_chain = is_chain and parents[node] == node - 1
        else:
            above = pending + group_nodes[group] if place == 0 else row - 1
            places[node - nodes] = place
            place += 1
            if place == group_sizes[group]:
                group, place = group + 1, 0
        offsets[row] = offsets[above] + 1
        mask[row] = mask[above]
        mask[row, row] = 0
    for row in range(pending + nodes + masks, count):
        offsets[row] = 0
        mask[row, row] = 0
    return tokens, offsets, mask, places, is_chain
