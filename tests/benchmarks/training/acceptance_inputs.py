"""The inputs of a candidate, and its score by them, one after another, for fitting the acceptance
model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.drafting.retrieval.acceptance_model import (
    CANDIDATE_INPUTS,
    COUNT_INPUTS,
    ESCAPE_HIDDEN,
    HIDDEN,
    NODE_INPUTS,
    AcceptanceWeights,
    Floats,
    logarithm,
)
from accel.drafting.retrieval.candidate_features import GROUPS, LEVELS, MATCHED_GROUPS, Evidence
from accel.drafting.retrieval.token_classes import SHAPES
from accel.native.numba_cache import compiled


@compiled(borrows=True)
def matched_inputs(
    evidence: Evidence, slot: int, indices: NDArray[np.int16], values: Floats
) -> int:
    """Write the inputs of a candidate that matches give and are not zero; returns how many."""
    count = 0
    counts, totals = evidence.counts, evidence.totals
    for group in range(MATCHED_GROUPS):
        for level in range(LEVELS):
            occurrences = counts[slot, group, level]
            if occurrences <= 0:
                break  # no longer match either
            place = group * LEVELS + level
            indices[count] = place
            values[count] = logarithm(occurrences)
            indices[count + 1] = COUNT_INPUTS + place
            values[count + 1] = occurrences / max(totals[group, level], np.float32(1))
            count += 2
    return count


@compiled(borrows=True)
def near_inputs(evidence: Evidence, item: int, indices: NDArray[np.int16], values: Floats) -> int:
    """Write the inputs, not zero, of a token for where it stands near; returns how many."""
    count = 0
    counts = evidence.near_counts
    for group in range(GROUPS - MATCHED_GROUPS):
        for level in range(LEVELS):
            occurrences = counts[item, group, level]
            if occurrences > 0:
                indices[count] = (MATCHED_GROUPS + group) * LEVELS + level
                values[count] = logarithm(occurrences)
                count += 1
    return count


@compiled(fastmath=True, borrows=True)
def score_of(
    weights: AcceptanceWeights,
    start: Floats,
    last_shape: int,
    shape: int,
    indices: NDArray[np.int16],
    values: Floats,
    count: int,
    hidden: Floats,
) -> float:
    """Score of a candidate: ``start`` of its hidden layer, and ``count`` more inputs. hidden:
    float32 [HIDDEN], written, before the threshold."""
    matrix, of_shape, out = weights.candidate, weights.shape, weights.out
    for h in range(HIDDEN):
        hidden[h] = start[h] + of_shape[shape, h]
    for i in range(count):
        value, row = values[i], indices[i]
        for h in range(HIDDEN):
            hidden[h] += value * matrix[row, h]
    score = weights.pair[last_shape, shape]
    for h in range(HIDDEN):
        score += max(hidden[h], np.float32(0)) * out[h]
    return score


def random_weights(seed: int) -> AcceptanceWeights:
    """Return the weights with which learning begins."""
    random = np.random.default_rng(seed)

    def matrix(inputs: int, outputs: int, scale: float) -> Floats:
        return (random.standard_normal((inputs, outputs)) * scale).astype(np.float32)

    return AcceptanceWeights(
        matrix(CANDIDATE_INPUTS, HIDDEN, 0.1),
        matrix(NODE_INPUTS, HIDDEN, 0.1),
        np.zeros(HIDDEN, np.float32),
        matrix(SHAPES, HIDDEN, 0.0),
        matrix(SHAPES, HIDDEN, 0.0),
        matrix(1, HIDDEN, 0.3)[0],
        matrix(SHAPES, SHAPES, 0.0),
        matrix(NODE_INPUTS, ESCAPE_HIDDEN, 0.1),
        np.zeros(ESCAPE_HIDDEN, np.float32),
        matrix(1, ESCAPE_HIDDEN, 0.3)[0],
        np.zeros(SHAPES, np.float32),
    )
