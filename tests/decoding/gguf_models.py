"""Small random models of transformers written as GGUF files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf_writer import Stored, stored, write_gguf
from numpy.typing import NDArray
from small_vocabularies import CONTROL, LETTERS, NORMAL, TEMPLATE, USER_DEFINED
from text_cases import data_beside
from tiny_models import CONFIGS
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

DATA = data_beside(__file__)

NAMES = DATA["NAMES"]


def random_module(kind: str, seed: int = 0, **changes: Any) -> Any:
    """A module of one of the kinds in ``tiny_models``, in fp32, with random biases and norms."""
    model_type, values = CONFIGS[kind]
    config = CONFIG_MAPPING[model_type](**(values | changes))
    torch.manual_seed(seed)
    module = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for name, parameter in module.named_parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=float("norm" in name), std=0.2)
    return module


def gguf_tensors(module: Any, matrices: str = "F32") -> dict[str, Stored]:
    """All weights by the names of GGUF, Q and K in Llama's order where the family has that."""
    config = module.config
    is_interleaved = config.model_type in ("llama", "mistral", "granite")
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    actual = {}
    for name, tensor in module.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        layer, _, rest = name.removeprefix("model.layers.").partition(".")
        is_layer = name.startswith("model.layers.")
        part, _, kind = (rest if is_layer else name).rpartition(".")
        if is_interleaved and (count := heads.get(part.rpartition(".")[2])):
            values = in_llama_order(values, count)
        prefix = f"blk.{layer}." if is_layer else ""
        # As llama.cpp has it, norms and biases stay in float32.
        type_ = matrices if values.ndim > 1 else "F32"
        actual[f"{prefix}{NAMES[part]}.{kind}"] = stored(values, type_)
    return actual


def in_llama_order(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Row by row: pair i of a head is its rows 2i and 2i + 1."""
    depth = len(values) // heads
    moved = np.empty_like(values)
    for head in range(heads):
        for pair in range(depth // 2):
            start = head * depth
            moved[start + 2 * pair] = values[start + pair]
            moved[start + 2 * pair + 1] = values[start + depth // 2 + pair]
    return moved


def gguf_metadata(module: Any, **changes: Any) -> dict[str, Any]:
    """The keys of a module's config; ``changes`` without the architecture."""
    config = module.config
    name = {"mistral": "llama"}.get(config.model_type, config.model_type)
    keys: dict[str, Any] = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "rope.freq_base": float(config.rope_parameters["rope_theta"]),
    }
    if getattr(config, "head_dim", None):
        keys["attention.key_length"] = keys["attention.value_length"] = config.head_dim
    if name == "granite":
        keys["embedding_scale"] = float(config.embedding_multiplier)
        keys["residual_scale"] = float(config.residual_multiplier)
        keys["attention.scale"] = float(config.attention_multiplier)
        keys["logit_scale"] = float(config.logits_scaling)
    keys |= changes
    return {
        "general.architecture": name,
        **{f"{name}.{key}": value for key, value in keys.items() if value is not None},
    }


def vocabulary_metadata(size: int) -> dict[str, Any]:
    """A byte-level vocabulary of ``size`` tokens, the last of which ends a text."""
    controls = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>"]
    controls += ["<|im_start|>", "<|im_end|>"]
    # A byte-level file has merges. These bytes stand in no UTF-8.
    pair = [LETTERS[0xFE], LETTERS[0xFF]]
    ordinary = [*LETTERS, "".join(pair)]
    left = [f"[PAD{n}]" for n in range(size - len(ordinary) - len(controls))]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": [*ordinary, *left, *controls],
        "tokenizer.ggml.token_type": [NORMAL] * len(ordinary)
        + [USER_DEFINED] * len(left)
        + [CONTROL] * len(controls),
        "tokenizer.ggml.merges": [" ".join(pair)],
        "tokenizer.ggml.eos_token_id": size - 1,
        "tokenizer.chat_template": TEMPLATE,
    }


def save_gguf(path: Path, module: Any, matrices: str = "F32", **changes: Any) -> Path:
    """A whole file."""
    metadata = gguf_metadata(module, **changes) | vocabulary_metadata(module.config.vocab_size)
    return write_gguf(path, metadata, gguf_tensors(module, matrices))
