"""A Llama that is read without transformers is the one that transformers reads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_model import SMALL_MODEL
from text_cases import data_beside
from tiny_models import compiled, numbers, save

from accel.files.folder_architecture import folder_architecture
from accel.models.batch import chain_batch
from accel.models.hf_loading import end_tokens, load_module
from accel.models.probe import Probe

DATA = data_beside(__file__)

CPU = torch.device("cpu")


TOLERANCES = {"fp32": 1e-5, "int8": 0.1}
"""Of the mean difference, by how far logits lie apart."""
SIZES = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}
LLAMA3 = DATA["LLAMA3"]


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
@pytest.mark.parametrize("kind", ["small", "llama", "qwen2", "qwen3", "mistral"])
def test_logits_are_those_of_transformers(kind: str, dtype: str, tmp_path: Path) -> None:
    folder = SMALL_MODEL if kind == "small" else save(tmp_path, kind, **SIZES)
    check_same(folder, dtype)


def check_same(folder: Path, dtype: str) -> None:
    """Compare what a folder's decoder computes with transformers' module."""
    ours = compiled(folder, dtype)
    module: Any = load_module(folder, torch.float32, CPU, "eager")
    assert ours.end_tokens == end_tokens(module)
    assert ours.vocabulary_size == module.config.vocab_size
    assert ours.max_positions == module.config.max_position_embeddings
    assert Probe(module).agrees(ours, ours.capability.kind)
    text = np.random.default_rng(0).integers(0, ours.vocabulary_size, 90).astype(np.int32)
    actual = numbers(ours, chain_batch(text, 0), ours.new_cache(100))
    with torch.inference_mode():
        expected = module(torch.from_numpy(text.astype(np.int64))[None]).logits[0].numpy()
    assert np.abs(actual - expected).mean() < TOLERANCES[dtype] * expected.std()


@pytest.mark.parametrize(
    "rope",
    [LLAMA3, {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}],
    ids=lambda rope: rope["rope_type"],
)
def test_scaled_positions_are_read(rope: dict[str, Any], tmp_path: Path) -> None:
    check_same(save(tmp_path, "llama", **SIZES, rope_parameters=rope), "fp32")


@pytest.mark.parametrize("kind", ["llama", "qwen2", "mistral"])
def test_a_configuration_of_an_older_transformers_is_read(kind: str, tmp_path: Path) -> None:
    """It names theta beside the scaling, and no size of a head that follows from others."""
    folder = save(tmp_path, kind, **SIZES)
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8"))
    rope = config.pop("rope_parameters")
    config |= {"rope_theta": rope["rope_theta"], "rope_scaling": None, "head_dim": 64}
    if kind == "llama":
        scaling = {name: value for name, value in LLAMA3.items() if name != "rope_theta"}
        config |= {"rope_scaling": scaling, "rope_theta": LLAMA3["rope_theta"]}
        del config["attention_bias"], config["mlp_bias"]
    if kind == "qwen2":
        config |= {"use_sliding_window": False, "sliding_window": 64, "max_window_layers": 1}
        del config["layer_types"]
    file.write_text(json.dumps(config), "utf-8")
    check_same(folder, "fp32")


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
def test_weights_of_16_bits_in_several_files_are_read(dtype: str, tmp_path: Path) -> None:
    folder = save(tmp_path, "qwen2", **SIZES)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    files = {"model-00001-of-00002.safetensors": names[::2]}
    files["model-00002-of-00002.safetensors"] = names[1::2]
    for file, held in files.items():
        save_file({name: tensors[name].half() for name in held}, folder / file, {"format": "pt"})
    positions = {name: file for file, held in files.items() for name in held}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": positions}), "utf-8")
    check_same(folder, dtype)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the small model's weights and configuration."""
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        shutil.copy(SMALL_MODEL / name, tmp_path)
    assert folder_architecture(tmp_path) is not None
    return tmp_path


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "qwen2"},
        {"rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3"}},
        {"rope_parameters": {"rope_theta": 500000.0, "rope_type": "dynamic", "factor": 2.0}},
        {"rope_parameters": {"rope_theta": 500000.0, "partial_rotary_factor": 0.5}},
        {"sliding_window": 64, "use_sliding_window": True},
        {"layer_types": ["sliding_attention"] * 6},
        {"hidden_act": "gelu"},
        {"intermediate_size": 512},
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
    assert folder_architecture(folder) is None


def test_weights_in_several_files_without_an_index_are_left_to_transformers(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    save_file(tensors, folder / "model-00001-of-00001.safetensors")
    assert folder_architecture(folder) is None


@pytest.mark.parametrize("content", [b"", b"no weights at all", b"\0" * 64])
def test_damaged_weights_are_left_to_who_says_so(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    assert folder_architecture(folder) is None


@pytest.mark.parametrize("kind", ["gpt2", "mistral-sliding", "llama-scaled"])
def test_other_architectures_are_left_to_transformers(kind: str, tmp_path: Path) -> None:
    assert folder_architecture(save(tmp_path, kind)) is None


def loaded(code: str, cache: Path) -> str:
    """Return those of torch and transformers that a process has imported after ``code``."""
    code += "; import sys; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout.strip()


def test_torch_is_for_bf16_alone(tmp_path: Path) -> None:
    """Models that our own forward computes are opened without it."""
    folder = save(tmp_path, "llama", hidden_size=256, intermediate_size=512, head_dim=64)
    for dtype, expected in (
        ("auto", "[]"),
        ("fp32", "[]"),
        ("bf16", "['torch', 'transformers']"),
    ):
        options = f"device='cpu', dtype={dtype!r}, threads=1"
        code = f"from accel.decoding.engine import Engine; Engine.load({str(folder)!r}, {options})"
        assert loaded(code, tmp_path) == expected
