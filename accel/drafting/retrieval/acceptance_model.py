"""Probability of each candidate of a node, from the evidence for it: a small learnt network.

Probabilities are a softmax over scores and "none of them". The weights that ship
(``acceptance_prior.npz``) are fitted by replay (``tests.benchmarks.training.acceptance_fit``) and
know no token ids, so they hold for any vocabulary.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.drafting.retrieval.candidate_features import (
    GROUPS,
    LEVELS,
    MATCHED_GROUPS,
    MAX_CANDIDATES,
    MAX_NEAR,
    SHAPE,
    Evidence,
)
from accel.drafting.retrieval.token_classes import SHAPES
from accel.native.numba_cache import compiled
from accel.native.simd import (
    LANES,
    exp,
    load,
    maximum,
    multiply_add,
    prefetch_all,
    reduce_add,
    splat,
    store,
)

Floats = NDArray[np.float32]

COUNT_INPUTS = GROUPS * LEVELS
SHARE_INPUTS = MATCHED_GROUPS * LEVELS
CANDIDATE_INPUTS = COUNT_INPUTS + SHARE_INPUTS
STATE_INPUTS = 6
NODE_INPUTS = MATCHED_GROUPS * LEVELS + STATE_INPUTS
HIDDEN = LANES
ESCAPE_HIDDEN = LANES
PRIOR = Path(__file__).with_name("acceptance_prior.npz")

_LOGARITHMS = (np.log1p(np.arange(4096)) / 3).astype(np.float32)


class AcceptanceWeights(NamedTuple):
    """float32 all. The first index of a matrix is the input."""

    candidate: Floats
    node: Floats
    bias: Floats
    last_shape: Floats
    shape: Floats
    out: Floats
    pair: Floats
    escape_node: Floats
    escape_bias: Floats
    escape_out: Floats
    escape_shape: Floats

    @classmethod
    @cache
    def load(cls, file: Path = PRIOR) -> AcceptanceWeights:
        """Return the weights in ``file``, read once."""
        with np.load(file) as stored:
            return cls(*(stored[name].astype(np.float32) for name in cls._fields))


class AcceptanceBuffers(NamedTuple):
    """Room for scoring one node, float32 all; near_hidden lasts for a tree."""

    inputs: Floats
    node_hidden: Floats
    escape_hidden: Floats
    parts: Floats
    scores: Floats
    near_hidden: Floats
    state: Floats
    probabilities: Floats

    @classmethod
    def allocate(cls) -> AcceptanceBuffers:
        """Allocate the arrays."""
        sizes: tuple[Any, ...] = (
            *(NODE_INPUTS, HIDDEN, ESCAPE_HIDDEN, (MATCHED_GROUPS, LEVELS)),
            *(MAX_CANDIDATES + LANES, (MAX_NEAR, HIDDEN), STATE_INPUTS, MAX_CANDIDATES),
        )
        return cls(*(np.empty(size, np.float32) for size in sizes))


@njit(nogil=True, inline="always")
def logarithm(count: float) -> float:
    return _LOGARITHMS[min(int(count + 0.5), len(_LOGARITHMS) - 1)]


@compiled(forceinline=True, borrows=True)
def node_inputs(evidence: Evidence, state: Floats, inputs: Floats) -> None:
    """Write what the node itself is: how much evidence there is in all, and ``state``. state:
    float32 [STATE_INPUTS], see ``tree_search.describe``; inputs: float32 [NODE_INPUTS]."""
    totals = evidence.totals
    for group in range(MATCHED_GROUPS):
        for level in range(LEVELS):
            inputs[group * LEVELS + level] = logarithm(totals[group, level])
    for index in range(len(state)):
        inputs[MATCHED_GROUPS * LEVELS + index] = state[index]


@compiled(forceinline=True, borrows=True)
def hidden_of_near(
    weights: AcceptanceWeights, evidence: Evidence, near: int, scratch: AcceptanceBuffers
) -> None:
    """Write what being near adds to the hidden layer of each of ``near`` tokens, once a
    tree."""
    matrix, counts, near_hidden = weights.candidate, evidence.near_counts, scratch.near_hidden
    for item in range(near):
        hidden = splat(np.float32(0))
        for group in range(GROUPS - MATCHED_GROUPS):
            for level in range(LEVELS):
                occurrences = counts[item, group, level]
                if occurrences > 0:
                    row = (MATCHED_GROUPS + group) * LEVELS + level
                    value = splat(logarithm(occurrences))
                    hidden = multiply_add(value, load(matrix, row * HIDDEN), hidden)
        store(near_hidden, item * HIDDEN, hidden)


@compiled(forceinline=True, borrows=True)
def hidden_of_node(
    weights: AcceptanceWeights, inputs: Floats, last_shape: int, hidden: Floats
) -> None:
    """Add the node's share to the hidden layer of its candidates. hidden: [HIDDEN]."""
    matrix = weights.node
    summed = load(weights.bias, 0) + load(weights.last_shape, last_shape * HIDDEN)
    for i in range(NODE_INPUTS):
        if inputs[i] != 0:
            summed = multiply_add(splat(inputs[i]), load(matrix, i * HIDDEN), summed)
    store(hidden, 0, summed)


@compiled(forceinline=True, borrows=True)
def score_of_none(
    weights: AcceptanceWeights, inputs: Floats, last_shape: int, hidden: Floats
) -> float:
    """Score of "none of the candidates". hidden: float32 [ESCAPE_HIDDEN], written."""
    matrix, zero = weights.escape_node, splat(np.float32(0))
    summed = load(weights.escape_bias, 0)
    for i in range(NODE_INPUTS):
        if inputs[i] != 0:
            summed = multiply_add(splat(inputs[i]), load(matrix, i * HIDDEN), summed)
    store(hidden, 0, summed)
    score = reduce_add(maximum(summed, zero) * load(weights.escape_out, 0))
    return weights.escape_shape[last_shape] + score


@compiled(forceinline=True, borrows=True)
def fetch_weights(weights: AcceptanceWeights) -> None:
    """Have what scoring reads come from memory."""
    prefetch_all(weights.candidate, CANDIDATE_INPUTS * HIDDEN)
    prefetch_all(weights.node, NODE_INPUTS * HIDDEN)
    prefetch_all(weights.escape_node, NODE_INPUTS * HIDDEN)
    prefetch_all(weights.shape, SHAPES * HIDDEN)
    prefetch_all(weights.pair, SHAPES * SHAPES)


@compiled(error_model="numpy", forceinline=True, borrows=True)
def _scores_of(
    weights: AcceptanceWeights,
    evidence: Evidence,
    count: int,
    shapes: NDArray[np.int8],
    last_shape: int,
    scratch: AcceptanceBuffers,
) -> float:
    """Write the scores of the candidates and return the highest."""
    tokens, best = evidence.tokens, evidence.best
    counts, totals, reach = evidence.counts, evidence.totals, evidence.reach
    near_items, near_hidden = evidence.near_items, scratch.near_hidden
    matrix, of_shape, pair = weights.candidate, weights.shape, weights.pair
    partial_sums, scores = scratch.parts, scratch.scores
    node_hidden = load(scratch.node_hidden, 0)
    out, zero = load(weights.out, 0), splat(np.float32(0))
    for group in range(MATCHED_GROUPS):
        for level in range(LEVELS):
            partial_sums[group, level] = np.float32(1) / max(totals[group, level], np.float32(1))
    highest = np.float32(-np.inf)
    for slot in range(count):
        item, token = near_items[slot], tokens[slot]
        shape = shapes[token] if token < len(shapes) else np.int8(0)
        hidden = node_hidden + load(of_shape, shape * HIDDEN)
        if item >= 0:
            hidden = hidden + load(near_hidden, item * HIDDEN)
        for group in range(0 if best[slot] > 0 else SHAPE, MATCHED_GROUPS):
            for level in range(reach[slot, group]):
                occurrences = counts[slot, group, level]
                row = group * LEVELS + level
                value = splat(logarithm(occurrences))
                hidden = multiply_add(value, load(matrix, row * HIDDEN), hidden)
                value = splat(occurrences * partial_sums[group, level])
                hidden = multiply_add(value, load(matrix, (COUNT_INPUTS + row) * HIDDEN), hidden)
        score = pair[last_shape, shape] + reduce_add(maximum(hidden, zero) * out)
        scores[slot] = score
        highest = max(highest, score)
    return highest


@compiled(error_model="numpy", forceinline=True, borrows=True)
def probabilities_of(
    weights: AcceptanceWeights,
    evidence: Evidence,
    count: int,
    shapes: NDArray[np.int8],
    last_shape: int,
    state: Floats,
    scratch: AcceptanceBuffers,
    probabilities: Floats,
) -> None:
    """Write the probability of each of the ``count`` candidates, given that the path is right.

    ``hidden_of_near`` must have been called for this tree.
    """
    node_inputs(evidence, state, scratch.inputs)
    hidden_of_node(weights, scratch.inputs, last_shape, scratch.node_hidden)
    none = score_of_none(weights, scratch.inputs, last_shape, scratch.escape_hidden)
    logits = _scores_of(weights, evidence, count, shapes, last_shape, scratch)
    highest = max(np.float32(none), np.float32(logits))
    scores = scratch.scores
    for slot in range(count, (count + LANES - 1) // LANES * LANES):
        scores[slot] = -1e9
    summed, shift = splat(np.float32(0)), splat(highest)
    for slot in range(0, count, LANES):
        chances = exp(load(scores, slot) - shift)
        store(scores, slot, chances)
        summed = summed + chances
    share = np.float32(1) / (reduce_add(summed) + np.exp(np.float32(none) - highest))
    for slot in range(count):
        probabilities[slot] = scores[slot] * share
