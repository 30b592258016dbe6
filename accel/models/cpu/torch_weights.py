"""A module's weights as the compiled forward takes them: packed, or quantised to eight bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from accel.files.rope import rope_table, rotary_frequencies
from accel.models.cpu.attention import Floats, Shape
from accel.models.cpu.decoder import MOST_BYTES, Decoder
from accel.models.cpu.matmul import BLOCK
from accel.models.cpu.named_tensors import packed_weights, quantised_weights, widened
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.llama_torch import eps_of, is_built_like_llama
from accel.models.torch_names import name_of
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
        and len({part.bias is None for part in _heads_of(attention)}) == 1
        and not any(
            name.endswith(".bias") and not name.endswith(_BIASED)
            for name, _ in module.named_parameters()
        )
    )


_BIASED = ("q_proj.bias", "k_proj.bias", "v_proj.bias")
"""As Qwen2 has them."""


def _heads_of(attention: Any) -> tuple[Any, ...]:
    return attention.q_proj, attention.k_proj, attention.v_proj


class ModuleTensors:
    """The tensors of a module, by their names."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._names = {name for name, _ in module.named_parameters(remove_duplicate=False)}

    @property
    def layers(self) -> int:
        return len(self._module.model.layers)

    @property
    def is_tied(self) -> bool:
        head, embedding = self._module.lm_head.weight, self._module.model.embed_tokens.weight
        return bool(head.data_ptr() == embedding.data_ptr())

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def numbers(self, name: str) -> NDArray[Any]:
        tensor = self._module.get_parameter(name).detach()
        return (tensor if tensor.dtype == torch.float32 else tensor.view(torch.int16)).numpy()

    def values(self, name: str) -> Floats:
        return widened(self.numbers(name))

    def release(self, name: str) -> None:
        parameter = self._module.get_parameter(name)
        parameter.data = parameter.data.new_empty(0)


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
    tensors, matrices = ModuleTensors(module), tuple[QuantisedMatrix, ...]()
    if quantised:
        weights, matrices = quantised_weights(tensors)
    else:
        weights = packed_weights(tensors)
    for parameter in (module if quantised else base.layers).parameters():
        parameter.data = parameter.data.new_empty(0)
    return Decoder(
        shape=shape,
        weights=weights,
        vocabulary_size=vocabulary,
        max_positions=min(config.max_position_embeddings, MOST_SUMMED),
        dtype="int8" if quantised else dtype,
        cos_sin=cos_sin,
        matrices=matrices,
    )
