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
MOST_ROWS = 16
PATIENCE = 12
"""Nodes after the best count that are still looked at."""


@njit(nogil=True, cache=True)
def share_rows(
    parents: TokenArray,
    probabilities: NDArray[np.float32],
    seconds: NDArray[np.float64],
    pending: int,
    trust: float,
    overhead_s: float,
    gains: NDArray[np.float64],
    cost_s: float,
) -> tuple[int, TokenArray]:
    """The count of nodes, and how many mask rows the root and each of them get."""
    count = len(parents)
    stops = np.zeros(count + 1)  # the root first
    stops[0] = 1.0
    expected, best_rate, best_nodes = 1.0, 0.0, 0
    sizes, best_sizes = np.zeros(count + 1, np.int32), np.zeros(count + 1, np.int32)
    for nodes in range(count + 1):
        if nodes:
            chance = min(trust * probabilities[nodes - 1], 1.0)
            stops[nodes] = chance
            stops[parents[nodes - 1] + 1] -= chance
            expected += chance
        if pending + nodes >= len(seconds) or nodes > best_nodes + PATIENCE:
            break
        sizes[:] = 0
        gained = spent = 0.0
        for rows in range(MOST_ROWS + 1):
            if pending + nodes + rows >= len(seconds):
                break
            if rows:
                place, most = -1, 0.0
                for node in range(nodes + 1):
                    if sizes[node] < len(gains) and stops[node] * gains[sizes[node]] > most:
                        place, most = node, stops[node] * gains[sizes[node]]
                if place < 0:
                    break
                if sizes[place] == 0:
                    spent += cost_s * stops[place]
                sizes[place] += 1
                gained += most
            rate = (expected + gained) / (seconds[pending + nodes + rows] + overhead_s + spent)
            if rate > best_rate:
                best_rate, best_nodes = rate, nodes
                best_sizes[:] = sizes
    return best_nodes, best_sizes


def fit_with_masks(
    tree: DraftTree,
    pending: int,
    seconds: NDArray[np.float64],
    trust: float,
    overhead_s: float,
    gains: NDArray[np.float64],
    cost_s: float,
) -> tuple[DraftTree, MaskGroups]:
    """The prefix of ``tree`` and the mask rows that bring the most tokens per second, rows taken by
    what they add. seconds: float64, time of a forward by its rows; gains, cost_s: of a group that
    is used, see ``sources.protocol.Guesser``."""
    nodes, sizes = share_rows(
        tree.parents.astype(np.int32),
        tree.probabilities.astype(np.float32),
        seconds,
        pending,
        trust,
        overhead_s,
        gains,
        cost_s,
    )
    places = np.flatnonzero(sizes).astype(np.int32)
    return tree.prefix(nodes), MaskGroups(places - np.int32(1), sizes[places])


def likely_stops(tree: DraftTree, size: int, most: int, least: float = 0.05) -> MaskGroups:
    """Groups behind the ``most`` nodes, root included, where the text is likeliest to stop."""
    stops = np.concatenate([[1.0], tree.probabilities.astype(np.float64)])
    np.subtract.at(stops, tree.parents + 1, tree.probabilities)
    likely = np.argsort(-stops, kind="stable")[:most]
    return MaskGroups.alike((likely[stops[likely] >= least] - 1).tolist(), size)
