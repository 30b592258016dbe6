"""A module's weights as the compiled forward takes them: packed, or quantised to eight bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accel.models.cpu.attention import Shape
from accel.models.cpu.decoder import MOST_BYTES, Decoder, descriptors_of
from accel.models.cpu.matmul import BLOCK, packed
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.weights import Weights
from accel.models.llama_torch import eps_of, fused_biases, fused_weights, is_built_like_llama
from accel.models.rope import rope_table, rotary_frequencies
from accel.models.torch_names import name_of
from accel.native.aligned_memory import empty
from accel.native.deterministic_sum import MOST_SUMMED


def can_be_compiled(module: Any, *, quantised: bool = False) -> bool:
    """Whether a module has the parts that the compiled forward has, and is not too large: there is
    no other forward for one that is ``quantised``."""
    if not is_built_like_llama(module):
        return False
    base = module.model
    attention, weight = base.layers[0].self_attn, base.embed_tokens.weight
    size = sum(p.numel() * p.element_size() for p in module.parameters())
    linears = [part for part in module.modules() if isinstance(part, nn.Linear)]
    return (
        weight.device.type == "cpu"
        and weight.dtype in (torch.float32, torch.bfloat16)
        and (quantised or size <= MOST_BYTES)
        and attention.head_dim % BLOCK == 0
        and module.config.hidden_act == "silu"
        and all(part.in_features % BLOCK == 0 for part in linears)
        and not any(
            name.endswith(".bias") and not name.endswith(_BIASED)
            for name, _ in module.named_parameters()
        )
    )


_BIASED = ("q_proj.bias", "k_proj.bias", "v_proj.bias")
"""As Qwen2 has them."""


def decoder_of(module: Any, *, quantised: bool = False) -> Decoder:
    """The parts of a module that ``can_be_compiled``; its layers give up their weights."""
    base, config = module.model, module.config
    attention = base.layers[0].self_attn
    head_dim, rotary = attention.head_dim, base.rotary_emb
    shape = Shape(
        heads=attention.q_proj.weight.shape[0] // head_dim,
        kv_heads=attention.k_proj.weight.shape[0] // head_dim,
        head_dim=head_dim,
        eps=eps_of(base.norm),
        scaling=float(attention.scaling),
    )

    def cos_sin(positions: int) -> NDArray[np.float32]:
        scale = float(rotary.attention_scaling)
        return rope_table(rotary_frequencies(rotary), scale, positions)

    dtype, vocabulary = name_of(base.embed_tokens.weight.dtype), module.lm_head.weight.shape[0]
    weights, matrices = quantise(module) if quantised else (pack_weights(module), ())
    return Decoder(
        shape=shape,
        weights=weights,
        vocabulary_size=vocabulary,
        max_positions=min(config.max_position_embeddings, MOST_SUMMED),
        dtype="int8" if quantised else dtype,
        cos_sin=cos_sin,
        matrices=matrices,
    )


def quantise(module: Any) -> tuple[Weights, tuple[QuantisedMatrix, ...]]:
    """The module's weights rounded to eight bits, and the matrices that hold them; its own are
    freed."""
    base, layers = module.model, module.model.layers
    matrices: list[QuantisedMatrix] = []

    def matrix_of(part: Any) -> QuantisedMatrix:
        weight = part.weight.detach()

        def rows(first: int, last: int) -> NDArray[np.float32]:
            numbers: NDArray[np.float32] = weight[first:last].float().numpy()
            return numbers

        matrices.append(QuantisedMatrix.from_numbers(rows, *weight.shape))
        return matrices[-1]

    def stacked(parts_of: Callable[[Any], tuple[Any, ...]]) -> NDArray[np.int64]:
        found = []
        for layer in layers:
            parts = parts_of(layer)
            found.append([matrix_of(part) for part in parts])
            for part in parts:
                part.weight.data = part.weight.data.new_empty(0)
        return descriptors_of(found)

    head = descriptors_of([[matrix_of(module.lm_head)]])
    is_tied = module.lm_head.weight.data_ptr() == base.embed_tokens.weight.data_ptr()
    embedding = head if is_tied else descriptors_of([[matrix_of(base.embed_tokens)]])
    weights = _weights(module, stacked, embedding, head)
    for parameter in module.parameters():
        parameter.data = parameter.data.new_empty(0)
    return weights, tuple(matrices)


def pack_weights(module: Any) -> Weights:
    """The module's weights in our layout; those of its layers are freed."""
    layers = module.model.layers

    def stacked(parts_of: Callable[[Any], tuple[Any, ...]]) -> NDArray[Any]:
        """Layer by layer, so that little is in memory twice."""
        whole: NDArray[Any] | None = None
        for place, layer in enumerate(layers):
            parts = parts_of(layer)
            matrix = packed(_array(fused_weights(*parts)))
            if whole is None:
                whole = empty((len(layers), *matrix.shape), matrix.dtype)
            whole[place] = matrix
            for part in parts:
                part.weight.data = part.weight.data.new_empty(0)
        assert whole is not None
        return whole

    embedding = _array(module.model.embed_tokens.weight.data)
    head = packed(_array(module.lm_head.weight.data))[None]
    weights = _weights(module, stacked, embedding, head)
    for parameter in layers.parameters():
        parameter.data = parameter.data.new_empty(0)
    return weights


def _weights(
    module: Any,
    stacked: Callable[[Callable[[Any], tuple[Any, ...]]], NDArray[Any]],
    embedding: NDArray[Any],
    head: NDArray[Any],
) -> Weights:
    """stacked: makes the matrices of all layers of the parts that a function picks of each."""
    base, layers = module.model, module.model.layers

    def heads_of(layer: Any) -> tuple[Any, ...]:
        return layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj

    biases = [fused_biases(*heads_of(layer)) for layer in layers]
    return Weights(
        embedding=embedding,
        attention_norm=np.stack([_floats(layer.input_layernorm.weight) for layer in layers]),
        qkv=stacked(heads_of),
        qkv_bias=np.stack([_floats(bias) for bias in biases]),
        query_norm=_head_norms(layers, "q_norm"),
        key_norm=_head_norms(layers, "k_norm"),
        output=stacked(lambda layer: (layer.self_attn.o_proj,)),
        mlp_norm=np.stack([_floats(layer.post_attention_layernorm.weight) for layer in layers]),
        gate_up=stacked(lambda layer: (layer.mlp.gate_proj, layer.mlp.up_proj)),
        down=stacked(lambda layer: (layer.mlp.down_proj,)),
        norm=_floats(base.norm.weight),
        head=head,
    )


def _head_norms(layers: Any, name: str) -> NDArray[np.float32]:
    """float32 [layers, head_dim], [layers, 0] where there is none."""
    parts = [getattr(layer.self_attn, name, None) for layer in layers]
    if parts[0] is None:
        return np.empty((len(parts), 0), np.float32)
    return np.stack([_floats(part.weight) for part in parts if part is not None])


def _array(tensor: Tensor) -> NDArray[Any]:
    """float32, or the bits of bf16 as int16."""
    tensor = tensor.detach()
    return (tensor if tensor.dtype == torch.float32 else tensor.view(torch.int16)).numpy()


def _floats(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().numpy().copy()
    return array
