"""Yields that the drafts of one request would have had in forwards of other numbers of rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np

from accel.draft_tree import DraftTree, TokenArray

Learn = Callable[[int, dict[int, float]], None]


class DraftLog:
    """The drafts of one request, each as large as the most rows take.

    A tree that grows best first is, for fewer rows, its own beginning; so once the text is known,
    one draft tells what it would have yielded at every number of rows.
    """

    def __init__(self, widths: Sequence[int], learn: Learn) -> None:
        """``widths``: batch sizes to compare, the pending token's row among them;
        ``learn`` is given the tokens of the text and the forwards that each would have taken."""
        self.most_nodes = max(widths) - 1
        """Of a draft that is noted."""
        self._widths, self._learn = tuple(widths), learn
        self._drafts: list[tuple[int, DraftTree]] = []

    def note(self, written: int, tree: DraftTree) -> None:
        """The forward after ``written`` tokens of the text begins, and this was drafted for it."""
        self._drafts.append((written, tree))

    def end(self, text: TokenArray) -> None:
        """The text, int32 [n], is whole."""
        if self._drafts and self._drafts[-1][0] < len(text):
            self._learn(len(text), self.forwards(text))

    def forwards(self, text: TokenArray) -> dict[int, float]:
        """Return the forwards of each number of rows that the text would have taken.

        Verification by fewer rows goes on from the middle of a tree by what is below that node.
        One by more rows skips forwards; where its next would begin inside of what a forward
        yielded, that counts by its part.
        """
        counts = dict.fromkeys(self._widths, 0.0)
        reached = dict.fromkeys(self._widths, 0)
        ends = [*(start for start, _ in self._drafts[1:]), len(text)]
        for (start, tree), end in zip(self._drafts, ends, strict=True):
            path = tree.accepted_path(text[start:])
            levels = _levels(tree, path)
            for rows in self._widths:
                offset = max(reached[rows], start)
                if start < offset < end:
                    counts[rows] += (end - offset) / _brought(levels, path, 0, rows)
                    offset = end
                while offset < end:
                    counts[rows] += 1
                    offset += _brought(levels, path, offset - start, rows)
                reached[rows] = offset
        return counts


def _levels(tree: DraftTree, path: list[int]) -> TokenArray:
    """Return the number of nodes of the path that each node is below, itself among them. int32
    [nodes]."""
    levels = np.zeros(len(tree), np.int32)
    depth_of = {node: number for number, node in enumerate(path)}
    for node, parent in enumerate(tree.parents.tolist()):
        levels[node] = (
            depth_of[node] + 1 if node in depth_of else levels[parent] if parent >= 0 else 0
        )
    return levels


def _brought(levels: TokenArray, path: list[int], done: int, rows: int) -> int:
    """Return the tokens of a forward of ``rows`` rows after the first ``done`` nodes of a path."""
    rest = path[done:]
    if not rest or rows == 1:
        return 1
    first = path[done - 1] + 1 if done else 0
    below = first + np.flatnonzero(levels[first:] >= done)[: rows - 1]
    return 1 + bisect_right(rest, int(below[-1]))
