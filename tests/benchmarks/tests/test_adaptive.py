"""Adaptive tokens: mixed sequences, losses against slow ones, the command on tiny models."""

from __future__ import annotations

import argparse
import itertools
import json
import math
from pathlib import Path

import pytest
import torch
from tiny_models import VOCABULARY, save

from accel.files.adaptive_tokens import read_adaptive_tokens
from accel.models.hf_loading import load_module
from accel.text.tokenizer import Tokenizer
from tests.benchmarks.tests.tiny_sources import sources
from tests.benchmarks.training import adaptive
from tests.benchmarks.training.adaptive_published import (
    AdaptiveTrainingPlan,
    Mixed,
    PublishedTrainer,
    basic_loss,
    draw_windows,
    improved_loss,
)
from tests.benchmarks.training.prompt_maker import PromptMaker

CPU = torch.device("cpu")


def random_state(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("window", [1, 3, 5])
def test_windows_begin_at_a_tenth_of_the_positions_and_are_as_long_as_drawn(window: int) -> None:
    places = draw_windows(40, 200, window, random_state(window)).places
    assert (places[:, 0] == -1).all()
    assert int(places.max()) == window - 1
    begins = (places == 0).sum(1)
    assert (begins <= 20).all()
    assert (begins >= 12).all()
    for row in places.tolist():
        for before, place in itertools.pairwise(row):
            assert place in (-1, 0, before + 1)
    if window == 1:
        assert (begins == 20).all()


def test_both_losses_equal_their_equations_term_by_term() -> None:
    tokens = torch.randint(0, 11, (3, 9), generator=random_state(1))
    plain = torch.randn(3, 9, 11, generator=random_state(2))
    holed = torch.randn(3, 9, 11, generator=random_state(3))
    mixed = draw_windows(3, 9, 2, random_state(4))
    ordinary = everything = guesses = 0.0
    for row in range(3):
        for place in range(8):
            following = int(tokens[row, place + 1])

            def cost(logits: torch.Tensor, following: int = following) -> float:
                weights = [math.exp(float(value)) for value in logits]
                return -math.log(weights[following] / sum(weights))

            ordinary += cost(plain[row, place])
            everything += cost(holed[row, place])
            if mixed.places[row, place] >= 0:
                guesses += cost(holed[row, place])
    assert float(basic_loss(holed, tokens)) == pytest.approx(everything / 24, rel=1e-5)
    found = improved_loss(plain, tokens, holed, tokens, mixed, 0.7)
    assert float(found) == pytest.approx(0.5 * (ordinary / 24 + 0.7 * guesses / 24), rel=1e-5)


def test_without_adaptive_tokens_the_improved_loss_is_half_the_plain_one() -> None:
    tokens = torch.randint(0, 11, (2, 6), generator=random_state(5))
    logits = torch.randn(2, 6, 11, generator=random_state(6))
    nothing = Mixed(torch.full((2, 6), -1))
    found = improved_loss(logits, tokens, logits, tokens, nothing, 1.0)
    assert float(found) == pytest.approx(0.5 * float(basic_loss(logits, tokens)))


def options(folder: Path, out: Path, *more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    adaptive.add_arguments(parser)
    arguments = ["--model", str(folder), "--out", str(out), "--threads", "1", *more]
    return parser.parse_args(arguments)


def test_a_model_that_stays_as_it_is_gets_embeddings_beside_it(tmp_path: Path) -> None:
    model = save(tmp_path / "model", "llama")
    given = ("--corpus", str(sources(tmp_path / "corpus")), "--steps", "3", "--window", "2")
    weights = (model / "model.safetensors").read_bytes()
    more = "--frozen", "--learning-rate", "3e-2"
    assert adaptive.run(options(model, tmp_path / "run", *given, *more)) == 0
    embeddings = read_adaptive_tokens(model, 64)
    assert embeddings is not None
    assert embeddings.shape == (2, 64)
    assert (model / "model.safetensors").read_bytes() == weights


def test_training_gives_a_model_folder_and_figure_five(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model, code = save(tmp_path / "model", "llama"), sources(tmp_path / "code")
    out = tmp_path / "out"
    given = ["--corpus", str(code), "--steps", "2", "--window", "2"]
    assert adaptive.run(options(model, out, *given, "--compare-losses")) == 0
    record = json.loads((out / adaptive.RECORD).read_text())
    assert set(record["curve"]) == {"basic", "improved"}
    assert (out / adaptive.FIGURE).stat().st_size > 1000
    embeddings = read_adaptive_tokens(out, 64)
    assert embeddings is not None
    assert embeddings.shape == (2, 64)
    assert (
        Tokenizer.from_folder(out).vocabulary_size == Tokenizer.from_folder(model).vocabulary_size
    )


@pytest.mark.parametrize("rank", [0, 2])
def test_a_resumed_published_run_ends_where_an_unbroken_one_does(rank: int, tmp_path: Path) -> None:
    if rank:
        pytest.importorskip("peft")
    folder = save(tmp_path / "model", "llama")
    tokenizer = Tokenizer.from_folder(folder)
    maker = PromptMaker([p.read_text() for p in sources(tmp_path / "code").iterdir()], tokenizer)
    held_out = torch.randint(0, VOCABULARY, (2, 24), generator=random_state(1))
    plan = AdaptiveTrainingPlan(steps=4, rows=2, row_length=24, rank=rank, learning_rate=1e-3)

    class Interrupted(Exception):
        pass

    def trainer(out: Path, resume: bool = False) -> PublishedTrainer:
        out.mkdir(exist_ok=True)
        module = load_module(folder, torch.float32, CPU, "sdpa")
        return PublishedTrainer(module, maker, held_out, plan, out, resume=resume)

    whole = trainer(tmp_path / "whole")
    whole.run(lambda _figures: None)
    broken = trainer(tmp_path / "broken")

    def stop(figures: dict[str, float]) -> None:
        if figures["step"] == 2:
            broken.save()
            raise Interrupted

    with pytest.raises(Interrupted):
        broken.run(stop)
    resumed = trainer(tmp_path / "broken", resume=True)
    resumed.run(lambda _figures: None)
    assert torch.equal(whole.embeddings, resumed.embeddings)
    assert whole.curve[-1] == resumed.curve[-1]
