"""Adaptive tokens change nothing but the number of forwards: our one forward, SDSAT's two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from small_mixture import WEIGHTS
from small_networks import network_of, speculator_of
from tiny_models import Oracle, open_engine, random_prompt, run, save

from accel.draft_tree import DraftTree, Source
from accel.engine import Engine
from accel.loading import load_module
from accel.mask_planner import fit_with_masks
from accel.mask_tokens import FILE, MaskTokens, Sampler, save_weights, sha256_of_base
from accel.planner import Planner
from accel.profile import Costs
from accel.rows import MaskGroups, tree_rows
from accel.sampling import Sampling
from accel.sources import ADAPTIVE_FROM_S, adaptive_pays, with_adaptive
from accel.sources.adaptive import AdaptiveDrafter
from accel.sources.adaptive_mixture import AdaptiveMixture
from accel.sources.guessed_tree import merge
from accel.sources.guesses import Group, likeliest
from accel.sources.mixture import MixtureDrafter
from accel.sources.protocol import Drafter
from accel.sources.sdsat import SdsatDrafter, tree_of_rows
from accel.sources.speculating_mixture import SpeculatingMixture
from accel.training.frozen_base import FrozenBase
from accel.training.mask_rows import fresh_parameters

MASKS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save(tmp_path_factory.mktemp("model"), "llama")
    base = FrozenBase(load_module(folder, torch.float32, torch.device("cpu"), "eager"))
    random = torch.Generator().manual_seed(1)
    parameters = {
        name: value + 0.2 * torch.randn(value.shape, generator=random)
        for name, value in fresh_parameters(base, MASKS, 4, 0).items()
    }
    save_weights(folder / FILE, parameters, sha256_of_base(folder))
    return folder


@pytest.fixture(scope="module")
def engine(folder: Path) -> Engine:
    return open_engine(folder)


def tokens_of(engine: Engine) -> MaskTokens:
    assert engine.model.mask_tokens is not None
    return engine.model.mask_tokens


SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0.2, top_p=0.95, seed=7),
    Sampling(temperature=1.0, top_p=0.95, top_k=10, seed=8),
]


@pytest.mark.parametrize("plan", [False, True])
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "0.2", "1"])
def test_the_text_is_that_of_plain_decoding(engine: Engine, sampling: Sampling, plan: bool) -> None:
    for seed in range(3):
        prompt = random_prompt(seed)
        plain = run(engine, prompt, sampling=sampling)
        drafters: list[Drafter] = [
            SdsatDrafter(tokens_of(engine), 5, sampling),
            AdaptiveDrafter(tokens_of(engine)),
            AdaptiveDrafter(tokens_of(engine), Oracle(plain.tokens, seed), size=2),
            AdaptiveDrafter(tokens_of(engine), MixtureDrafter(), rows=12),
        ]
        for drafter in drafters:
            found = run(engine, prompt, sampling=sampling, drafter=drafter, plan=plan)
            assert found.tokens.tolist() == plain.tokens.tolist(), (seed, drafter.name)
            assert found.statistics.mask_rows > 0


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "0.2", "1"])
def test_the_text_of_planned_mask_rows_is_that_of_plain_decoding(
    engine: Engine, sampling: Sampling
) -> None:
    """Rows cost next to nothing, so that mask rows hang; of sampled text none do."""
    planner = engine.planner
    seconds = np.array([[1.0, 1.01, 2.0]])
    engine.planner = Planner(Costs([512], [1, 16, 64], seconds), can_pad=False)
    try:
        for seed in range(4):
            prompt = np.tile(random_prompt(seed)[:16], 2)
            plain = run(engine, prompt, sampling=sampling)
            drafter = with_adaptive(MixtureDrafter(), tokens_of(engine), 1.0)
            found = run(engine, prompt, sampling=sampling, drafter=drafter, plan=True)
            assert found.tokens.tolist() == plain.tokens.tolist(), seed
            assert (found.statistics.mask_rows > 0) == sampling.greedy
    finally:
        engine.planner = planner


@pytest.mark.parametrize("other", [False, True])
def test_nodes_and_mask_rows_together_are_as_many_as_asked(engine: Engine, other: bool) -> None:
    """Where no planner decides; what retrieval learns is the part of its tree that was verified."""
    seen: list[int] = []

    class Watched(AdaptiveDrafter):
        def groups(self, tree: DraftTree) -> MaskGroups:
            found = super().groups(tree)
            seen.append(len(tree) + found.rows)
            return found

    retrieval = MixtureDrafter() if other else None
    drafter = Watched(tokens_of(engine), retrieval, rows=9)
    prompt = np.tile(random_prompt(2)[:12], 4)
    plain = run(engine, prompt, max_tokens=24)
    found = run(engine, prompt, max_tokens=24, drafter=drafter, plan=False)
    assert found.tokens.tolist() == plain.tokens.tolist()
    assert seen
    assert max(seen) == 9
    assert found.statistics.mask_rows > 0
    if retrieval is not None:
        assert retrieval.calibration.information.sum() > 0


def test_right_guesses_save_forwards(engine: Engine) -> None:
    """Random weights guess next to nothing, so the rows are told what to say."""
    prompt = random_prompt(5)
    plain = run(engine, prompt, max_tokens=24)
    answer = plain.tokens

    class Told(AdaptiveDrafter):
        def begin(self, request: object) -> None:
            super().begin(request)  # type: ignore[arg-type]
            self.place = 0

        def guess(self, logits: np.ndarray, states: np.ndarray, token: int) -> None:
            logits = np.full_like(logits, -9.0)
            for row in range(len(logits)):
                if self.place + 1 + row < len(answer):
                    logits[row, answer[self.place + 1 + row]] = 9.0
            super().guess(logits, states, token)

        def commit(self, tree: DraftTree, path: list[int], tokens: np.ndarray) -> None:
            super().commit(tree, path, tokens)
            self.place += len(tokens)

    found = run(engine, prompt, max_tokens=24, drafter=Told(tokens_of(engine)), plan=False)
    assert found.tokens.tolist() == answer.tolist()
    assert found.statistics.nodes > 0


def test_a_loop_of_two_steps_drafts_in_the_first_and_verifies_in_the_second(
    engine: Engine,
) -> None:
    drafter = SdsatDrafter(tokens_of(engine), 2)
    assert drafter.groups(DraftTree.empty()).nodes.tolist() == [-1]
    logits = np.zeros((2, 300), np.float32)
    logits[0, 7] = logits[1, 9] = 1.0
    drafter.guess(logits, np.zeros((2, 32), np.float32), 3)
    drafter.commit(DraftTree.empty(), [], np.array([3], np.int32))
    tree = drafter.draft(8)
    assert tree.tokens.tolist() == [7, 9]
    assert drafter.groups(tree).rows == 0
    drafter.commit(tree, [0], np.array([7, 4], np.int32))
    assert len(drafter.draft(8)) == 0


def test_the_tree_of_rows_holds_the_likeliest_paths() -> None:
    random = np.random.default_rng(3)
    logits = random.normal(0, 2, (2, 12)).astype(np.float32)
    tree = tree_of_rows(logits, Sampling(temperature=1.0, top_k=4), 9)
    chances = []
    for row in logits:
        kept = np.argsort(-row)[:4]
        weights = np.exp(row[kept].astype(np.float64))
        weights /= weights.sum()
        before = np.cumsum(weights) - weights
        kept, weights = kept[before < 0.95], weights[before < 0.95]
        chances.append(dict(zip(kept.tolist(), weights / weights.sum(), strict=True)))
    paths = {(a,): p for a, p in chances[0].items()}
    paths |= {(a, b): p * q for a, p in chances[0].items() for b, q in chances[1].items()}
    wanted = sorted(paths.values(), reverse=True)[:9]
    np.testing.assert_allclose(tree.probabilities, wanted, rtol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_merged_trees_hold_the_likeliest_paths_of_both(seed: int) -> None:
    """Against a slow one: every path's chance, then the best ones."""
    random = np.random.default_rng(seed)
    masks, width, vocabulary, power = 2, 8, 12, 0.5
    sampler = Sampler(
        *(random.normal(0, 0.5, (width, width)).astype(np.float32) for _ in range(3)),
        random.normal(0, 0.5, (vocabulary, width)).astype(np.float32),
    )
    states = random.normal(0, 1, (masks, width)).astype(np.float32)
    head = random.normal(0, 1, (vocabulary, width)).astype(np.float32)
    other = DraftTree(
        np.array([3, 5, 4, 6], np.int32),
        np.array([-1, -1, 0, 2], np.int32),
        np.array([0.6, 0.2, 0.5, 0.4], np.float32),
        np.full(4, Source.PROMPT, np.int8),
    )
    group = Group(np.zeros((masks, vocabulary), np.float32), states, 1)
    found = merge(group, sampler, np.arange(vocabulary, dtype=np.int32), head, other, 6, power)

    paths: dict[tuple[int, ...], float] = {}

    def extend(path: tuple[int, ...], above: float, node: int | None, memory: object) -> None:
        depth = len(path)
        children = [] if node is None else np.flatnonzero(other.parents == node).tolist()
        base = 1.0 if node in (None, -1) else float(other.probabilities[node])
        known = {int(other.tokens[c]): float(other.probabilities[c]) / base for c in children}
        nodes = {int(other.tokens[c]): c for c in children}
        if depth < masks and above >= 0.03:
            inner = sampler.state @ states[depth] + sampler.by_token[path[-1] if path else 1]
            if depth:
                inner = inner + sampler.memory @ memory
            memory = inner / (1 + np.exp(-inner))
            scores = head @ (states[depth] + sampler.out @ memory)
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            if known:
                left = max(1 - sum(known.values()), 0.02)
                unknown = sum(chances[t] for t in range(vocabulary) if t not in known)
                both = np.array([known.get(t, left * chances[t] / unknown) for t in range(12)])
                chances = chances ** (1 - power) * both**power
                chances /= chances.sum()
            known = dict(enumerate(chances.tolist()))
        for token, chance in known.items():
            if above * chance >= 0.004:
                paths[(*path, token)] = above * chance
                extend((*path, token), above * chance, nodes.get(token), memory)

    extend((), 1.0, -1, None)
    wanted = sorted(paths.values(), reverse=True)[:6]
    np.testing.assert_allclose(found.tree.probabilities, wanted, rtol=1e-3)
    for node, source in enumerate(found.others.tolist()):
        if source >= 0:
            assert found.tree.tokens[node] == other.tokens[source]


def test_mask_rows_are_used_where_a_forward_costs_enough(engine: Engine) -> None:
    other = Oracle(np.empty(0, np.int32))
    tokens = tokens_of(engine)
    assert isinstance(with_adaptive(other, tokens, ADAPTIVE_FROM_S), AdaptiveDrafter)
    assert with_adaptive(other, tokens, ADAPTIVE_FROM_S / 2) is other
    assert with_adaptive(other, None, 1.0) is other
    assert adaptive_pays(tokens, ADAPTIVE_FROM_S)
    assert not adaptive_pays(tokens, ADAPTIVE_FROM_S / 2)
    assert not adaptive_pays(None, 1.0)
    assert isinstance(with_adaptive(MixtureDrafter(), tokens, ADAPTIVE_FROM_S), AdaptiveMixture)
    speculating = SpeculatingMixture(speculator_of(network_of(0)), weights=WEIGHTS)
    assert with_adaptive(speculating, tokens, 1.0) is speculating


def test_the_likeliest_scores() -> None:
    scores = np.random.default_rng(1).normal(size=500).astype(np.float32)
    assert set(likeliest(scores, 20)) == set(np.argsort(-scores)[:20])


@pytest.mark.parametrize("seed", range(5))
def test_the_planner_finds_the_best_of_all_prefixes_and_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    nodes, gains, cost = 7, np.array([0.8, 0.3, 0.1]), 0.05
    parents = np.array([random.integers(-1, node) for node in range(nodes)], np.int32)
    probabilities = np.zeros(nodes, np.float32)
    for node in range(nodes):
        taken = probabilities[:node][parents[:node] == parents[node]].sum()
        above = 1.0 if parents[node] < 0 else probabilities[parents[node]]
        probabilities[node] = (above - taken) * random.uniform(0.1, 0.8)
    tree = DraftTree(np.arange(nodes, dtype=np.int32), parents, probabilities, np.zeros(nodes, int))
    seconds = 1.0 + 0.05 * np.arange(60)
    kept, groups = fit_with_masks(tree, 1, seconds, 1.0, 0.1, gains, cost)

    def rate(count: int, sizes: dict[int, int]) -> float:
        stops = np.concatenate([[1.0], probabilities[:count]]).astype(np.float64)
        for node in range(count):
            stops[parents[node] + 1] -= probabilities[node]
        gained = 1 + probabilities[:count].sum()
        spent = seconds[1 + count + sum(sizes.values())] + 0.1
        for node, size in sizes.items():
            gained += stops[node + 1] * gains[:size].sum()
            spent += cost * stops[node + 1] * (size > 0)
        return float(gained / spent)

    best = 0.0
    for count in range(nodes + 1):
        sizes = dict.fromkeys(range(-1, count), 0)
        best = max(best, rate(count, sizes))
        for _ in range(3 * (count + 1)):
            grown = [sizes | {node: sizes[node] + 1} for node in sizes if sizes[node] < 3]
            sizes = max(grown, key=lambda each, count=count: rate(count, each))
            best = max(best, rate(count, sizes))
    chosen = dict(zip(groups.nodes.tolist(), groups.sizes.tolist(), strict=True))
    assert rate(len(kept), chosen) == pytest.approx(best, rel=0.01)


def test_mask_rows_see_their_node_and_the_rows_before_them() -> None:
    tree = DraftTree.chain(np.array([4, 5], np.int32), Source.PROMPT)
    groups = MaskGroups(np.array([-1, 1], np.int32), np.array([1, 2], np.int32))
    rows = tree_rows(np.array([3], np.int32), tree, 1, groups)
    assert rows.offsets.tolist() == [0, 1, 2, 1, 3, 4, 0]
    assert rows.mask_places.tolist() == [0, 0, 1]
    assert rows.masks_from == 3
    seen = [np.flatnonzero(row == 0).tolist() for row in rows.mask]
    assert seen == [[0], [0, 1], [0, 1, 2], [0, 3], [0, 1, 2, 4], [0, 1, 2, 4, 5], [6]]
    assert groups.rows_behind(1) == slice(1, 3)
    assert groups.rows_behind(0) == slice(0, 0)
