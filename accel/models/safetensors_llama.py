"""A Llama's weights by the names of transformers, but without it: its import takes half of a start.
The parts compute nothing; the compiled forward takes what it needs of them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

_WEIGHTS = "model.safetensors"


class _Config(SimpleNamespace):
    """A model's ``config.json``."""

    def get_text_config(self) -> _Config:
        """Itself: there is no other part."""
        return self


class _Norm(nn.Module):
    def __init__(self, weight: Tensor, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.variance_epsilon = eps


class _Rotary(nn.Module):
    """The default rotation: attention_scaling is 1."""

    rope_type = "default"
    attention_scaling = 1.0

    def __init__(self, theta: float, depth: int) -> None:
        super().__init__()
        places = torch.arange(0, depth, 2, dtype=torch.int64).float()
        self.inv_freq = 1.0 / (theta ** (places / depth))


def read_llama(folder: Path, dtype: torch.dtype) -> nn.Module | None:
    """The module of a folder on the CPU, or None where it is another model, or has something about
    it that only transformers knows: the caller lets that read it, or say what is wrong."""
    try:
        config = _Config(**json.loads((folder / "config.json").read_text("utf-8")))
        if not _is_plain(config):
            return None
        tensors = load_file(folder / _WEIGHTS)
        module = _module(config, {name: each.to(dtype) for name, each in tensors.items()})
        module.generation_config = _generation_config(folder)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, SafetensorError):
        return None
    return module


def _is_plain(config: _Config) -> bool:
    return (
        config.model_type == "llama"
        and config.rope_parameters["rope_type"] == "default"
        and "partial_rotary_factor" not in config.rope_parameters
        and not (config.attention_bias or config.mlp_bias)
        and not hasattr(config, "quantization_config")
    )


def _module(config: _Config, tensors: dict[str, Tensor]) -> Any:
    """Raises KeyError for weights that are missing, ValueError for such that are left."""
    left = dict(tensors)

    def linear(name: str) -> nn.Linear:
        weight = left.pop(f"{name}.weight")
        made = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
        made.weight = nn.Parameter(weight, requires_grad=False)
        return made

    def norm(name: str) -> nn.Module:
        return _Norm(left.pop(f"{name}.weight"), config.rms_norm_eps)

    def holding(**parts: nn.Module) -> Any:
        made: Any = nn.Module()
        for name, part in parts.items():
            made.add_module(name, part)
        return made

    def layer(prefix: str) -> nn.Module:
        projections = ("q_proj", "k_proj", "v_proj", "o_proj")
        attention = holding(**{name: linear(f"{prefix}.self_attn.{name}") for name in projections})
        attention.head_dim = config.head_dim
        attention.scaling = config.head_dim**-0.5
        gated = ("gate_proj", "up_proj", "down_proj")
        return holding(
            self_attn=attention,
            mlp=holding(**{name: linear(f"{prefix}.mlp.{name}") for name in gated}),
            input_layernorm=norm(f"{prefix}.input_layernorm"),
            post_attention_layernorm=norm(f"{prefix}.post_attention_layernorm"),
        )

    embedding = left.pop("model.embed_tokens.weight")
    if config.tie_word_embeddings:
        left["lm_head.weight"] = embedding
    places = range(config.num_hidden_layers)
    base = holding(
        embed_tokens=nn.Embedding.from_pretrained(embedding),
        layers=nn.ModuleList(layer(f"model.layers.{place}") for place in places),
        norm=norm("model.norm"),
        rotary_emb=_Rotary(config.rope_parameters["rope_theta"], config.head_dim),
    )
    module = holding(model=base, lm_head=linear("lm_head"))
    module.config = config
    if left:
        raise ValueError(f"weights that no part has: {', '.join(sorted(left))}")
    return module


def _generation_config(folder: Path) -> SimpleNamespace | None:
    file = folder / "generation_config.json"
    return SimpleNamespace(**json.loads(file.read_text("utf-8"))) if file.exists() else None


__all__ = ["read_llama"]
