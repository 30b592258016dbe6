"""Self-speculative decoding: which layers draft, what they draft, and that the text is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import open_engine, random_prompt, reference_module, reference_tokens, run, save
from torch import nn

from accel.decoding.draft_model import DraftModelDrafter
from accel.drafting.base import DraftRequest
from tests.benchmarks.peers.errors import PeerUnavailable
from tests.benchmarks.peers.self_speculative import SelfSpeculativeModel, choose_layers

LAYERS = 4


@pytest.fixture(scope="module", params=["llama", "qwen2-sliding"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return save(tmp_path_factory.mktemp("model"), request.param, num_hidden_layers=LAYERS)


def drafter_of(half: SelfSpeculativeModel, least_confidence: float = 0.0) -> DraftModelDrafter:
    engine = open_engine(half.folder)
    return DraftModelDrafter(engine, engine.tokenizer.sha256, 8, least_confidence)


def test_the_text_stays_the_whole_models_own(folder: Path) -> None:
    engine = open_engine(folder)
    half = SelfSpeculativeModel(folder)
    assert len(half.kept) == LAYERS // 2
    for seed in range(2):
        prompt = random_prompt(seed)
        plain = run(engine, prompt, ignore_end=True)
        for confidence in (0.0, 0.3):
            drafted = run(
                engine,
                prompt,
                drafter=drafter_of(half, confidence),
                plan=False,
                ignore_end=True,
            )
            assert drafted.tokens.tolist() == plain.tokens.tolist(), f"seed {seed}"
            assert drafted.statistics.nodes > 0


def test_all_layers_draft_without_a_miss(folder: Path) -> None:
    engine = open_engine(folder)
    whole = SelfSpeculativeModel(folder, keep=LAYERS)
    drafted = run(engine, random_prompt(4), drafter=drafter_of(whole), plan=False, ignore_end=True)
    assert set(drafted.statistics.accepted[:-1]) == {8}


def test_drafts_are_those_of_the_kept_layers(folder: Path) -> None:
    """The obvious form: transformers' module with the other layers taken out."""
    half = SelfSpeculativeModel(folder, keep=[0, 3])
    module = reference_module(folder)
    module.model.layers = nn.ModuleList([module.model.layers[0], module.model.layers[3]])
    kinds = getattr(module.config, "layer_types", None)
    if kinds:
        module.config.layer_types = [kinds[0], kinds[3]]
    module.config.num_hidden_layers = 2
    for place, layer in enumerate(module.model.layers):
        layer.self_attn.layer_idx = place
    drafter = drafter_of(half)
    for seed in range(3):
        prompt = random_prompt(seed, 20)
        drafter.begin(DraftRequest(prompt))
        expected = reference_tokens(module, prompt, 8)
        drafts = drafter.draft(8).tokens.tolist()
        assert drafts == expected[: len(drafts)], f"seed {seed}"
        assert drafts


def test_a_layer_without_effect_is_left_out_first(folder: Path) -> None:
    module = reference_module(folder)
    idle = 2
    with torch.no_grad():
        module.model.layers[idle].self_attn.o_proj.weight.zero_()
        module.model.layers[idle].mlp.down_proj.weight.zero_()
    sample = np.arange(200, dtype=np.int32)
    assert choose_layers(module, sample, LAYERS - 1) == [0, 1, 3]
    assert len(module.model.layers) == LAYERS


def test_what_cannot_be_halved_is_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PeerUnavailable, match=r"model\.layers"):
        SelfSpeculativeModel(save(tmp_path, "gpt2"))
    with pytest.raises(PeerUnavailable, match="let 1 to 4"):
        SelfSpeculativeModel(folder, keep=5)
    with pytest.raises(PeerUnavailable, match="layers 0 to 3"):
        SelfSpeculativeModel(folder, keep=[4])
