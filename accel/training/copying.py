"""A model that can copy before its first step: an induction circuit as part of the initial weights.

Most of an edit is a copy. Small models find the circuit for it late (Olsson et al. 2022), after
far more tokens than a CPU reads in an evening, so it is written into the initial weights, and
training goes on from there. Layer 0 attends to the three tokens before and notes which they were;
layer 2, or the last one of a shallower model, looks for the place that the same three tokens
precede and brings its token forward.

Layout of the width: dimension 0 is constant, then the tokens' content, then three notes.
"""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

_NOTE = 40
_NOTES = 3
_CONTENT_DEVIATION = 0.05
_CONSTANT = 0.3
_SHARPNESS = (10.0, 8.0, 6.0, 5.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0)
_MATCH = 12.0
_SLOW_PAIR = 14
_COPY_GAIN = 0.5
_COPY_LAYER = 2


def fits_copying(config: LlamaConfig) -> bool:
    """Whether a shape has room for the circuit."""
    heads = config.num_attention_heads >= _NOTES and config.num_key_value_heads == 1
    deep = config.num_hidden_layers > 1
    return bool(heads and deep and config.head_dim == 64 and config.hidden_size >= 6 * _NOTE)


def _frequencies(model: LlamaForCausalLM) -> Tensor:
    size, theta = model.config.head_dim, model.config.rope_parameters["rope_theta"]
    return theta ** (-torch.arange(0, size, 2) / size)


def _orthogonal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """rows orthonormal rows of `columns` numbers."""
    q, _ = torch.linalg.qr(torch.randn(columns, rows, generator=generator))
    return q.T


@torch.no_grad()
def install_copying(model: LlamaForCausalLM, seed: int) -> None:
    """Overwrite parts of fresh weights, whose shape `fits_copying`, by the circuit."""
    config = model.config
    width, size = int(config.hidden_size), int(config.head_dim)
    half, content = size // 2, slice(1, width - _NOTE * _NOTES)
    count = width - _NOTE * _NOTES - 1
    generator = torch.Generator().manual_seed(seed + 1)
    table = model.model.embed_tokens.weight
    table.zero_()
    table[:, content] = _CONTENT_DEVIATION * torch.randn(table.size(0), count, generator=generator)
    table[:, 0] = _CONSTANT
    for layer in model.model.layers:
        layer.mlp.down_proj.weight.mul_(0.25)
        layer.self_attn.o_proj.weight.mul_(0.25)
    notes = [slice(width - _NOTE * (n + 1), width - _NOTE * n) for n in range(_NOTES)]
    project = torch.randn(_NOTE, count, generator=generator) / count**0.5
    _attend_to_previous(model, project, notes, content)
    copying = model.model.layers[min(_COPY_LAYER, config.num_hidden_layers - 1)]
    attention = copying.self_attn
    query, key = attention.q_proj.weight, attention.k_proj.weight
    query[:size].zero_()
    key.zero_()
    slow = [*range(_SLOW_PAIR, half), *range(half + _SLOW_PAIR, size)]
    scale = (_MATCH * 8.0 / len(slow)) ** 0.5 / 0.9
    seen = [project, *(torch.eye(_NOTE) for _ in range(_NOTES - 1))]
    places = [content, *notes[:-1]]
    for note, matrix, place in zip(notes, seen, places, strict=True):
        spread = scale * torch.randn(len(slow), _NOTE, generator=generator) / _NOTE**0.5
        key[slow, note] = spread
        query[slow, place] = spread @ matrix
    bring = _orthogonal(size, count, generator)
    attention.v_proj.weight.zero_()
    attention.v_proj.weight[:, content] = bring
    attention.o_proj.weight[:, :size] = 0.0
    attention.o_proj.weight[content, :size] = _COPY_GAIN * bring.T
    model.model.norm.weight.fill_(1.3)


def _attend_to_previous(
    model: LlamaForCausalLM, project: Tensor, notes: list[slice], content: slice
) -> None:
    """Head n of layer 0 reads the token n + 1 places back and writes note n."""
    size = int(model.config.head_dim)
    half, frequencies = size // 2, _frequencies(model)
    attention = model.model.layers[0].self_attn
    count = content.stop - content.start
    deviation = ((count * _CONTENT_DEVIATION**2 + _CONSTANT**2) / model.config.hidden_size) ** 0.5
    constant = _CONSTANT / deviation
    attention.k_proj.weight.zero_()
    attention.v_proj.weight.zero_()
    attention.v_proj.weight[:_NOTE, content] = project
    for head, note in enumerate(notes):
        rows = attention.q_proj.weight[head * size : (head + 1) * size]
        rows.zero_()
        for pair, sharpness in enumerate(_SHARPNESS):
            strength = (8.0 * sharpness) ** 0.5 / constant
            angle = (head + 1) * frequencies[pair]
            rows[pair, 0] = strength * torch.cos(angle)
            rows[half + pair, 0] = -strength * torch.sin(angle)
            attention.k_proj.weight[pair, 0] = strength
        columns = attention.o_proj.weight[:, head * size : (head + 1) * size]
        columns.zero_()
        columns[note, :_NOTE] = 0.04 * torch.eye(_NOTE)
