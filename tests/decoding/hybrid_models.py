"""Small random hybrids like Qwen3.5: as folders, and as llama.cpp's converter writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf_models import gguf_metadata, vocabulary_metadata
from gguf_writer import Stored, stored, write_gguf
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from text_cases import data_beside
from tiny_models import CONFIGS, byte_tokenizer
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

DATA = data_beside(__file__)

_NAMES = DATA["_NAMES"]


def random_hybrid(seed: int = 0, **changes: Any) -> Any:
    """A module in fp32, whose norms, gates and biases are random, too."""
    kind, values = CONFIGS["qwen3_5"]
    torch.manual_seed(seed)
    config = CONFIG_MAPPING[kind](**(values | changes))
    module = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for name, parameter in module.named_parameters():
        if name.endswith(("norm.weight", "dt_bias")):
            torch.nn.init.normal_(parameter, mean=float("linear_attn.norm" in name), std=0.3)
        elif name.endswith("A_log"):
            # From heads that forget at once to such that hardly do.
            torch.nn.init.uniform_(parameter, -5.0, 2.7)
    return module


def save_hybrid(folder: Path, module: Any, *, whole: bool = False) -> Path:
    """A folder; ``whole`` as it is published, with parts for pictures and for several tokens."""
    module.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(byte_tokenizer(), "utf-8")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 299}), "utf-8")
    if whole:
        file, about = folder / "model.safetensors", folder / "config.json"
        tensors = {
            name.replace("model.", "model.language_model.", 1): tensor
            for name, tensor in load_file(file).items()
        }
        tensors["model.visual.blocks.0.attn.proj.weight"] = torch.zeros(8, 8)
        tensors["mtp.layers.0.mlp.up_proj.weight"] = torch.zeros(8, 8)
        save_file(tensors, file)
        config = json.loads(about.read_text("utf-8"))
        vision = {"model_type": "qwen3_5_vision"}
        outer = {"model_type": "qwen3_5", "architectures": ["Qwen3_5ForConditionalGeneration"]}
        outer |= {"text_config": config, "vision_config": vision}
        outer["tie_word_embeddings"] = config.get("tie_word_embeddings", False)
        about.write_text(json.dumps(outer), "utf-8")
    return folder


def hybrid_tensors(module: Any, matrices: str = "F32") -> dict[str, Stored]:
    """Return the converter's tensors: heads of values tiled, norms with their one, -exp(A_log)."""
    config, actual = module.config, {}
    heads, size = config.linear_num_key_heads, config.linear_value_head_dim
    keys = 2 * heads * config.linear_key_head_dim
    for name, tensor in module.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        is_layer = name.startswith("model.layers.")
        layer, _, rest = name.removeprefix("model.layers.").partition(".")
        part = rest if is_layer else name
        if part.endswith("norm.weight") and part != "linear_attn.norm.weight":
            values = values + 1
        if part == "linear_attn.A_log":
            values = -np.exp(values)
        if "conv1d" in part:
            values = values[:, 0]
        if "in_proj_qkv" in part or "conv1d" in part:
            values = np.concatenate([values[:keys], tiled(values[keys:], heads, size)])
        elif "in_proj_z" in part:
            values = tiled(values, heads, size)
        elif part.endswith(
            ("in_proj_a.weight", "in_proj_b.weight", "linear_attn.A_log", "dt_bias")
        ):
            values = tiled(values, heads, 1)
        elif "out_proj" in part:
            values = np.ascontiguousarray(tiled(values.T, heads, size).T)
        kind = matrices if values.ndim > 1 and "conv1d" not in part else "F32"
        actual[f"blk.{layer}." * is_layer + _NAMES[part]] = stored(values, kind)
    return actual


def tiled(values: NDArray[np.float32], key_heads: int, size: int) -> NDArray[np.float32]:
    """Rows of heads of values, ``size`` each, of which those of a key head were beside each
    other."""
    grouped = values.reshape(key_heads, -1, size, *values.shape[1:])
    return np.ascontiguousarray(grouped.swapaxes(0, 1)).reshape(values.shape)


def hybrid_metadata(module: Any, **changes: Any) -> dict[str, Any]:
    """The keys that the converter writes."""
    config = module.config
    keys = {
        "rope.dimension_count": int(config.head_dim * 0.5),
        "rope.dimension_sections": [8, 4, 4, 0],
        "ssm.conv_kernel": config.linear_conv_kernel_dim,
        "ssm.state_size": config.linear_key_head_dim,
        "ssm.group_count": config.linear_num_key_heads,
        "ssm.time_step_rank": config.linear_num_value_heads,
        "ssm.inner_size": config.linear_num_value_heads * config.linear_value_head_dim,
        "full_attention_interval": 4,
    }
    plain = gguf_metadata(module, **(keys | changes))
    return {key.replace("qwen3_5_text.", "qwen35."): value for key, value in plain.items()} | {
        "general.architecture": "qwen35"
    }


def save_hybrid_gguf(path: Path, module: Any, matrices: str = "F32", **changes: Any) -> Path:
    """A whole file."""
    metadata = hybrid_metadata(module, **changes) | vocabulary_metadata(module.config.vocab_size)
    return write_gguf(path, metadata, hybrid_tensors(module, matrices))
