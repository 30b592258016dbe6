"""The tests' model: loads through transformers' own classes and is what its card says."""

from __future__ import annotations

import hashlib
import json

import torch
from safetensors.torch import load_file
from small_model import SMALL_DRAFT, SMALL_MODEL
from transformers import AutoModelForCausalLM, AutoTokenizer


def test_the_model_loads_and_matches_its_card() -> None:
    folder = SMALL_MODEL
    weights = folder / "model.safetensors"
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert type(model).__name__ == "LlamaForCausalLM"
    assert 8e6 <= sum(p.numel() for p in model.parameters()) <= 30e6
    assert model.config.max_position_embeddings >= 2048
    assert {tensor.dtype for tensor in load_file(weights).values()} == {torch.bfloat16}
    assert weights.stat().st_size <= 54_000_000
    for token in ("<|fim_middle|>", "<|file_sep|>", "<|edit_after|>", "<|mask|>"):
        assert len(tokenizer(token, add_special_tokens=False)["input_ids"]) == 1
    data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == data["sha256"]
    names = {package["name"].lower() for package in data["packages"]}
    assert not names & {"click", "rich", "starlette", "flask", "pytest", "httpx"}
    assert all(package["licence"] for package in data["packages"])


def test_the_draft_model_beside_it_is_small_and_of_the_same_tokenizer() -> None:
    folder, draft = SMALL_MODEL, SMALL_DRAFT
    assert (draft / "tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()
    assert sum(file.stat().st_size for file in draft.iterdir()) <= 6_000_000
    weights = draft / "model.safetensors"
    assert {tensor.dtype for tensor in load_file(weights).values()} == {torch.bfloat16}
    data = json.loads((draft / "data.json").read_text(encoding="utf-8"))
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == data["sha256"]
    assert data["tuning"]["loss"] == "new-lines"
