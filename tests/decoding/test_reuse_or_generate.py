"""Copies and a draft model in one tree: what is merged, when the model is asked, lossless text."""

from __future__ import annotations

import numpy as np
import pytest
from seeds import for_each_seed
from tiny_models import open_engine, save

from accel.decoding.draft_model import DraftModelDrafter
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source
from accel.drafting.base import ComputingDrafter, DraftRequest
from accel.drafting.copy.drafter import CopyDrafter
from accel.drafting.reuse_or_generate import ReuseOrGenerateDrafter, with_chain
from accel.execution.forwards import Forwards


def random_tree(random: np.random.Generator, nodes: int, source: Source) -> DraftTree:
    tokens, parents, chances = [], [], []
    taken = set()
    for node in range(nodes):
        parent = int(random.integers(-1, node)) if node else -1
        token = int(random.integers(4))
        while (parent, token) in taken:
            parent, token = int(random.integers(-1, node)) if node else -1, token + 1
        taken.add((parent, token))
        tokens.append(token)
        parents.append(parent)
        chances.append(random.random() * (chances[parent] if parent >= 0 else 1.0))
    return DraftTree(
        np.array(tokens, np.int32),
        np.array(parents, np.int32),
        np.array(chances, np.float32),
        np.full(nodes, source, np.int8),
    )


def paths(tree: DraftTree) -> set[tuple[int, ...]]:
    actual: list[tuple[int, ...]] = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        actual.append((*(actual[parent] if parent >= 0 else ()), token))
    assert len(set(actual)) == len(actual)
    return set(actual)


@for_each_seed(range(40))
def test_a_merged_tree_has_the_paths_of_both(seed: int) -> None:
    random = np.random.default_rng(seed)
    tree = random_tree(random, int(random.integers(0, 12)), Source.ORIGINAL)
    tokens = random.integers(4, size=random.integers(0, 6)).astype(np.int32)
    chain = DraftTree.chain(tokens, Source.DRAFT_MODEL, 0.7)
    merged = with_chain(tree, chain)
    assert paths(merged) == paths(tree) | paths(chain), f"seed {seed}"
    assert (np.diff(merged.probabilities) <= 0).all(), f"seed {seed}: likeliest first"
    cut = merged.prefix(len(merged) // 2)
    assert (cut.parents < np.arange(len(cut))).all(), f"seed {seed}: any cut is a tree"


class Always(ComputingDrafter):
    """Drafts the same chain, with one chance for each token; counts how often it was asked."""

    name = "always"

    def __init__(self, token: int, chance: float, source: Source) -> None:
        self.chain = DraftTree.chain(np.full(3, token, np.int32), source, chance)
        self.asked = 0

    def begin_steps(self, request: DraftRequest) -> Forwards[None]:
        self.asked = 0
        yield from ()

    def draft_steps(self, max_nodes: int) -> Forwards[DraftTree]:
        self.asked += 1
        yield from ()
        return self.chain.prefix(max_nodes)

    def commit(self, tree: DraftTree, path: list[int], tokens: np.ndarray) -> None:
        pass


@pytest.mark.parametrize(("chance", "asked"), [(0.9, 0), (0.2, 1)])
def test_the_draft_model_is_asked_where_no_copy_is_likely(chance: float, asked: int) -> None:
    copies = Always(5, chance, Source.ORIGINAL)
    model = Always(6, 0.8, Source.DRAFT_MODEL)
    drafter = ReuseOrGenerateDrafter(copies, model)
    drafter.begin(DraftRequest(np.array([1], np.int32)))
    tree = drafter.draft(4)
    assert model.asked == asked
    assert len(tree) == (4 if asked else 3)
    assert (Source.DRAFT_MODEL in tree.sources.tolist()) is bool(asked)


def test_an_edit_is_the_models_own_text_and_the_draft_model_has_a_part_in_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    engine = open_engine(save(tmp_path_factory.mktemp("target"), "llama"))
    used = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        original = random.integers(97, 123, 24).astype(np.int32)
        prompt = np.concatenate([random.integers(97, 123, 9), original, [10]]).astype(np.int32)
        texts = []
        model = DraftModelDrafter(engine, engine.tokenizer.sha256)
        for drafter in (None, ReuseOrGenerateDrafter(CopyDrafter(engine.tokenizer), model)):
            request = GenerationRequest(
                prompt,
                max_tokens=40,
                drafter=drafter,
                draft_request=DraftRequest(prompt, original=original),
                plan=False,
            )
            done = engine.generate(request).finish()
            texts.append(done.tokens.tolist())
        used += done.statistics.sources.get("draft_model", 0)
        assert texts[0] == texts[1], f"seed {seed}"
    assert used > 0
