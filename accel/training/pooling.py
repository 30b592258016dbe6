"""How much retrieval and mask rows count at each node: ``accel.sources.pooling``.

On the base's own texts the acceptance model and the mask rows are asked what follows at every
node of the true path, up to as many levels as there are mask rows; the few weights of the pooling
are then those under which the text is likeliest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from accel.draft_tree import DraftTree, TokenArray
from accel.mask_tokens import MaskTokens, Sampler
from accel.sources.acceptance import STATE_INPUTS, hidden_of_near, probabilities_of
from accel.sources.best_first import WIDE, describe, write_path
from accel.sources.calibration import depth_group
from accel.sources.evidence import MAX_CANDIDATES, forget, gather
from accel.sources.guesses import likeliest, sample
from accel.sources.mixture import MixtureDrafter
from accel.sources.mixture_room import View
from accel.sources.pooling import (
    DEPTHS,
    FEATURES,
    LEAST_CHANCE,
    LEAST_UNKNOWN,
    LEAST_WEIGHT,
    POOLING,
)
from accel.sources.protocol import DraftRequest
from accel.sources.surroundings import note_surroundings
from accel.sources.token_shapes import TokenShapes
from accel.training.frozen_base import FrozenBase, Text
from accel.training.mask_rows import Parameters, group_states

Floats = NDArray[np.float32]

TOKENS = 64
"""Tokens of a node that are looked at: half by retrieval, half by mask rows."""
STEP = 3
"""Every so many-th token of a text is a root."""
ITERATIONS = 30
PENALTY = 1e-3
"""Of the squared distance to the weights that ship."""


class Nodes(NamedTuple):
    """What was said at n nodes. known, chances: float32 [n, TOKENS], by retrieval (0 where it does
    not know the token) and by mask rows; valid: bool [n, TOKENS]; features: float32 [n, FEATURES];
    none: float32 [n], chance of "no candidate"; right: int64 [n], column of the true token."""

    known: Tensor
    chances: Tensor
    valid: Tensor
    features: Tensor
    none: Tensor
    right: Tensor


class _Said(NamedTuple):
    """Retrieval's candidates at a node. tokens, matches, rows: int32 [n]; probabilities [n]."""

    tokens: TokenArray
    probabilities: Floats
    matches: TokenArray
    rows: TokenArray


def nodes_of(
    base: FrozenBase, parameters: Parameters, text: Text, shapes: TokenShapes, step: int = STEP
) -> Nodes:
    """What both say along the base's own part of ``text``, at every ``step``-th token as root."""
    masks = len(parameters["embeddings"])
    weights = {name: value.detach() for name, value in parameters.items()}
    sampler = MaskTokens(weights, base.embedding, base.head).sampler
    assert sampler is not None
    head = base.head.float().numpy()
    # The group behind row p is used once the token at p + 1 is known: that is the root.
    anchors = torch.arange(text.prompt - 1, text.tokens.shape[1] - 1 - masks, step)
    with torch.no_grad():
        states = group_states(base, parameters, text, anchors.expand(len(text.tokens), -1))
    rows: list[tuple[Floats, Floats, NDArray[np.bool_], Floats, float, int]] = []
    for tokens, groups in zip(text.tokens.int().numpy(), states.float().numpy(), strict=True):
        drafter = MixtureDrafter(shapes)
        drafter.begin(DraftRequest(tokens[: text.prompt]))
        seen = text.prompt
        for anchor, group in zip(anchors.tolist(), groups, strict=True):
            root = anchor + 2
            drafter.commit(DraftTree.empty(), [], tokens[seen:root])
            seen = root
            truth = tokens[root : root + masks]
            guesses = _guesses(sampler, group, int(tokens[root - 1]), truth, head)
            for depth, said in enumerate(_known(drafter, truth)):
                rows.append(_row(said, guesses[depth], int(truth[depth]), depth))
    return Nodes(*(torch.from_numpy(np.array(column)) for column in zip(*rows, strict=True)))


def _guesses(
    sampler: Sampler, states: Floats, root: int, truth: TokenArray, head: Floats
) -> list[Floats]:
    """Chances [vocabulary] of what follows, by every row of a group on the true path."""
    found: list[Floats] = []
    memory = np.zeros(states.shape[1], np.float32)
    for depth, token in enumerate([root, *truth[:-1].tolist()]):
        chances, after = np.empty(len(head), np.float32), np.empty_like(memory)
        known = sampler.state @ states[depth]
        sample(sampler, states[depth], known, token, memory, depth == 0, head, after, chances)
        found.append(chances)
        memory = after
    return found


def _known(drafter: MixtureDrafter, truth: TokenArray) -> list[_Said]:
    """Retrieval's candidates at the root and behind every token of the true path but the last."""
    view = drafter.view()
    surroundings = note_surroundings(view.text, view.shapes, view.evidence)
    hidden_of_near(drafter.weights, view.evidence, surroundings, drafter.scratch)
    count = len(view.rows.lengths)
    view.rows.following[:] = np.arange(1, count + 1)
    view.rows.following[count - 1 :] = -1
    first_row, path, conditional = (0 if count else -1), 1.0, 1.0
    found = []
    for depth, token in enumerate(truth):
        said = _said(drafter, view, truth, depth, first_row, path, conditional, surroundings)
        found.append(said)
        here = np.flatnonzero(said.tokens == token)
        first_row = int(said.rows[here[0]]) if len(here) else -1
        conditional = float(said.probabilities[here[0]]) if len(here) else 1e-4
        path *= conditional
    return found


def _said(
    drafter: MixtureDrafter,
    view: View,
    truth: TokenArray,
    depth: int,
    first_row: int,
    path: float,
    conditional: float,
    surroundings: int,
) -> _Said:
    text, rows, shapes, accepted, evidence = view
    parents = np.arange(-1, len(truth) - 1, dtype=np.int32)
    write_path(text, truth, parents, depth - 1, depth)
    wide = path >= WIDE
    near = surroundings if wide else 0
    count = gather(text, depth, rows, first_row, shapes, near, evidence)
    state = np.empty(STATE_INPUTS, np.float32)
    describe(state, depth, path, conditional, wide, accepted)
    last = int(text.tokens[text.stop + depth - 1])
    probabilities = np.empty(MAX_CANDIDATES, np.float32)
    probabilities_of(
        drafter.weights,
        drafter.calibration.corrections[depth_group(depth + 1)],
        evidence,
        count,
        shapes.shapes,
        int(shapes.shapes[last]) if last < len(shapes.shapes) else 0,
        state,
        drafter.scratch,
        probabilities,
    )
    columns = evidence.tokens, probabilities, evidence.best, evidence.heads
    said = _Said(*(column[:count].copy() for column in columns))
    forget(evidence, count)
    return said


def _row(
    said: _Said, chances: Floats, truth: int, depth: int
) -> tuple[Floats, Floats, NDArray[np.bool_], Floats, float, int]:
    """A node as ``Nodes`` has it."""
    half = TOKENS // 2
    by_retrieval = said.tokens[np.argsort(-said.probabilities)[:half]]
    tokens = np.union1d(by_retrieval, likeliest(chances, half - 1))
    if truth not in tokens:
        tokens = np.append(tokens, truth)
    known = np.zeros(len(chances), np.float32)
    known[said.tokens] = said.probabilities
    columns = np.zeros((2, TOKENS), np.float32)
    columns[0, : len(tokens)], columns[1, : len(tokens)] = known[tokens], chances[tokens]
    none = max(1 - float(known.sum()), LEAST_UNKNOWN)
    first = int(said.probabilities.argmax()) if len(said.tokens) else -1
    features = np.zeros(FEATURES, np.float32)
    features[min(depth, DEPTHS - 1)] = 1
    features[DEPTHS:] = (
        np.log(none) / 3,
        np.log(max(known.max(), 1e-3)) / 3,
        np.log(max(chances.max(), 1e-3)) / 3,
        np.log1p(said.matches[first]) / 3 if first >= 0 else 0,
        first >= 0 and said.tokens[first] == chances.argmax(),
    )
    place = int(np.flatnonzero(tokens == truth)[0])
    return columns[0], columns[1], np.arange(TOKENS) < len(tokens), features, none, place


def scores(nodes: Nodes, pooling: Tensor) -> Tensor:
    """Of every token of every node, float32 [n, TOKENS]; softmax gives the pooled chances."""
    weights = nodes.features @ pooling
    a, b = weights[:, :2].clamp_min(LEAST_WEIGHT).split(1, 1)
    is_known = nodes.known > 0
    unknown = (nodes.chances * ~is_known * nodes.valid).sum(1, keepdim=True).clamp_min(1e-6)
    known = torch.where(is_known, nodes.known, nodes.none[:, None] * nodes.chances / unknown)
    pooled = a * nodes.chances.clamp_min(LEAST_CHANCE).log() + b * known.clamp_min(1e-7).log()
    found = pooled + weights[:, 2:] * is_known
    return found.masked_fill(~nodes.valid, float("-inf"))


def fit(nodes: Nodes, iterations: int = ITERATIONS) -> Tensor:
    """The pooling under which the true tokens are likeliest, float32 [FEATURES, 3]."""
    nodes = Nodes(*(c.float() if c.is_floating_point() else c for c in nodes))
    start = torch.from_numpy(POOLING)
    pooling = start.clone().requires_grad_(True)
    optimizer = torch.optim.LBFGS([pooling], max_iter=iterations, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(scores(nodes, pooling), nodes.right)
        loss = loss + PENALTY * (pooling - start).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return pooling.detach()
