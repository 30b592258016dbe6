"""Which nodes of a draft tree get mask rows, and how large the tree is then worth being.

A group of rows is worth its ``gain`` in the next forward if the text stops where it hangs. The
planner takes the tree and the groups with the most expected tokens per second together.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray
from accel.rows import MaskGroups

MOST_GROUPS = 6


@njit(nogil=True, cache=True)
def _best(
    parents: TokenArray,
    probabilities: NDArray[np.float32],
    seconds: NDArray[np.float64],
    pending: int,
    trust: float,
    overhead_s: float,
    gain: float,
    cost_s: float,
    size: int,
) -> tuple[int, TokenArray]:
    count = len(parents)
    stops = np.zeros(count + 1)  # the root first
    stops[0] = 1.0
    expected, best_rate, best_nodes, best_count = 1.0, 0.0, 0, 0
    best_groups = np.empty(MOST_GROUPS, np.int32)
    groups = np.empty(MOST_GROUPS, np.int32)
    for nodes in range(count + 1):
        if nodes:
            chance = min(trust * probabilities[nodes - 1], 1.0)
            stops[nodes] = chance
            stops[parents[nodes - 1] + 1] -= chance
            expected += chance
        if pending + nodes >= len(seconds):
            break
        covered = 0.0
        for number in range(MOST_GROUPS + 1):
            rows = pending + nodes + number * size
            if number:
                place = -1
                for node in range(nodes + 1):
                    free = True
                    for taken in range(number - 1):
                        free = free and groups[taken] != node
                    if free and (place < 0 or stops[node] > stops[place]):
                        place = node
                if place < 0 or stops[place] <= 0 or rows >= len(seconds):
                    break
                groups[number - 1] = place
                covered += stops[place]
            spent = seconds[rows] + overhead_s + cost_s * covered
            rate = (expected + gain * covered) / spent
            if rate > best_rate:
                best_rate, best_nodes, best_count = rate, nodes, number
                best_groups[:number] = groups[:number]
    return best_nodes, best_groups[:best_count] - 1


def fit_with_masks(
    tree: DraftTree,
    pending: int,
    seconds: NDArray[np.float64],
    trust: float,
    overhead_s: float,
    gain: float,
    cost_s: float,
    size: int,
) -> tuple[DraftTree, MaskGroups]:
    """The prefix of ``tree`` and the groups of ``size`` mask rows that bring the most tokens per
    second. seconds: float64, time of a forward by its rows; gain, cost_s: of a group that is used,
    see ``sources.protocol.Guesser``."""
    nodes, groups = _best(
        tree.parents.astype(np.int32),
        tree.probabilities.astype(np.float32),
        seconds,
        pending,
        trust,
        overhead_s,
        gain,
        cost_s,
        size,
    )
    return tree.prefix(nodes), MaskGroups(groups.astype(np.int32), size)


def likely_stops(tree: DraftTree, size: int, most: int, least: float = 0.05) -> MaskGroups:
    """Groups behind the ``most`` nodes, root included, where the text is likeliest to stop."""
    stops = np.concatenate([[1.0], tree.probabilities.astype(np.float64)])
    np.subtract.at(stops, tree.parents + 1, tree.probabilities)
    likely = np.argsort(-stops, kind="stable")[:most]
    return MaskGroups((likely[stops[likely] >= least] - 1).astype(np.int32), size)
