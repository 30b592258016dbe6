"""The layers of decoders built like Llama (also Qwen2, Qwen3, Mistral and others), with fewer and
larger operations than transformers' modules. Whether a module is built this way is read from its
parts and confirmed by comparing logits, never from its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from accel.files.rope import rope_table, rotary_frequencies
from accel.models.attention_windows import attention_windows
from accel.models.base import Cache, Logits, Model
from accel.models.batch import ForwardBatch
from accel.models.packed_linear import Linear
from accel.models.torch_names import name_of

_STATIC_ROPE = ("default", "linear", "llama3", "yarn")

Attend = Callable[..., Tensor]
"""Attention output [T, heads * D] of a layer by its number, and of what is known before attention:
rows' query [T, heads, D], key and value [T, kv_heads, D], which are to be attended, too."""


class _Norm:
    """Root mean square norm over the last dimension, in fp32, in half the time of torch's own."""

    def __init__(self, module: Any) -> None:
        hidden_size = module.weight.shape[-1]
        self.eps = eps_of(module)
        self._weight = module.weight.float() * hidden_size**0.5
        self._floor = torch.tensor((hidden_size * self.eps) ** 0.5, device=module.weight.device)

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.float()
        length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        return (wide / torch.hypot(length, self._floor)).mul_(self._weight).to(x.dtype)


class _Layer:
    """Weights of one decoder layer."""

    def __init__(self, module: Any) -> None:
        attention, mlp = module.self_attn, module.mlp
        self.attention_norm = _Norm(module.input_layernorm)
        self.mlp_norm = _Norm(module.post_attention_layernorm)
        self.qkv = _fused(attention.q_proj, attention.k_proj, attention.v_proj)
        self.output = _fused(attention.o_proj)
        self.gate_up = _fused(mlp.gate_proj, mlp.up_proj)
        self.down = _fused(mlp.down_proj)
        self.head_norms: tuple[_Norm, _Norm] | None = None
        if hasattr(attention, "q_norm"):
            self.head_norms = _Norm(attention.q_norm), _Norm(attention.k_norm)


class FusedLlama(Model):
    """The layers, without what attends in between and caches. Build it with ``from_module``."""

    def __init__(self, module: Any) -> None:
        base, config = module.model, module.config
        attention = base.layers[0].self_attn
        weight = base.embed_tokens.weight
        self.dtype, self.device = name_of(weight.dtype), weight.device.type
        self.vocabulary_size = module.lm_head.weight.shape[0]
        self.max_positions = config.max_position_embeddings
        self._head_dim = attention.head_dim
        self._heads = attention.q_proj.weight.shape[0] // self._head_dim
        self._kv_heads = attention.k_proj.weight.shape[0] // self._head_dim
        self._scaling = attention.scaling
        self._embedding = base.embed_tokens.weight.data
        self._layers = [_layer_of(layer) for layer in base.layers]
        self._norm = _Norm(base.norm)
        self._head = Linear(module.lm_head.weight.data)
        self._activation = base.layers[0].mlp.act_fn
        self._silu = isinstance(self._activation, nn.SiLU)
        self._rotary = base.rotary_emb

    @classmethod
    def from_module(cls, module: nn.Module) -> FusedLlama | None:
        """The lean form of a module, None when its parts are others than Llama's.

        The module's layers give up their weights, so that no model is in memory twice.
        """
        return cls(module) if is_built_like_llama(module) else None

    def forward(self, batch: ForwardBatch, caches: Sequence[Cache]) -> Logits:
        (logits,) = self.forward_all([batch], caches)
        return logits

    def _through_layers(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        """Rows [T, hidden_size] after all layers."""
        for index, layer in enumerate(self._layers):
            attended = attend(index, *self._before_attention(layer, x, cos, sin))
            x = self._after_attention(layer, x, attended)
        return x

    def _before_attention(
        self, layer: _Layer, x: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, ...]:
        """Query [T, heads, D], key and value [T, kv_heads, D] of rows [T, hidden_size]."""
        heads, kv_heads, head_dim = self._heads, self._kv_heads, self._head_dim
        qkv = layer.qkv(layer.attention_norm(x)).view(len(x), heads + 2 * kv_heads, head_dim)
        rotated = qkv[:, : heads + kv_heads]
        if layer.head_norms is not None:
            query_norm, key_norm = layer.head_norms
            rotated = torch.cat([query_norm(rotated[:, :heads]), key_norm(rotated[:, heads:])], 1)
        rotated = torch.addcmul(rotated * cos, rotated.roll(head_dim // 2, -1), sin)
        return rotated[:, :heads], rotated[:, heads:], qkv[:, heads + kv_heads :]

    def _after_attention(self, layer: _Layer, x: Tensor, attended: Tensor) -> Tensor:
        """Rows after a layer. attended: [T, heads * D]."""
        x = x + layer.output(attended)
        return x + layer.down(self._gated(layer.gate_up(layer.mlp_norm(x))))

    def _gated(self, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        return (silu(gate) if self._silu else self._activation(gate)) * up

    def _rope_table(self, positions: int) -> Tensor:
        """[positions, 2, 1, D]. The sine is negative for the first half (rotate_half)."""
        cos, sin = rope_angles(self._rotary, positions)
        table = torch.stack([torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)], 1)
        return table[:, :, None].to(self._embedding.dtype)


def rope_angles(rotary: Any, positions: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the first positions. float32 [positions, D / 2] both."""
    scale = float(rotary.attention_scaling)
    table = torch.from_numpy(rope_table(rotary_frequencies(rotary), scale, positions))
    cos, sin = table.to(rotary.inv_freq.device).unbind(1)
    return cos, sin


def _layer_of(module: Any) -> _Layer:
    """The layer's weights in our layout; its own are freed."""
    layer = _Layer(module)
    for parameter in module.parameters():
        parameter.data = parameter.data.new_empty(0)
    return layer


def is_built_like_llama(module: Any) -> bool:
    """Whether a causal LM of transformers has Llama's parts and no others."""
    config = module.config
    base: Any = getattr(module, "model", None)
    parts = {name for name, _ in base.named_children()} if base is not None else set()
    if parts != {"embed_tokens", "layers", "norm", "rotary_emb"}:
        return False
    windows = attention_windows(config)
    limit = getattr(config, "max_position_embeddings", 0)
    if windows is None or any(window and window < limit for window in windows.values()):
        return False
    return (
        getattr(module.lm_head, "bias", None) is None
        and getattr(base.rotary_emb, "rope_type", None) in _STATIC_ROPE
        and all(_is_llama_layer(layer, base.rotary_emb) for layer in base.layers)
    )


def _is_llama_layer(layer: Any, rotary: Any) -> bool:
    attention = layer.self_attn
    projections = {"q_proj", "k_proj", "v_proj", "o_proj"}
    names = {name for name, _ in attention.named_children()}
    head_dim = getattr(attention, "head_dim", 0)
    norms = [getattr(attention, name) for name in ("q_norm", "k_norm") if hasattr(attention, name)]
    return (
        {name for name, _ in layer.named_children()}
        == {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
        and projections <= names
        and names <= projections | {"q_norm", "k_norm"}
        and all(norm.weight.shape == (head_dim,) for norm in norms)
        and {"gate_proj", "up_proj", "down_proj"}
        <= {name for name, _ in layer.mlp.named_children()}
        and 2 * rotary.inv_freq.shape[-1] == head_dim
    )


def eps_of(norm: Any) -> float:
    return float(getattr(norm, "variance_epsilon", getattr(norm, "eps", 1e-6)))


def fused_weights(*projections: nn.Linear) -> Tensor:
    """The weights of several projections of the same input as one matrix."""
    return torch.cat([projection.weight.data for projection in projections])


def fused_biases(*projections: nn.Linear) -> Tensor:
    """The biases of several projections as one, [0] where none has any."""
    if all(projection.bias is None for projection in projections):
        return projections[0].weight.data.new_zeros(0)
    return torch.cat(
        [
            projection.weight.data.new_zeros(len(projection.weight))
            if projection.bias is None
            else projection.bias.data
            for projection in projections
        ]
    )


def _fused(*projections: nn.Linear) -> Linear:
    """Several projections of the same input as one; the weights survive the module's."""
    biases = fused_biases(*projections)
    return Linear(fused_weights(*projections), biases if len(biases) else None)
