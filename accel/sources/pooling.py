"""The opinions of retrieval and of mask rows about a node's next token, made one.

With p of the mask rows and q of the acceptance model, a token's score is a log p + b log q, and c
more where retrieval knows it at all. How much each opinion counts (a, b, c) is linear in what can
be seen of the node: its depth, how sure either is, how long the best match is, and whether both
prefer the same token. The weights are learnt with the mask rows (``accel.training.pooling``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.sources.compiled import compiled_with

Floats = NDArray[np.float32]

DEPTHS = 4
FEATURES = DEPTHS + 5
LEAST_CHANCE = 1e-5
"""Of mask rows: less counts as this much."""
LEAST_UNKNOWN = 0.003
"""Chance of "no candidate" at least."""
LEAST_WEIGHT = 0.05

POOLING = np.array(
    [
        [0.8147, 0.5554, 0.3013],
        [0.7565, 0.6370, 0.2259],
        [0.7402, 0.6488, 0.3951],
        [0.7157, 0.6683, 0.6093],
        [0.0690, 0.0281, -0.8639],
        [-0.0292, 0.7583, -0.1608],
        [0.4202, -0.1704, -0.3033],
        [-0.2062, 0.2389, 0.9798],
        [0.0754, -0.0653, 0.5235],
    ],
    np.float32,
)
"""For mask rows that come without weights of their own. float32 [FEATURES, 3]."""


@compiled_with(borrows=True)
def opinions(
    pooling: Floats, depth: int, none: float, sure: float, guessed: float, match: int, same: bool
) -> tuple[float, float, float]:
    """Weights a, b and c of a node. pooling: float32 [FEATURES, 3]; ``none``: chance of "no
    candidate"; ``sure``, ``guessed``: highest chance by retrieval and by mask rows; ``match``:
    longest match of retrieval's first; ``same``: both have the same first."""
    facts = (
        np.log(max(none, LEAST_UNKNOWN)) / 3,
        np.log(max(sure, 1e-3)) / 3,
        np.log(max(guessed, 1e-3)) / 3,
        np.log1p(match) / 3,
        1.0 if same else 0.0,
    )
    place = min(depth, DEPTHS - 1)
    a, b, c = 1.0 * pooling[place, 0], 1.0 * pooling[place, 1], 1.0 * pooling[place, 2]
    for i in range(FEATURES - DEPTHS):
        a += facts[i] * pooling[DEPTHS + i, 0]
        b += facts[i] * pooling[DEPTHS + i, 1]
        c += facts[i] * pooling[DEPTHS + i, 2]
    return max(a, LEAST_WEIGHT), max(b, LEAST_WEIGHT), c


@compiled_with(borrows=True)
def pool(
    pooling: Floats,
    depth: int,
    tokens: TokenArray,
    chances: Floats,
    known: TokenArray,
    matches: TokenArray,
    probabilities: Floats,
    pooled: Floats,
    pooled_known: Floats,
) -> None:
    """Write the chances of both together, which sum to one.

    tokens: int32 [n], ascending, and chances [n] by mask rows; known: int32 [m], what retrieval
    knows, with its longest matches and probabilities [m]. pooled: [n], 0 where retrieval knows the
    token; pooled_known: [m].
    """
    count = len(known)
    none, sure, first, match = 1.0, 0.0, -1, 0
    pooled[:] = 1.0
    for slot in range(count):
        none -= probabilities[slot]
        if probabilities[slot] > sure:
            sure, first, match = probabilities[slot], known[slot], matches[slot]
        place = np.searchsorted(tokens, known[slot])
        if place < len(tokens) and tokens[place] == known[slot]:
            pooled[place] = 0.0
            pooled_known[slot] = max(chances[place], LEAST_CHANCE)
        else:
            pooled_known[slot] = LEAST_CHANCE
    none = max(none, LEAST_UNKNOWN)
    unknown, guess = 1e-6, 0
    for place in range(len(tokens)):
        if pooled[place] > 0:
            unknown += chances[place]
        if chances[place] > chances[guess]:
            guess = place
    a, b, c = opinions(pooling, depth, none, sure, chances[guess], match, tokens[guess] == first)
    highest = -1e30
    for slot in range(count):
        known_chance = max(probabilities[slot], 1e-7)
        score = a * np.log(pooled_known[slot]) + b * np.log(known_chance) + c
        pooled_known[slot] = score
        highest = max(highest, score)
    for place in range(len(tokens)):
        if pooled[place] > 0:
            left = max(none * chances[place] / unknown, 1e-7)
            pooled[place] = a * np.log(max(chances[place], LEAST_CHANCE)) + b * np.log(left)
            highest = max(highest, pooled[place])
        else:
            pooled[place] = 1.0  # no logarithm of a chance is above 0
    total = 0.0
    for slot in range(count):
        pooled_known[slot] = np.exp(pooled_known[slot] - highest)
        total += pooled_known[slot]
    for place in range(len(tokens)):
        pooled[place] = np.exp(pooled[place] - highest) if pooled[place] <= 0 else 0.0
        total += pooled[place]
    for slot in range(count):
        pooled_known[slot] /= total
    for place in range(len(tokens)):
        pooled[place] /= total
