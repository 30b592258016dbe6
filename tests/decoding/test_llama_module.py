"""A Llama that is read without transformers is the one that transformers reads."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import numbers, save

from accel.batch import chain_batch
from accel.models.cpu.llama import CompiledLlama
from accel.models.hf_loading import DEFAULT_MODEL, end_tokens, load_module
from accel.models.safetensors_llama import read_llama

CPU = torch.device("cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_number_is_the_same(dtype: torch.dtype) -> None:
    ours: Any = read_llama(DEFAULT_MODEL, dtype)
    theirs: Any = load_module(DEFAULT_MODEL, dtype, CPU, "eager")
    expected = dict(theirs.named_parameters(remove_duplicate=False))
    found = dict(ours.named_parameters(remove_duplicate=False))
    assert found.keys() == expected.keys()
    for name, parameter in found.items():
        assert parameter.dtype == dtype
        assert not parameter.requires_grad
        assert torch.equal(parameter, expected[name]), name
    assert torch.equal(ours.model.rotary_emb.inv_freq, theirs.model.rotary_emb.inv_freq)
    assert ours.model.rotary_emb.attention_scaling == theirs.model.rotary_emb.attention_scaling
    assert end_tokens(ours) == end_tokens(theirs)


def test_the_compiled_forward_of_both_is_the_same() -> None:
    text = np.random.default_rng(0).integers(0, 8000, 90).astype(np.int32)
    logits = []
    for module in (
        read_llama(DEFAULT_MODEL, torch.bfloat16),
        load_module(DEFAULT_MODEL, torch.bfloat16, CPU, "eager"),
    ):
        assert module is not None
        model = CompiledLlama.from_module(module)
        assert model is not None
        batch = chain_batch(text, len(text) - 1)
        logits.append(numbers(model, batch, model.new_cache(100)))
    assert np.array_equal(*logits)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the embedded model's weights and configuration."""
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        shutil.copy(DEFAULT_MODEL / name, tmp_path)
    assert read_llama(tmp_path, torch.bfloat16) is not None
    return tmp_path


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "qwen2"},
        {"rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3"}},
        {"rope_parameters": None},
        {"attention_bias": True},
        {"mlp_bias": True},
        {"quantization_config": {"quant_method": "awq"}},
        {"num_hidden_layers": 7},
        {"num_hidden_layers": 5},
    ],
    ids=str,
)
def test_what_only_transformers_knows_is_left_to_it(folder: Path, change: dict[str, Any]) -> None:
    """Also where weights are missing, or left over: it says so."""
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(config | change), "utf-8")
    assert read_llama(folder, torch.bfloat16) is None


def test_weights_in_several_files_are_left_to_transformers(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    save_file(tensors, folder / "model-00001-of-00001.safetensors")
    assert read_llama(folder, torch.bfloat16) is None


@pytest.mark.parametrize("content", [b"", b"no weights at all", b"\0" * 64])
def test_damaged_weights_are_left_to_who_says_so(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    assert read_llama(folder, torch.bfloat16) is None


@pytest.mark.parametrize("kind", ["gpt2", "qwen3", "llama-scaled"])
def test_other_architectures_are_left_to_transformers(kind: str, tmp_path: Path) -> None:
    assert read_llama(save(tmp_path, kind), torch.float32) is None


def test_a_second_start_does_without_transformers() -> None:
    """Which takes half of a start; the first asks it whether the numbers are right."""
    code = (
        "import sys; from accel.engine import Engine; Engine.load(dtype='bf16', threads=1);"
        "print('transformers' in sys.modules)"
    )
    answers = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert answers[-1].stdout.split() == ["False"]
