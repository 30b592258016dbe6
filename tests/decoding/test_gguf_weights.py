"""The decoder in a GGUF file computes what transformers computes with the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf_models import gguf_metadata, gguf_tensors, random_module, save_gguf, vocabulary_metadata
from gguf_writer import stored, write_gguf
from tiny_models import compiled

from accel.errors import AccelError, BrokenModel, UnsupportedModel
from accel.models.base import BatchKind
from accel.models.model_file import model_file
from accel.models.probe import Probe
from tests.benchmarks.gguf_module import read_module

TOKENS = torch.arange(3, 40)[None] * 7 % 300


def rope(**values: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 10000.0, **values}}


FAMILIES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llama": ("llama", {"num_key_value_heads": 4}, {}),
    "smollm": ("llama", {"tie_word_embeddings": True}, {}),
    "llama with biases": ("llama", {"attention_bias": True}, {}),
    "linear": (
        "llama",
        rope(rope_type="linear", factor=4.0),
        {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    ),
    "yarn": (
        "qwen2",
        rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=32),
        {
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": 4.0,
            "rope.scaling.original_context_length": 32,
        },
    ),
    "qwen2": ("qwen2", {}, {}),
    "qwen3": ("qwen3", {}, {}),
    "mistral": ("mistral", {}, {}),
    "granite": ("granite", {"attention_multiplier": 0.3, "tie_word_embeddings": True}, {}),
}


def logits(module: Any) -> torch.Tensor:
    with torch.inference_mode():
        return module(input_ids=TOKENS, use_cache=False).logits[0]


def check(path: Path, expected: Any) -> None:
    """A file's logits are those of a module, by the slow forward and by our own."""
    module: Any = read_module(path, torch.float32)
    asked_for, actual = logits(expected), logits(module)
    assert (actual - asked_for).abs().max() < 1e-4 * asked_for.std()
    if model_file(path).is_known:
        assert Probe(module).agrees(compiled(path), BatchKind.TREE)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_gives_the_logits_of_transformers(family: str, tmp_path: Path) -> None:
    kind, changes, keys = FAMILIES[family]
    expected = random_module(kind, **changes)
    for layer in expected.model.layers:
        # Our forward adds biases to queries, keys and values alone.
        layer.self_attn.o_proj.bias = None
    check(save_gguf(tmp_path / "m.gguf", expected, **keys), expected)


def test_frequencies_of_llama_3_are_divided_by_a_tensor(tmp_path: Path) -> None:
    expected = random_module("llama-scaled", attention_bias=False)
    plain = 10000.0 ** -(np.arange(0, 16, 2) / 16)
    factors = plain / expected.model.rotary_emb.inv_freq.numpy()
    assert factors.max() > 2
    tensors = gguf_tensors(expected) | {"rope_freqs.weight": stored(factors)}
    metadata = gguf_metadata(expected) | vocabulary_metadata(300)
    check(write_gguf(tmp_path / "m.gguf", metadata, tensors), expected)


def test_quantised_rows_are_put_in_our_order(tmp_path: Path) -> None:
    expected = random_module("llama", intermediate_size=64)
    exact: Any = read_module(save_gguf(tmp_path / "f.gguf", expected), torch.float32)
    rounded: Any = read_module(save_gguf(tmp_path / "q.gguf", expected, "Q8_0"), torch.float32)
    weights = dict(exact.named_parameters())
    for name, weight in rounded.named_parameters():
        assert (weight - weights[name]).abs().max() < 0.02 * weights[name].abs().max(), name


def test_other_files_than_models_are_refused(tmp_path: Path) -> None:
    metadata = {"general.architecture": "llama", "general.type": "adapter"}
    path = write_gguf(tmp_path / "m.gguf", metadata, {})
    with pytest.raises(UnsupportedModel, match="is no model but 'adapter'; give the model's own"):
        read_module(path, torch.float32)


REFUSED: dict[str, tuple[dict[str, Any], type[AccelError], str]] = {
    "window": ({"attention.sliding_window": 64}, UnsupportedModel, "sliding window"),
    "experts": ({"expert_count": 8}, UnsupportedModel, "mixture of experts"),
    "soft caps": (
        {"final_logit_softcapping": 30.0},
        UnsupportedModel,
        "soft-capping of its logits",
    ),
    "part of heads": ({"rope.dimension_count": 4}, UnsupportedModel, "a part of each head"),
    "other scaling": (
        {"rope.scaling.type": "longrope", "rope.scaling.factor": 2.0},
        UnsupportedModel,
        "'longrope'",
    ),
    "no layers": ({"block_count": None}, BrokenModel, "lacks llama.block_count"),
    "more layers": ({"block_count": 3}, BrokenModel, "lacks blk.2.attn_norm.weight"),
    "fewer layers": ({"block_count": 1}, UnsupportedModel, "'blk.1.attn_k.weight' that are not"),
    "other width": ({"embedding_length": 96}, BrokenModel, "is 300 by 64 where 300 by 96"),
    "no width": ({"attention.layer_norm_rms_epsilon": 0.0}, BrokenModel, "epsilon is 0.0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_known_is_said_in_one_line(case: str, tmp_path: Path) -> None:
    keys, kind, words = REFUSED[case]
    path = save_gguf(tmp_path / "m.gguf", random_module("llama"), **keys)
    with pytest.raises(kind, match=words) as caught:
        read_module(path, torch.float32)
    message = str(caught.value)
    assert "\n" not in message
    assert ("llama.cpp" if kind is UnsupportedModel else "fetch") in message.partition(";")[2]


def test_other_families_and_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    module = random_module("llama")
    metadata = gguf_metadata(module) | vocabulary_metadata(300)
    path = tmp_path / "m.gguf"
    write_gguf(path, metadata | {"general.architecture": "gemma2"}, gguf_tensors(module))
    with pytest.raises(UnsupportedModel, match=r"'gemma2', not as llama, .*; run it with"):
        read_module(path, torch.float32)
    with torch.no_grad():
        module.model.layers[1].mlp.up_proj.weight[2, 3] = float("nan")
    write_gguf(path, metadata, gguf_tensors(module))
    with pytest.raises(BrokenModel, match=r"blk.1.ffn_up.weight has values that are no numbers;"):
        read_module(path, torch.float32)
