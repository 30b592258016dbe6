"""Retrieval and mask rows in one tree, against slow code that lists every path."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accel.mask_tokens import Sampler
from accel.sources.acceptance import STATE_INPUTS, hidden_of_near, probabilities_of
from accel.sources.best_first import LEAST_PROBABILITY, WIDE, describe, write_path
from accel.sources.calibration import depth_group
from accel.sources.evidence import MAX_CANDIDATES, forget, gather
from accel.sources.guesses import LEAST_SAMPLED, MOST_SAMPLED, Group
from accel.sources.joint_tree import joint_tree
from accel.sources.mixture import MixtureDrafter
from accel.sources.pooling import FEATURES, LEAST_CHANCE, LEAST_UNKNOWN, POOLING, pool
from accel.sources.protocol import DraftRequest
from accel.sources.surroundings import note_surroundings
from accel.training.pooling import TOKENS, Nodes, fit, scores

VOCABULARY, WIDTH, MASKS = 24, 8, 2
TOKEN_IDS = np.arange(VOCABULARY, dtype=np.int32)


def random_sampler(random: np.random.Generator) -> Sampler:
    return Sampler(
        *(random.normal(0, 0.5, (WIDTH, WIDTH)).astype(np.float32) for _ in range(3)),
        random.normal(0, 0.5, (VOCABULARY, WIDTH)).astype(np.float32),
    )


def drafter_of(random: np.random.Generator) -> MixtureDrafter:
    drafter = MixtureDrafter()
    drafter.begin(DraftRequest(random.integers(0, VOCABULARY, 60).astype(np.int32)))
    return drafter


def random_node(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chances of all tokens by mask rows; tokens that retrieval knows, and their probabilities."""
    chances = random.dirichlet(np.full(VOCABULARY, 0.3)).astype(np.float32)
    known = random.permutation(TOKEN_IDS)[: random.integers(0, 9)]
    probabilities = random.dirichlet(np.full(len(known) + 1, 0.5))[:-1].astype(np.float32)
    return chances, known, probabilities


def pooled_of(
    chances: np.ndarray,
    known: np.ndarray,
    matches: np.ndarray,
    probabilities: np.ndarray,
    depth: int,
) -> np.ndarray:
    """Pooled chances of all tokens."""
    pooled, of_known = np.empty(VOCABULARY, np.float32), np.empty(len(known), np.float32)
    pool(POOLING, depth, TOKEN_IDS, chances, known, matches, probabilities, pooled, of_known)
    pooled[known] = of_known
    return pooled


@pytest.mark.parametrize("seed", range(6))
def test_chances_are_pooled_as_training_has_them(seed: int) -> None:
    random = np.random.default_rng(seed)
    chances, known, probabilities = random_node(random)
    matches = random.integers(0, 9, len(known)).astype(np.int32)
    depth = int(random.integers(0, 6))
    pooled = pooled_of(chances, known, matches, probabilities, depth)
    assert pooled.sum() == pytest.approx(1.0, rel=1e-4)

    columns = np.zeros((2, 1, TOKENS), np.float32)
    columns[0, 0, known], columns[1, 0, :VOCABULARY] = probabilities, chances
    none = max(1 - float(probabilities.sum()), LEAST_UNKNOWN)
    first = int(probabilities.argmax()) if len(known) else -1
    features = np.zeros((1, FEATURES), np.float32)
    features[0, min(depth, 3)] = 1
    features[0, 4:] = (
        np.log(none) / 3,
        np.log(max(probabilities.max(initial=0), 1e-3)) / 3,
        np.log(max(chances.max(), 1e-3)) / 3,
        np.log1p(matches[first]) / 3 if first >= 0 else 0,
        first >= 0 and known[first] == chances.argmax(),
    )
    nodes = Nodes(
        torch.from_numpy(columns[0]),
        torch.from_numpy(columns[1]),
        torch.arange(TOKENS)[None] < VOCABULARY,
        torch.from_numpy(features),
        torch.tensor([none]),
        torch.tensor([0]),
    )
    wanted = torch.softmax(scores(nodes, torch.from_numpy(POOLING)), 1)[0, :VOCABULARY]
    np.testing.assert_allclose(pooled, wanted.numpy(), rtol=1e-3, atol=1e-6)


def test_fitting_finds_which_opinion_is_worth_more() -> None:
    """Where mask rows are always right and retrieval is not, the text must get likelier."""
    random = np.random.default_rng(3)
    rows = []
    for _ in range(300):
        chances, known, probabilities = random_node(random)
        columns = np.zeros((2, TOKENS), np.float32)
        columns[0, known], columns[1, :VOCABULARY] = probabilities, chances
        rows.append((columns, int(random.choice(VOCABULARY, p=chances / chances.sum()))))
    features = np.zeros((len(rows), FEATURES), np.float32)
    features[:, 0] = 1
    columns = torch.from_numpy(np.stack([row for row, _ in rows]))
    nodes = Nodes(
        columns[:, 0],
        columns[:, 1],
        (torch.arange(TOKENS) < VOCABULARY).expand(len(rows), -1),
        torch.from_numpy(features),
        (1 - columns[:, 0].sum(1)).clamp_min(LEAST_UNKNOWN),
        torch.tensor([right for _, right in rows]),
    )

    def loss(pooling: torch.Tensor) -> float:
        return float(torch.nn.functional.cross_entropy(scores(nodes, pooling), nodes.right))

    found = fit(nodes)
    assert loss(found) < loss(torch.from_numpy(POOLING)) - 0.05
    assert found[0, 0] > POOLING[0, 0]
    assert found[0, 1] < POOLING[0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_the_tree_holds_the_likeliest_paths(seed: int) -> None:
    random = np.random.default_rng(seed)
    sampler, drafter = random_sampler(random), drafter_of(random)
    states = random.normal(0, 1, (MASKS, WIDTH)).astype(np.float32)
    head = random.normal(0, 2, (VOCABULARY, WIDTH)).astype(np.float32)
    root = int(drafter.view().text.tokens[drafter.view().text.stop - 1])
    group = Group(np.zeros((MASKS, VOCABULARY), np.float32), states, root)
    found, known = joint_tree(drafter, group, sampler, TOKEN_IDS, head, POOLING, 12)
    wanted = slow_paths(drafter, group, sampler, head, 12)
    np.testing.assert_allclose(found.probabilities, [path[0] for path in wanted], rtol=2e-3)
    np.testing.assert_allclose(known.probabilities, [path[1] for path in wanted], rtol=2e-3)
    assert found.tokens.tolist() == known.tokens.tolist()
    assert (found.parents < np.arange(len(found))).all()


def slow_paths(
    drafter: MixtureDrafter, group: Group, sampler: Sampler, head: np.ndarray, count: int
) -> list[tuple[float, float]]:
    """Chances, together and by retrieval alone, of the ``count`` likeliest paths, best first."""
    taken: list[tuple[float, float, tuple[int, ...]]] = []
    waiting: list[tuple[float, float, tuple[int, ...]]] = []
    memories: dict[tuple[int, ...], np.ndarray] = {}

    def open_node(here: float, alone: float, conditional: float, path: tuple[int, ...]) -> None:
        known, matches, probabilities = said(drafter, path, here, alone, conditional)
        depth = len(path)
        chances = dict(zip(known.tolist(), probabilities.tolist(), strict=True))
        asked = depth < MASKS and (depth == 0 or path[:-1] in memories)
        if asked and here >= LEAST_SAMPLED and len(memories) < MOST_SAMPLED:
            last = path[-1] if path else group.token
            inner = sampler.state @ group.states[depth] + sampler.by_token[last]
            if depth:
                inner = inner + sampler.memory @ memories[path[:-1]]
            memories[path] = inner / (1 + np.exp(-inner))
            logits = head @ (group.states[depth] + sampler.out @ memories[path])
            guessed = np.exp(logits - logits.max())
            guessed = (guessed / guessed.sum()).astype(np.float32)
            both = pooled_of(guessed, known, matches, probabilities, depth)
            together = dict(enumerate(both.tolist()))
        else:
            together = chances
        for token, chance in together.items():
            if here * chance >= LEAST_PROBABILITY:
                by_retrieval = alone * chances.get(token, 1e-4)
                waiting.append((here * chance, by_retrieval, (*path, token)))

    open_node(1.0, 1.0, 1.0, ())
    alone_of = {(): 1.0}
    while waiting and len(taken) < count:
        best = max(waiting, key=lambda candidate: candidate[0])
        waiting.remove(best)
        taken.append(best)
        here, alone, path = best
        alone_of[path] = alone
        open_node(here, alone, alone / max(alone_of[path[:-1]], 1e-9), path)
    return [(here, alone) for here, alone, _ in taken]


def said(
    drafter: MixtureDrafter, path: tuple[int, ...], here: float, alone: float, conditional: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Retrieval's candidates behind ``path``, their longest matches and probabilities."""
    text, _, shapes, accepted, evidence = drafter.view()
    near = note_surroundings(text, shapes, evidence)
    hidden_of_near(drafter.weights, evidence, near, drafter.scratch)
    depth, wide = len(path), here >= WIDE
    parents = np.arange(-1, depth - 1, dtype=np.int32)
    write_path(text, np.array(path, np.int32), parents, depth - 1, depth)
    rows = drafter.view().rows
    count = gather(text, depth, rows, -1, shapes, near if wide else 0, evidence)
    state, probabilities = np.empty(STATE_INPUTS, np.float32), np.empty(MAX_CANDIDATES, np.float32)
    describe(state, depth, alone, conditional, wide, accepted)
    corrections = drafter.calibration.corrections[depth_group(depth + 1)]
    place = (evidence, count, shapes.shapes, 0, state, drafter.scratch, probabilities)
    probabilities_of(drafter.weights, corrections, *place)
    found = evidence.tokens[:count].copy(), evidence.best[:count].copy()
    forget(evidence, count)
    return *found, probabilities[:count].copy()


def test_little_counts_as_a_little() -> None:
    """A token that mask rows rule out and retrieval is sure of stays in the tree."""
    chances = np.full(VOCABULARY, 1e-12, np.float32)
    chances[3] = 1.0
    known, matches = np.array([5], np.int32), np.array([20], np.int32)
    pooled = pooled_of(chances, known, matches, np.array([0.99], np.float32), 2)
    assert pooled[5] > LEAST_CHANCE
    assert pooled[3] + pooled[5] == pytest.approx(1.0, abs=1e-3)
