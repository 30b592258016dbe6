"""A GGUF file's decoder as a module of torch, with a slow forward that others are compared with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

from accel.files.decoder_tensors import EMBEDDING, HEAD, Architecture
from accel.files.gguf.architecture import read_architecture
from accel.files.gguf.file import GgufFile, is_gguf
from accel.files.gguf.rope_frequencies import RopeFrequencies, read_rope_frequencies
from accel.files.gguf.vocabulary import read_vocabulary
from accel.files.gguf.weights import GgufWeights
from accel.files.rope import rope_table
from accel.models.hf_loading import load_module


def load_decoder(
    path: Path, dtype: torch.dtype, device: torch.device, implementation: str
) -> nn.Module:
    """Return the decoder of a GGUF file or a folder, the latter with the attention called
    ``implementation``. Raises BrokenModel, UnsupportedModel or OutOfMemory."""
    if is_gguf(path):
        return read_module(path, dtype).to(device).eval()
    return load_module(path, dtype, device, implementation)


def read_module(path: Path, dtype: torch.dtype) -> nn.Module:
    """Return the decoder of a file, dequantised, on the CPU. Raises BrokenModel or
    UnsupportedModel."""
    with GgufFile(path) as file:
        architecture = read_architecture(file)
        vocabulary = read_vocabulary(file.metadata)
        weights = GgufWeights(file, architecture)
        rope = read_rope_frequencies(file, architecture)
        module = GgufDecoder(architecture, rope, weights, dtype)
    module.config.eos_token_id = sorted(vocabulary.end_tokens)
    return module


class GgufDecoder(nn.Module):
    """Parts by the names of transformers. Its own forward is for comparison alone: without a cache,
    in float32, one operation after another."""

    def __init__(
        self,
        architecture: Architecture,
        rope: RopeFrequencies,
        weights: GgufWeights,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.config = _Config(architecture)
        read = _Reader(weights, dtype)
        embedding = read.tensor(EMBEDDING)
        self.model = _holding(
            embed_tokens=nn.Embedding.from_pretrained(embedding),
            layers=nn.ModuleList(
                _layer(read, f"model.layers.{place}", architecture)
                for place in range(architecture.layers)
            ),
            norm=_Norm(read.tensor("model.norm.weight"), architecture.eps),
            rotary_emb=_Rotary(rope),
        )
        self.lm_head = _linear(read.tensor(HEAD) if HEAD in weights else embedding)

    def get_output_embeddings(self) -> Any:
        """The head, as transformers calls it."""
        return self.lm_head

    def forward(self, input_ids: Tensor, **_options: object) -> Any:
        """Logits [rows, tokens, vocabulary] of [rows, tokens] under ``logits``."""
        base: Any = self.model
        turning = base.rotary_emb.angles(input_ids.shape[1])
        x = base.embed_tokens.weight[input_ids].float()
        for layer in base.layers:
            x = x + _attention(layer.self_attn, layer.input_layernorm(x), turning)
            h = layer.post_attention_layernorm(x)
            mlp = layer.mlp
            x = x + _product(
                mlp.down_proj, silu(_product(mlp.gate_proj, h)) * _product(mlp.up_proj, h)
            )
        return SimpleNamespace(logits=_product(self.lm_head, base.norm(x)))


def _attention(part: Any, h: Tensor, turning: tuple[Tensor, Tensor]) -> Tensor:
    """What attention adds to states [rows, tokens, hidden_size]."""
    query, key, value = (
        _product(projection, h).unflatten(-1, (-1, part.head_dim))
        for projection in (part.q_proj, part.k_proj, part.v_proj)
    )
    if hasattr(part, "q_norm"):
        query, key = part.q_norm(query), part.k_norm(key)
    query, key = _apply_rope(query, *turning), _apply_rope(key, *turning)
    group = query.shape[2] // key.shape[2]
    key, value = key.repeat_interleave(group, 2), value.repeat_interleave(group, 2)
    query, key, value = (each.transpose(1, 2) for each in (query, key, value))
    attended = scaled_dot_product_attention(query, key, value, is_causal=True, scale=part.scaling)
    return _product(part.o_proj, attended.transpose(1, 2).flatten(2))


def _apply_rope(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE of heads [rows, tokens, heads, head_dim], the first half paired with the second."""
    first, second = heads.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def _product(linear: Any, x: Tensor) -> Tensor:
    found = x @ linear.weight.float().T
    return found if linear.bias is None else found + linear.bias.float()


class _Norm(nn.Module):
    """Root mean square norm over the last dimension."""

    def __init__(self, weight: Tensor, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.variance_epsilon = eps

    def forward(self, x: Tensor) -> Tensor:
        """x over its length."""
        length = (x.float().square().mean(-1, keepdim=True) + self.variance_epsilon).sqrt()
        return x.float() / length * self.weight.float()


class _Rotary(nn.Module):
    rope_type = "default"

    def __init__(self, rope: RopeFrequencies) -> None:
        super().__init__()
        self.inv_freq: Tensor
        self.register_buffer("inv_freq", torch.from_numpy(rope.frequencies))
        self._rope = rope

    def angles(self, positions: int) -> tuple[Tensor, Tensor]:
        """Return cosines and sines of the first ``positions``, float32 [positions, D / 2] each."""
        table = rope_table(self._rope.frequencies, self._rope.scale, positions)
        cos, sin = torch.from_numpy(table).to(self.inv_freq.device).unbind(1)
        return cos, sin


class _Config(SimpleNamespace):
    """What our forwards ask a config of transformers for."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(
            max_position_embeddings=architecture.positions,
            hidden_act="silu",
            sliding_window=None,
            eos_token_id=None,
        )

    def get_text_config(self) -> _Config:
        """Itself: there is no other part."""
        return self


class _Reader:
    """Weights as tensors of one dtype."""

    def __init__(self, weights: GgufWeights, dtype: torch.dtype) -> None:
        self._weights = weights
        self._dtype = dtype

    def tensor(self, name: str) -> Tensor:
        return torch.from_numpy(self._weights.values(name)).to(self._dtype)

    def linear(self, name: str) -> nn.Linear:
        bias = f"{name}.bias"
        return _linear(
            self.tensor(f"{name}.weight"), self.tensor(bias) if bias in self._weights else None
        )


def _layer(read: _Reader, name: str, architecture: Architecture) -> nn.Module:
    projections = ("q_proj", "k_proj", "v_proj", "o_proj")
    attention = _holding(**{each: read.linear(f"{name}.self_attn.{each}") for each in projections})
    attention.head_dim = architecture.head_dim
    attention.scaling = architecture.attention_scale
    if architecture.family.norms_heads:
        for each in ("q_norm", "k_norm"):
            weight = read.tensor(f"{name}.self_attn.{each}.weight")
            attention.add_module(each, _Norm(weight, architecture.eps))
    gated = ("gate_proj", "up_proj", "down_proj")
    mlp = _holding(**{each: read.linear(f"{name}.mlp.{each}") for each in gated})
    mlp.act_fn = nn.SiLU()
    norms = {
        each: _Norm(read.tensor(f"{name}.{each}.weight"), architecture.eps)
        for each in ("input_layernorm", "post_attention_layernorm")
    }
    return _holding(self_attn=attention, mlp=mlp, **norms)


def _linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    made = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    made.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        made.bias = nn.Parameter(bias, requires_grad=False)
    return made


def _holding(**parts: nn.Module) -> Any:
    made: Any = nn.Module()
    for name, part in parts.items():
        made.add_module(name, part)
    return made
