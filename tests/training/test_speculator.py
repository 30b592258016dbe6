"""Training a speculator: what it is told, and the command on a tiny model."""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from accel.loading import load_module
from accel.mask_tokens import sha256_of_base
from accel.speculator import FILE, LENGTHS, read_speculator
from accel.tokenizer import Tokenizer
from accel.training import speculator
from accel.training.errors import TrainingError
from accel.training.frozen_base import FrozenBase, Text
from accel.training.own_text import PromptMaker
from accel.training.speculator_texts import (
    ANSWER,
    DEPTH,
    LENGTHS_OF_PROMPTS,
    TAIL,
    Examples,
    matches_of,
    read_examples,
)
from tests.training.tiny import sources

sys.path.append(str(Path(__file__).parents[1] / "decoding"))
from tiny_models import END, VOCABULARY, save

CPU = torch.device("cpu")
PROMPTS = 24


def base_and_maker(folder: Path) -> tuple[FrozenBase, PromptMaker]:
    save(folder, "llama", max_position_embeddings=1024)
    texts = [file.read_text() for file in sources(folder / "sources").iterdir()]
    maker = PromptMaker(texts, Tokenizer.from_folder(folder))
    return FrozenBase(load_module(folder, torch.float32, CPU, "eager")), maker


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[FrozenBase, Examples]:
    base, maker = base_and_maker(tmp_path_factory.mktemp("base"))
    shares: list[float] = []
    ends = frozenset([END])
    examples = read_examples(base, maker, PROMPTS, ends, random.Random(3), shares.append)
    assert shares[-1] == 1.0
    return base, examples


@pytest.mark.parametrize("seed", range(6))
def test_matches_are_the_longest_and_the_newest_of_such(seed: int) -> None:
    tokens = np.random.default_rng(seed).integers(0, 5, 120).astype(np.int32)
    newest = np.full(5, -1, np.int32)
    candidates, lengths = matches_of(tokens, newest)
    assert (newest == -1).all()
    for place in range(len(tokens)):
        best = 0, 0
        for end in range(place - 1, -1, -1):
            length = 0
            while length < min(end + 1, 16) and tokens[end - length] == tokens[place - length]:
                length += 1
            best = max(best, (length, end))
        assert lengths[place] == min(best[0], LENGTHS - 1)
        if best[0]:
            assert candidates[place] == tokens[best[1] + 1]


def test_examples_are_what_the_base_chose(read: tuple[FrozenBase, Examples]) -> None:
    base, examples = read
    last = examples.states[:, : base.width].float()
    assert (base.choices(last) == examples.likeliest[examples.starts]).float().mean() > 0.9
    batch = examples.batch(torch.where(examples.is_own)[0])
    assert batch.tokens.shape == (int(examples.is_own.sum()), DEPTH)
    own = examples.starts[examples.is_own]
    assert (examples.likeliest[own] == examples.tokens[own + 1]).all(), "the base wrote that"
    assert (batch.tokens[:, 1:] == batch.answers[:, :-1]).all()
    assert len(examples.tokens) <= PROMPTS * (ANSWER + TAIL)
    assert min(LENGTHS_OF_PROMPTS) >= TAIL
    assert 0 < len(own) < len(examples.starts)


def test_some_tokens_of_an_answer_are_drawn_and_what_the_base_would_choose_is_told(
    read: tuple[FrozenBase, Examples],
) -> None:
    base, _ = read
    given = torch.randint(1, VOCABULARY, (32, 20), generator=torch.Generator().manual_seed(1))

    def answers(strays: float) -> Text:
        generator = torch.Generator().manual_seed(2)
        return base.read(given, 24, chosen_from=12, strays=strays, generator=generator)

    text = answers(0.25)
    assert (text.likeliest[:, :12] == -1).all()
    assert (text.likeliest[:, 12:] == base.choices(text.states[:, 12:])).float().mean() > 0.9
    followed = (text.tokens[:, 20:] == text.likeliest[:, 19:-1]).float().mean()
    assert 0.65 < followed < 0.95, "a quarter is drawn"
    assert torch.equal(answers(0.25).tokens, text.tokens)
    greedy = answers(0.0)
    assert torch.equal(greedy.tokens[:, 20:], greedy.likeliest[:, 19:-1])


def test_a_few_steps_learn_what_a_tiny_model_writes(read: tuple[FrozenBase, Examples]) -> None:
    base, examples = read
    torch.manual_seed(0)
    network = speculator.Network(32, 64, base.embedding.float())

    def right() -> float:
        rows = speculator.right_guesses(network, examples)
        hits = sum(row["guess_1"] * row["positions"] for row in rows)
        return hits / sum(row["positions"] for row in rows)

    before = right()
    options = argparse.Namespace(minutes=0.08, batch=128, learning_rate=1e-2)
    assert speculator.train(network, examples, options, lambda _: None) > 10
    assert right() > before + 0.2


def test_the_command_writes_what_the_engine_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save(tmp_path / "model", "llama", max_position_embeddings=1024)
    corpus, out = sources(tmp_path / "corpus"), tmp_path / "out"
    given = ["--model", str(folder), "--corpus", str(corpus), "--out", str(out)]
    given += ["--minutes", "0.01", "--prompts", "20", "--width", "32", "--hidden", "96"]
    given += ["--batch", "64"]
    assert speculator.main(given) == 0
    record = json.loads((out / speculator.RECORD).read_text())
    assert record["base_sha256"] == sha256_of_base(folder)
    assert record["steps"] >= 1
    assert 0 < record["positions_of_answers"] <= record["positions"]
    assert {"match", "positions", "copied", "guess_1", "guess_3"} <= set(record["right"][0])
    assert '"steps"' in capsys.readouterr().out
    embeddings = torch.zeros(VOCABULARY, 32)
    read = read_speculator(out, embeddings, record["base_sha256"])
    assert (read.width, read.hidden) == (32, 96)
    assert len(read.frequent) == speculator.FREQUENT
    assert (out / FILE).exists()
    again = [*given, "--resume", str(out)]
    again[again.index("--out") + 1] = str(tmp_path / "further")
    assert speculator.main(again) == 0
    assert json.loads((tmp_path / "further" / speculator.RECORD).read_text())["resumed"]
    again[again.index("--width") + 1] = "64"
    with pytest.raises(TrainingError, match="--width"):
        speculator.main(again)
    network = speculator.Network(32, 96, embeddings)
    older = network.weights(torch.arange(3))
    del older["rest"]
    with pytest.raises(TrainingError, match="no rest"):
        network.load(older)


@pytest.mark.parametrize("wrong", [["--width", "50"], ["--hidden", "0"], ["--prompts", "3"]])
def test_sizes_that_cannot_be_are_refused(wrong: list[str], tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="multiples of 32"):
        speculator.main(["--out", str(tmp_path), "--minutes", "1", *wrong])


@pytest.mark.parametrize("wrong", [["--answer", "4"], ["--holes", "1.5"]])
def test_answers_that_cannot_be_are_refused(wrong: list[str], tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=wrong[0]):
        speculator.main(["--out", str(tmp_path), "--minutes", "1", *wrong])
