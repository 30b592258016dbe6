"""Adaptive tokens as SDSAT publishes them: two forwards a loop, and the text of plain decoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import open_engine, random_prompt, run, save

from accel.decoding.engine import Engine
from accel.drafting.sdsat import SdsatDrafter, tree_of_rows
from accel.errors import UnsupportedModel
from accel.files.adaptive_tokens import adaptive_file
from accel.verification.sampling import Sampling
from tests.adaptive_file import save_adaptive_tokens

BACKENDS: dict[str, tuple[str, dict[str, Any]]] = {
    "compiled": ("llama", {}),
    "tree": ("gpt_neox", {}),
}
SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0.2, top_p=0.95, seed=7),
    Sampling(temperature=1.0, top_p=0.95, top_k=10, seed=8),
]


def with_adaptive_tokens(folder: Path, kind: str, **changes: Any) -> Path:
    save(folder, kind, **changes)
    width = changes.get("hidden_size", 64)
    embeddings = torch.randn(3, width, generator=torch.Generator().manual_seed(1))
    save_adaptive_tokens(folder, embeddings.numpy())
    return folder


@pytest.fixture(scope="module", params=BACKENDS)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    torch.set_num_threads(1)
    kind, changes = BACKENDS[request.param]
    folder = with_adaptive_tokens(tmp_path_factory.mktemp("model"), kind, **changes)
    engine = open_engine(folder)
    assert engine.execution_path == request.param
    return engine


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "0.2", "1"])
def test_the_text_is_that_of_plain_decoding(engine: Engine, sampling: Sampling) -> None:
    for seed in range(2):
        prompt = random_prompt(seed)
        plain = run(engine, prompt, sampling=sampling)
        for k in (0, 1, 5)[seed:]:
            drafter = SdsatDrafter(engine, k, sampling)
            actual = run(engine, prompt, sampling=sampling, drafter=drafter, plan=False)
            assert actual.tokens.tolist() == plain.tokens.tolist(), (seed, k)
            forwards = actual.statistics.forwards
            assert forwards - 1 <= drafter.target_forwards <= forwards
            # The next token is read off the text's own row, so it is always right.
            assert all(accepted >= 1 for accepted in actual.statistics.accepted[:-1])


def test_right_guesses_save_forwards(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random weights guess next to nothing, so the rows are told what to say."""
    prompt = random_prompt(5)
    answer = run(engine, prompt, max_tokens=24, ignore_end=True).tokens
    drafter = SdsatDrafter(engine, 3)
    read = drafter._read

    def told(adaptive: Any) -> Any:
        logits = yield from read(adaptive)
        for row in range(1, len(logits)):
            position = drafter._written + row
            if position < len(answer):
                logits[row, answer[position]] = 99.0
        return logits

    monkeypatch.setattr(drafter, "_read", told)
    actual = run(engine, prompt, max_tokens=24, ignore_end=True, drafter=drafter, plan=False)
    assert actual.tokens.tolist() == answer.tolist()
    assert actual.statistics.forwards == 5, "five tokens a loop"


def test_a_model_without_adaptive_tokens_is_refused(tmp_path: Path) -> None:
    engine = open_engine(save(tmp_path, "llama"))
    with pytest.raises(UnsupportedModel, match="train adaptive"):
        SdsatDrafter(engine)


def test_adaptive_tokens_of_other_weights_are_left_alone(tmp_path: Path) -> None:
    save(tmp_path, "llama")
    save(other := tmp_path / "other", "llama", num_hidden_layers=1)
    file = save_adaptive_tokens(other, np.zeros((2, 32), np.float32))
    file.rename(adaptive_file(tmp_path))
    assert open_engine(tmp_path).model.adaptive_tokens == ()


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
    expected = sorted(paths.values(), reverse=True)[:9]
    np.testing.assert_allclose(tree.probabilities, expected, rtol=1e-4)
