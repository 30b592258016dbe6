"""Adaptive tokens: mixed sequences, losses against slow ones, the command on tiny models."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from pathlib import Path

import pytest
import torch

from accel.loading import load_module
from accel.mask_tokens import FILE, read_weights, sha256_of_base
from accel.tokenizer import Tokenizer
from accel.training import adaptive
from accel.training.adaptive_published import (
    Mixed,
    Plan,
    PublishedTrainer,
    basic_loss,
    draw_windows,
    improved_loss,
)
from accel.training.errors import TrainingError
from accel.training.frozen_base import FrozenBase
from accel.training.mask_rows import Loss, fresh_parameters, group_states, loss_of, sampled_states
from accel.training.own_text import PromptMaker
from tests.training.tiny import sources

sys.path.append(str(Path(__file__).parents[1] / "decoding"))
from tiny_models import VOCABULARY, save

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


def test_the_loss_of_mask_rows_equals_a_slow_one_and_so_do_its_gradients(tmp_path: Path) -> None:
    base = FrozenBase(load_module(save(tmp_path, "llama"), torch.float32, CPU, "eager"))
    given = torch.randint(0, VOCABULARY, (2, 12), generator=random_state(7))
    text = base.read(given, 8)
    parameters = fresh_parameters(base, 3, 4, 0)
    for value in parameters.values():
        value.add_(0.1 * torch.randn(value.shape, generator=random_state(8))).requires_grad_(True)
    anchors = torch.tensor([[3, 11, 16], [5, 12, 14]])
    loss = Loss(decay=0.8, prompt=0.3, alone=0.34, state=0.2)
    found, weight = loss_of(base, parameters, text, anchors, loss)
    states = group_states(base, parameters, text, anchors)
    slow, slow_weight = torch.zeros(()), 0.0
    for row in range(2):
        for group in range(3):
            places = [int(anchors[row, group]) + 1 + number for number in range(3)]
            previous = text.tokens[row, places]
            sampled = sampled_states(base, parameters, states[row, group], previous)
            for number, place in enumerate(places):
                share = 0.8**number * (1.0 if place >= 11 else 0.3)
                target = text.likeliest[row, place]
                chances = (sampled[number] @ base.head.T).log_softmax(-1)
                slow = slow - share * chances[target]
                distance = (sampled[number] - text.states[row, place]).square().mean()
                slow = slow + 0.2 * share * distance
                if group == 0:
                    alone = (states[row, group, number] @ base.head.T).log_softmax(-1)
                    slow = slow - share * alone[target]
                slow_weight += share
    assert float(found.detach()) == pytest.approx(float(slow.detach()), rel=1e-4)
    assert weight == pytest.approx(slow_weight, rel=1e-5)
    names = ["embeddings", "layers.0.qkv.up", "layers.1.down.down", "sampler.memory"]
    wanted = torch.autograd.grad(slow, [parameters[name] for name in names])
    for name, gradient in zip(names, wanted, strict=True):
        (mine,) = torch.autograd.grad(found, [parameters[name]], retain_graph=True)
        torch.testing.assert_close(mine, gradient, atol=1e-4, rtol=1e-3)


def test_the_text_is_what_the_base_itself_writes(tmp_path: Path) -> None:
    folder = save(tmp_path, "qwen2")
    base = FrozenBase(load_module(folder, torch.float32, CPU, "eager"))
    given = torch.randint(0, VOCABULARY, (2, 10), generator=random_state(9))
    text = base.read(given, 6)
    module = load_module(folder, torch.float32, CPU, "sdpa")
    with torch.no_grad():
        logits = module(input_ids=text.tokens).logits
    assert torch.equal(text.likeliest, logits.argmax(-1))
    assert torch.equal(text.tokens[:, 10:], text.likeliest[:, 9:-1])


def options(folder: Path, out: Path, *more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    adaptive.add_arguments(parser)
    arguments = ["--model", str(folder), "--out", str(out), "--threads", "1", *more]
    return parser.parse_args(arguments)


def test_the_command_trains_mask_rows_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model, code = save(tmp_path / "model", "llama"), sources(tmp_path / "code")
    out = tmp_path / "out"
    given = ["--corpus", str(code), "--masks", "2", "--rank", "4", "--steps"]
    assert adaptive.run(options(model, out, *given, "1")) == 0
    assert adaptive.run(options(model, out, *given, "3", "--resume")) == 0
    record = json.loads((out / adaptive.RECORD).read_text())
    assert record["steps"] == 3
    assert record["ordinary_bits_equal"]
    assert record["ordinary_loss_before"] == record["ordinary_loss_after"]
    weights = read_weights(out / FILE, sha256_of_base(model))
    assert weights["embeddings"].shape == (2, 32)
    with pytest.raises(TrainingError, match="other sizes"):
        adaptive.run(options(model, out, "--corpus", str(code), "--steps", "4", "--resume"))


def test_the_published_form_gives_a_model_folder_and_figure_five(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model, code = save(tmp_path / "model", "llama"), sources(tmp_path / "code")
    out = tmp_path / "out"
    given = ["--form", "published", "--corpus", str(code), "--steps", "2", "--window", "2"]
    assert adaptive.run(options(model, out, *given, "--compare-losses")) == 0
    record = json.loads((out / adaptive.RECORD).read_text())
    assert set(record["curve"]) == {"basic", "improved"}
    assert (out / adaptive.FIGURE).stat().st_size > 1000
    assert read_weights(out / FILE, sha256_of_base(out))["embeddings"].shape == (1, 32)
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
    plan = Plan(steps=4, rows=2, row_length=24, rank=rank, learning_rate=1e-3)

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
