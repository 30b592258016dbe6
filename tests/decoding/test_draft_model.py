"""A second model as drafter, and edits on a model: the text stays the model's own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from seeds import for_each_seed
from tiny_models import open_engine, save

from accel.decoding.draft_model import DraftModelDrafter
from accel.decoding.engine import Engine
from accel.decoding.loop import Generation
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source
from accel.drafting.base import Drafter, DraftRequest
from accel.drafting.copy.drafter import CopyDrafter
from accel.errors import UnsupportedModel
from tests.benchmarks.published.efficientedit import EfficientEditDrafter
from tests.benchmarks.published.efficientedit_verifiers import all_tokens, likeliest_tokens


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    torch.set_num_threads(1)
    return open_engine(save(tmp_path_factory.mktemp("target"), "llama"))


@pytest.fixture(scope="module")
def other_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("other"), "llama", seed=1)


def edit(engine: Engine, seed: int, drafter: Drafter | None, **options) -> Generation:  # type: ignore[no-untyped-def]
    random = np.random.default_rng(seed)
    original = random.integers(97, 123, 24).astype(np.int32)
    prompt = np.concatenate([random.integers(97, 123, 9), original, [10]]).astype(np.int32)
    request = GenerationRequest(
        prompt,
        max_tokens=40,
        drafter=drafter,
        draft_request=DraftRequest(prompt, original=original),
        plan=False,
        **options,
    )
    return engine.generate(request).finish()


def test_a_model_drafts_for_itself_without_a_miss(target: Engine) -> None:
    drafter = DraftModelDrafter(target, target.tokenizer.sha256)
    for seed in range(6):
        plain, drafted = edit(target, seed, None), edit(target, seed, drafter)
        assert drafted.tokens.tolist() == plain.tokens.tolist(), f"seed {seed}"
        full = [count for count in drafted.statistics.accepted[:-1] if count != 7]
        assert not full, f"seed {seed}: {drafted.statistics.accepted}"


def test_drafts_are_the_small_models_own_greedy_text(target: Engine, other_folder: Path) -> None:
    """After rejections too: the cache of the draft model holds the accepted text only."""
    other = open_engine(other_folder)
    drafter = DraftModelDrafter(other, target.tokenizer.sha256)
    random = np.random.default_rng(5)
    context = random.integers(97, 123, 20).astype(np.int32)
    drafter.begin(DraftRequest(context))
    for step in range(8):
        tree = drafter.draft(5)
        own = other.generate(GenerationRequest(context, max_tokens=5, ignore_end=True)).finish()
        count = len(tree)
        assert tree.tokens.tolist() == own.tokens.tolist()[:count], f"step {step}"
        assert (np.diff(tree.probabilities) <= 0).all()
        assert set(tree.sources) == {Source.DRAFT_MODEL}
        kept = int(random.integers(0, count))
        taken = np.append(tree.tokens[:kept], random.integers(97, 123)).astype(np.int32)
        drafter.commit(tree, list(range(kept)), taken)
        context = np.concatenate([context, taken])


def test_without_room_for_a_draft_nothing_is_computed(
    target: Engine, other_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_engine(other_folder)
    drafter = DraftModelDrafter(other, target.tokenizer.sha256)
    context = np.arange(97, 117, dtype=np.int32)
    drafter.begin(DraftRequest(context))
    drafter.commit(DraftTree.empty(), [], context)
    for method in ("forward", "forward_all"):
        monkeypatch.setattr(other.model, method, lambda *_: pytest.fail("a forward"))
    assert len(drafter.draft(0)) == 0


@for_each_seed(range(3))
def test_edits_are_lossless_whatever_drafts(target: Engine, other_folder: Path, seed: int) -> None:
    other = open_engine(other_folder)
    plain = edit(target, seed, None).tokens.tolist()
    drafters: list[Drafter] = [
        CopyDrafter(target.tokenizer, (299,)),
        EfficientEditDrafter(),
        EfficientEditDrafter(DraftModelDrafter(other, target.tokenizer.sha256)),
        EfficientEditDrafter(DraftModelDrafter(other, target.tokenizer.sha256), reuse=False),
    ]
    for drafter in drafters:
        drafted = edit(target, seed, drafter, max_nodes=32)
        assert drafted.tokens.tolist() == plain, f"seed {seed}, {drafter.name}"


def test_direct_acceptance_is_the_draft_models_text(target: Engine, other_folder: Path) -> None:
    """Table III's row without verification: all that the draft model says is taken."""
    other = open_engine(other_folder)
    drafter = DraftModelDrafter(other, target.tokenizer.sha256)
    drafted = edit(target, 3, drafter, relaxed=all_tokens)
    assert all(count == 7 for count in drafted.statistics.accepted[:-1])
    strict = edit(target, 3, drafter)
    top = edit(target, 3, drafter, relaxed=partial(likeliest_tokens, top_k=150))
    assert drafted.statistics.forwards <= top.statistics.forwards <= strict.statistics.forwards


def test_another_tokenizer_is_refused(target: Engine) -> None:
    with pytest.raises(UnsupportedModel, match="tokenizer"):
        DraftModelDrafter(target, "of another model")
