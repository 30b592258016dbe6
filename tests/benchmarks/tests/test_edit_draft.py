"""Tuning a draft model for edits: what counts, and that a run learns and can be loaded."""

from __future__ import annotations

import json
from hashlib import sha256

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small_model import SMALL_MODEL
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from accel.decoding.engine import Engine
from accel.errors import AccelError
from accel.text.tokenizer import Tokenizer
from tests.benchmarks.__main__ import main
from tests.benchmarks.training.edit_draft import (
    IGNORED,
    example_of,
    export,
    made_requests,
    masked_loss,
    on_new_lines,
    read_requests,
    tune,
)

BEFORE = "def f(x):\n    y = x\n    return y\n"
AFTER = "def f(x):\n    z = 1\n    y = x\n    return z\n"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_folder(SMALL_MODEL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    """A tiny model with the small model's tokenizer."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=tokenizer.vocabulary_size, hidden_size=32, intermediate_size=48,
        num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=512, initializer_range=0.5, tie_word_embeddings=True,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("draft")
    export(LlamaForCausalLM(config), SMALL_MODEL, path)
    return path


def test_only_tokens_of_new_lines_count(tokenizer):
    answer = np.append(tokenizer.encode(AFTER), np.int32(0)).astype(np.int32)
    counts = on_new_lines(tokenizer, BEFORE, answer)
    counted = b"".join(
        tokenizer.bytes_of(int(token)) for token in answer[:-3][counts[:-3]]
    ).decode()
    assert "z = 1" in counted
    assert "y = x" not in counted
    assert "def f" not in counted
    assert counts[-3:].all()


def test_an_unchanged_answer_counts_by_its_end_alone(tokenizer):
    answer = tokenizer.encode(BEFORE)
    assert on_new_lines(tokenizer, BEFORE, answer).sum() == 3


def test_labels_stand_behind_the_prompt(tokenizer):
    prompt, answer = np.array([1, 2, 3], np.int32), np.array([4, 5], np.int32)
    example = example_of(prompt, answer, np.array([False, True]))
    assert example.tokens.tolist() == [1, 2, 3, 4, 5]
    assert example.labels.tolist() == [IGNORED] * 4 + [5]


def test_the_loss_is_that_of_the_tokens_that_count(tokenizer, folder):
    module = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokens = tokenizer.encode(AFTER)
    counts = on_new_lines(tokenizer, BEFORE, tokens)
    example = example_of(tokenizer.encode("x"), tokens, counts)
    loss, counted = masked_loss(module, example)
    with torch.no_grad():
        logits = module(torch.as_tensor(example.tokens.astype(np.int64))[None]).logits[0].double()
    expected = sum(
        -float(torch.log_softmax(logits[place - 1], -1)[example.labels[place]])
        for place in range(1, len(example.labels))
        if example.labels[place] != IGNORED
    )
    assert counted == counts.sum()
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-4)


def test_tuning_learns_the_new_lines_and_can_be_loaded(tokenizer, folder, tmp_path):
    answer = tokenizer.encode(AFTER)
    counts = on_new_lines(tokenizer, BEFORE, answer)
    example = example_of(tokenizer.encode(BEFORE), answer, counts)
    before = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tuned = tune(folder, [example] * 4, epochs=40, batch=4, rank=8, learning_rate=3e-2, seed=0)
    with torch.no_grad():
        losses = [float(masked_loss(module, example)[0]) for module in (before, tuned)]
    assert losses[1] < 0.8 * losses[0], losses
    export(tuned, folder, tmp_path / "out")
    engine = Engine.load(tmp_path / "out", dtype="fp32", threads=1)
    assert engine.tokenizer.sha256 == tokenizer.sha256


def test_made_requests_are_edits_of_the_standard_library():
    requests = made_requests(5, 1)
    assert len(requests) == 5
    assert requests == made_requests(5, 1)
    assert all(request.instruction and request.before for request in requests)


def test_the_command_runs_from_edits_to_a_model(folder, tmp_path, capsys):
    edits = tmp_path / "edits.jsonl"
    rows = [{"instruction": "remove the docstring", "before": BEFORE}] * 3
    edits.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "tuned"
    code = main([
        "train", "edit-draft", "--target", str(SMALL_MODEL), "--draft", str(folder),
        "--out", str(out), "--edits", str(edits), "--batch", "2", "--max-tokens", "200",
        "--threads", "1",
    ])  # fmt: skip
    assert code == 0
    assert Engine.load(out, dtype="fp32", threads=1).tokenizer.vocabulary_size > 0
    weights = load_file(out / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.bfloat16}
    data = json.loads((out / "data.json").read_text())
    assert data["sha256"] == sha256((out / "model.safetensors").read_bytes()).hexdigest()
    assert data["tuning"]["batch"] == 2
    assert data["tuning"]["examples"] <= 3


def test_wrong_input_is_told(tmp_path):
    with pytest.raises(AccelError, match="JSON lines"):
        read_requests(tmp_path / "none.jsonl")
