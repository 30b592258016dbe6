"""Learns the acceptance model that ships: replays drafts on known texts, fits what it saw.

Examples are taken where drafting would look: at the root of every tree and at every node of the
path that turned out right, with the model of the round before choosing the trees.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.drafting.base import DraftRequest
from accel.drafting.retrieval.acceptance_model import (
    CANDIDATE_INPUTS,
    ESCAPE_HIDDEN,
    HIDDEN,
    NODE_INPUTS,
    STATE_INPUTS,
    AcceptanceWeights,
    Floats,
    hidden_of_node,
    node_inputs,
    score_of_none,
)
from accel.drafting.retrieval.candidate_features import (
    MAX_CANDIDATES,
    Evidence,
    MatchRows,
    TextView,
    forget,
    gather,
)
from accel.drafting.retrieval.drafter import RetrievalDrafter
from accel.drafting.retrieval.nearby_tokens import note_surroundings
from accel.drafting.retrieval.token_classes import TokenShapes
from accel.drafting.retrieval.tree_search import WIDE, describe, write_path
from accel.native.numba_cache import compiled
from tests.benchmarks.training.acceptance_inputs import matched_inputs, near_inputs, score_of
from tests.draft_trees import accepted_path
from tests.drafting_views import view_of

BATCH = 64


class Examples(NamedTuple):
    """Nodes with their candidates, and which one was right, in flat arrays.

    nodes: float32 [n, NODE_INPUTS]; last_shapes: int8 [n]; labels: int32 [n], the right candidate
    of the node or -1; firsts: int64 [n + 1], where the candidates of a node begin; shapes: int8
    [candidates]; entries: int64 [candidates + 1], where the inputs of a candidate begin;
    indices: int16 and values: float32, the inputs that are not zero.
    """

    nodes: Floats
    last_shapes: NDArray[np.int8]
    labels: TokenArray
    firsts: NDArray[np.int64]
    shapes: NDArray[np.int8]
    entries: NDArray[np.int64]
    indices: NDArray[np.int16]
    values: Floats

    @classmethod
    def allocate(cls, nodes: int, candidates: int, inputs: int) -> Examples:
        """Room for so many of each."""
        return cls(
            np.zeros((nodes, NODE_INPUTS), np.float32),
            np.zeros(nodes, np.int8),
            np.zeros(nodes, np.int32),
            np.zeros(nodes + 1, np.int64),
            np.zeros(candidates, np.int8),
            np.zeros(candidates + 1, np.int64),
            np.zeros(inputs, np.int16),
            np.zeros(inputs, np.float32),
        )


@compiled()
def _note_path(
    text: TextView,
    rows: MatchRows,
    shapes: TokenShapes,
    accepted: int,
    evidence: Evidence,
    tree_tokens: TokenArray,
    tree_parents: TokenArray,
    probabilities: Floats,
    path: TokenArray,
    continuation: TokenArray,
    examples: Examples,
    noted: int,
) -> int:
    """Note the root and the nodes of ``path`` as examples; returns how many there are now."""
    state = np.empty(STATE_INPUTS, np.float32)
    near = note_surroundings(text, shapes, evidence)
    row_count = len(rows.lengths)
    for row in range(row_count):
        rows.following[row] = row + 1 if row + 1 < row_count else -1
    first_row = 0 if row_count else -1
    above = 1.0
    for depth in range(min(len(path) + 1, len(continuation))):
        if noted + 1 >= len(examples.firsts):
            break
        node = path[depth - 1] if depth else -1
        probability = probabilities[node] if depth else 1.0
        write_path(text, tree_tokens, tree_parents, node, depth)
        wide = probability >= WIDE
        count = gather(text, depth, rows, first_row, shapes, near if wide else 0, evidence)
        candidate = examples.firsts[noted]
        entry = examples.entries[candidate]
        if candidate + count >= len(examples.shapes) or entry + count * CANDIDATE_INPUTS >= len(
            examples.indices
        ):
            forget(evidence, count)
            break
        describe(state, depth, probability, probability / above, wide, accepted)
        node_inputs(evidence, state, examples.nodes[noted])
        last = text.tokens[text.stop + depth - 1]
        examples.last_shapes[noted] = shapes.shapes[last] if last < len(shapes.shapes) else 0
        examples.labels[noted] = -1
        first_row = -1
        for slot in range(count):
            token = evidence.tokens[slot]
            if token == continuation[depth]:
                examples.labels[noted] = slot
                first_row = evidence.heads[slot]
            examples.shapes[candidate] = shapes.shapes[token] if token < len(shapes.shapes) else 0
            entry += matched_inputs(
                evidence, slot, examples.indices[entry:], examples.values[entry:]
            )
            if evidence.near_items[slot] >= 0:
                entry += near_inputs(
                    evidence,
                    evidence.near_items[slot],
                    examples.indices[entry:],
                    examples.values[entry:],
                )
            candidate += 1
            examples.entries[candidate] = entry
        noted += 1
        examples.firsts[noted] = candidate
        above = probability
        forget(evidence, count)
    return noted


def observe(
    drafter: RetrievalDrafter,
    texts: Iterable[tuple[DraftRequest, TokenArray]],
    max_nodes: int,
    examples: Examples,
) -> int:
    """Replay ``drafter`` on requests and their right answers (int32); returns nodes noted."""
    noted = 0
    for request, answer in texts:
        if noted == len(examples.labels):
            break
        drafter.begin(request)
        done = 0
        while done < len(answer):
            view = view_of(drafter)
            tree = drafter.draft(max_nodes)
            rest = answer[done : done + max_nodes + 1]
            path = accepted_path(tree, rest)
            noted = _note_path(
                *view,
                tree.tokens,
                tree.parents,
                tree.probabilities,
                np.array(path, np.int32),
                rest,
                examples,
                noted,
            )
            tokens = rest[: len(path) + 1]
            drafter.commit(tree, path, tokens)
            done += len(tokens)
    return noted


@compiled(fastmath=True)
def _learn_none(
    marginal_cost: float,
    last: int,
    inputs: Floats,
    hidden: Floats,
    weights: AcceptanceWeights,
    marginal: AcceptanceWeights,
) -> None:
    """Add the slopes of the score of "none"; ``hidden`` is that of ``score_of_none``."""
    marginal.escape_shape[last] += marginal_cost
    for h in range(ESCAPE_HIDDEN):
        if hidden[h] > 0:
            marginal.escape_out[h] += marginal_cost * hidden[h]
            into = marginal_cost * weights.escape_out[h]
            marginal.escape_bias[h] += into
            for i in range(NODE_INPUTS):
                marginal.escape_node[i, h] += inputs[i] * into


@compiled(fastmath=True)
def _learn_from(
    examples: Examples,
    chosen: NDArray[np.int64],
    weights: AcceptanceWeights,
    marginal: AcceptanceWeights,
) -> float:
    """Add the slopes of the loss over the ``chosen`` nodes; returns the loss in nats."""
    node_hidden = np.empty(HIDDEN, np.float32)
    none_hidden = np.empty(ESCAPE_HIDDEN, np.float32)
    hidden = np.empty((MAX_CANDIDATES, HIDDEN), np.float32)
    chances = np.empty(MAX_CANDIDATES, np.float32)
    into_node = np.empty(HIDDEN, np.float32)
    loss = 0.0
    for node in chosen:
        inputs = examples.nodes[node]
        last = examples.last_shapes[node]
        first = examples.firsts[node]
        count = examples.firsts[node + 1] - first
        label = examples.labels[node]
        hidden_of_node(weights, inputs, last, node_hidden)
        none = score_of_none(weights, inputs, last, none_hidden)
        highest = none
        for c in range(count):
            begin = examples.entries[first + c]
            end = examples.entries[first + c + 1]
            chances[c] = score_of(
                weights,
                node_hidden,
                last,
                examples.shapes[first + c],
                examples.indices[begin:end],
                examples.values[begin:end],
                end - begin,
                hidden[c],
            )
            highest = max(highest, chances[c])
        total = np.exp(none - highest)
        for c in range(count):
            chances[c] = np.exp(chances[c] - highest)
            total += chances[c]
        none_chance = np.exp(none - highest) / total
        right = none_chance if label < 0 else chances[label] / total
        loss -= np.log(max(right, 1e-9))

        _learn_none(
            none_chance - (1.0 if label < 0 else 0.0), last, inputs, none_hidden, weights, marginal
        )
        into_node[:] = 0
        for c in range(count):
            marginal_cost = chances[c] / total - (1.0 if c == label else 0.0)
            if abs(marginal_cost) < 1e-5:
                continue
            shape = examples.shapes[first + c]
            marginal.pair[last, shape] += marginal_cost
            for h in range(HIDDEN):
                if hidden[c, h] > 0:
                    marginal.out[h] += marginal_cost * hidden[c, h]
                    hidden[c, h] = marginal_cost * weights.out[h]
                else:
                    hidden[c, h] = 0
                into_node[h] += hidden[c, h]
                marginal.shape[shape, h] += hidden[c, h]
            for e in range(examples.entries[first + c], examples.entries[first + c + 1]):
                row = marginal.candidate[examples.indices[e]]
                value = examples.values[e]
                for h in range(HIDDEN):
                    row[h] += value * hidden[c, h]
        for h in range(HIDDEN):
            marginal.bias[h] += into_node[h]
            marginal.last_shape[last, h] += into_node[h]
        for i in range(NODE_INPUTS):
            value = inputs[i]
            if value != 0:
                for h in range(HIDDEN):
                    marginal.node[i, h] += value * into_node[h]
    return loss


class _Adam:
    """Adam on one array of weights."""

    def __init__(self, weights: Floats, decay: float) -> None:
        self._weights = weights
        self._decay = decay
        self._mean = np.zeros_like(weights)
        self._square = np.zeros_like(weights)

    def step(self, marginal_cost: Floats, rate: float, number: int) -> None:
        """The ``number``-th step, counted from 1."""
        marginal_cost = marginal_cost + self._decay * self._weights
        self._mean += 0.1 * (marginal_cost - self._mean)
        self._square += 0.01 * (marginal_cost * marginal_cost - self._square)
        mean = self._mean / (1 - 0.9**number)
        square = self._square / (1 - 0.99**number)
        self._weights -= rate * mean / (np.sqrt(square) + 1e-6)


def fit(
    weights: AcceptanceWeights,
    examples: Examples,
    count: int,
    *,
    epochs: int = 6,
    rate: float = 3e-3,
    decay: float = 1e-5,
    seed: int = 0,
) -> float:
    """Fit ``weights`` in place to the first ``count`` examples by Adam; returns the last loss.

    The rate falls linearly to nothing. The loss is in nats per node.
    """
    random = np.random.default_rng(seed)
    marginal = AcceptanceWeights(*(np.zeros_like(part) for part in weights))
    optimizers = [_Adam(part, decay) for part in weights]
    steps = epochs * -(-count // BATCH)
    step = 0
    loss = 0.0
    for _ in range(epochs):
        loss = 0.0
        order = random.permutation(count)
        for begin in range(0, count, BATCH):
            for part in marginal:
                part.fill(0)
            batch = order[begin : begin + BATCH]
            loss += _learn_from(examples, batch, weights, marginal)
            now = rate * (1 - step / steps)
            step += 1
            for optimizer, marginal_cost in zip(optimizers, marginal, strict=True):
                optimizer.step(marginal_cost / np.float32(len(batch)), now, step)
    return loss / max(count, 1)
