"""Weights that are not what their numbers stand for, and indexes that name files elsewhere."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from text_cases import data_beside, data_cases

sys.path.insert(0, str(Path(__file__).parents[1]))

from breaking import CONFIG, SHAPES, sound

from accel.errors import BrokenModel, UnsupportedModel
from accel.files.folder_architecture import folder_architecture
from accel.files.model_folder import check_folder
from accel.models.cpu.safetensors_decoder import read_decoder
from accel.models.model_file import FolderModel

DATA = data_beside(__file__)

UP = "model.layers.0.mlp.up_proj"
CONTEXT = {"max_position_embeddings": 16, "rms_norm_eps": 1e-5, "hidden_act": "silu"}


def in_numbers(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> bytes:
    """A safetensors file of zeros, each tensor in a number format of its own."""
    header: dict[str, Any] = {}
    at = 0
    for name, (dtype, shape) in tensors.items():
        size = {"F32": 4, "F16": 2, "BF16": 2, "I32": 4, "I64": 8}.get(dtype, 1)
        for length in shape:
            size *= length
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + bytes(at)


def folder(place: Path, extra: dict[str, tuple[str, tuple[int, ...]]], **config: Any) -> Path:
    """A sound model with some tensors in other numbers, or further ones."""
    sound(place)
    (place / "config.json").write_text(json.dumps(CONFIG | CONTEXT | config))
    whole = {name: ("F32", shape) for name, shape in SHAPES.items()} | extra
    (place / "model.safetensors").write_bytes(in_numbers(whole))
    return place


QUANTISED = [
    {f"{UP}.weight": ("F8_E4M3", (4, 4))},
    {f"{UP}.weight": ("F8_E5M2", (4, 4))},
    {f"{UP}.weight": ("I8", (4, 4))},
    {f"{UP}.weight": ("U8", (4, 4))},
    {"model.embed_tokens.weight": ("F8_E4M3", (8, 4))},
    {f"{UP}.experts_blocks": ("F8_E8M0", (4,))},
    {f"{UP}.weight_scale": ("F32", (1,))},
    {f"{UP}.weight_scale_inv": ("F32", (1, 1))},
    {f"{UP}.weight_scale_2": ("F32", ())},
    {f"{UP}.input_scale": ("F32", (1,))},
    {"model.layers.0.self_attn.k_scale": ("F32", (1,))},
    {f"{UP}.weight_packed": ("I32", (4, 1))},
    {f"{UP}.weight_zero_point": ("I8", (4, 1))},
    {f"{UP}.qweight": ("I32", (1, 4))},
    {f"{UP}.g_idx": ("I32", (4,))},
    {f"{UP}.SCB": ("F32", (4,))},
    {f"{UP}.weight.absmax": ("F32", (1,))},
]


@pytest.mark.parametrize("extra", QUANTISED, ids=lambda extra: "-".join(map(str, extra.items())))
def test_weights_that_are_scaled_are_refused_by_name(
    tmp_path: Path, extra: dict[str, tuple[str, tuple[int, ...]]]
) -> None:
    made = folder(tmp_path / "model", extra)
    with pytest.raises(UnsupportedModel, match=r"is quantised \(") as caught:
        check_folder(made)
    assert next(iter(extra)) in str(caught.value)
    assert folder_architecture(made) is None


@data_cases()
def test_a_method_that_nothing_here_runs_is_named(
    tmp_path: Path, config: dict[str, Any], said: str
) -> None:
    made = folder(tmp_path / "model", {}, **config)
    with pytest.raises(UnsupportedModel, match=f"is quantised by {said}"):
        check_folder(made)
    assert folder_architecture(made) is None


@data_cases()
def test_a_file_beside_the_configuration_may_say_it(tmp_path: Path, file: str, method: str) -> None:
    made = folder(tmp_path / "model", {})
    (made / file).write_text("{}")
    with pytest.raises(UnsupportedModel, match=f"is quantised by {method}, as {file} says"):
        check_folder(made)


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {f"{UP}.weight": ("F16", (4, 4))},
        {f"{UP}.weight": ("BF16", (4, 4))},
        {"model.position_ids": ("I64", (1, 16))},
        {"model.layers.0.attn.bias": ("BOOL", (4, 4))},
        {"model.layers.0.layer_scale": ("F32", (4,))},
        {"model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (1,))},
    ],
)
@pytest.mark.parametrize("config", [{}, {"quantization_config": None}, {"quantization_config": {}}])
def test_plain_weights_are_loaded(
    tmp_path: Path, extra: dict[str, tuple[str, tuple[int, ...]]], config: dict[str, Any]
) -> None:
    check_folder(folder(tmp_path / "model", extra, **config))


OUTSIDE = DATA["OUTSIDE"]


@pytest.mark.parametrize("name", OUTSIDE, ids=repr)
def test_an_index_names_files_of_its_own_folder(tmp_path: Path, name: object) -> None:
    made = folder(tmp_path / "model", {})
    whole = (made / "model.safetensors").read_bytes()
    (made / "model.safetensors").unlink()
    (made / "inside").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (made / "link").symlink_to(tmp_path / "elsewhere")
    for position in (made, made / "inside", tmp_path / "elsewhere"):
        (position / "part.safetensors").write_bytes(whole)
    index = made / "model.safetensors.index.json"

    index.write_text(json.dumps({"weight_map": dict.fromkeys(SHAPES, "part.safetensors")}))
    check_folder(made)

    index.write_text(json.dumps({"weight_map": dict.fromkeys(SHAPES, name)}))
    with pytest.raises(BrokenModel, match=r"which is not a \*\.safetensors file of its folder"):
        check_folder(made)
    assert folder_architecture(made) is None


def test_a_file_of_the_folder_may_be_a_link_as_in_the_cache_of_the_hub(tmp_path: Path) -> None:
    made = folder(tmp_path / "snapshots" / "1", {})
    (tmp_path / "blobs").mkdir()
    blob = (made / "model.safetensors").rename(tmp_path / "blobs" / "0123")
    (made / "part.safetensors").symlink_to(blob)
    listed = {"weight_map": dict.fromkeys(SHAPES, "part.safetensors")}
    (made / "model.safetensors.index.json").write_text(json.dumps(listed))
    check_folder(made)


# By transformers


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A small Llama as transformers saves it, and its tensors."""
    import torch
    from safetensors.torch import load_file
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("checkpoint") / "model"
    sizes = {"vocab_size": 64, "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    config = LlamaConfig(**sizes, **heads, tie_word_embeddings=False)
    LlamaForCausalLM(config).save_pretrained(made)
    (made / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {}}}))
    return made, load_file(made / "model.safetensors")


@data_cases("extra")
def test_a_tensor_that_the_forward_does_not_take_is_a_refusal(
    checkpoint: tuple[Path, dict[str, Any]], tmp_path: Path, extra: str
) -> None:
    import torch

    from accel.models.hf_loading import load_module

    made = _with_tensors(checkpoint, tmp_path, {extra: torch.zeros(128)})
    assert folder_architecture(made) is None
    with pytest.raises(
        UnsupportedModel, match="has weights that its model does not take"
    ) as caught:
        load_module(made, torch.float32, torch.device("cpu"))
    assert extra in str(caught.value)


@pytest.mark.parametrize(
    "gone", ["lm_head.weight", "model.norm.weight", "model.layers.1.self_attn.k_proj.weight"]
)
def test_a_tensor_that_it_wants_and_does_not_get_is_a_refusal(
    checkpoint: tuple[Path, dict[str, Any]], tmp_path: Path, gone: str
) -> None:
    import torch

    from accel.models.hf_loading import load_module

    made = _with_tensors(checkpoint, tmp_path, {}, gone)
    assert folder_architecture(made) is None
    with pytest.raises(BrokenModel, match=f"lacks weights such as {gone}"):
        load_module(made, torch.float32, torch.device("cpu"))


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name", ["model.norm.weight", "lm_head.weight", "model.layers.1.self_attn.k_proj.weight"]
)
def test_values_that_are_no_numbers_are_a_refusal(
    checkpoint: tuple[Path, dict[str, Any]], tmp_path: Path, name: str, value: float, dtype: str
) -> None:
    damaged = checkpoint[1][name].clone()
    damaged.view(-1)[3] = value
    made = _with_tensors(checkpoint, tmp_path, {name: damaged})
    with pytest.raises(BrokenModel, match=f"{name} has values that are no numbers"):
        read_decoder(FolderModel(made), dtype)


def test_a_head_of_its_own_counts_where_the_configuration_ties_it(
    checkpoint: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    made = _with_tensors(checkpoint, tmp_path, {}, tie_word_embeddings=True)
    actual = folder_architecture(made)
    assert actual is not None
    assert actual.tensors["lm_head.weight"] != actual.tensors["model.embed_tokens.weight"]


def _with_tensors(
    checkpoint: tuple[Path, dict[str, Any]],
    tmp_path: Path,
    extra: dict[str, Any],
    gone: str = "",
    **config: Any,
) -> Path:
    from safetensors.torch import save_file

    whole, tensors = checkpoint
    made = tmp_path / "model"
    made.mkdir()
    for file in whole.glob("*.json"):
        (made / file.name).write_bytes(file.read_bytes())
    told = json.loads((made / "config.json").read_text())
    (made / "config.json").write_text(json.dumps(told | config))
    kept = {name: tensor for name, tensor in tensors.items() if name != gone}
    save_file(kept | extra, made / "model.safetensors", {"format": "pt"})
    return made


def test_the_sound_one_is_known(checkpoint: tuple[Path, dict[str, Any]]) -> None:
    assert folder_architecture(checkpoint[0]) is not None
