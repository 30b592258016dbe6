"""A frozen model built like Llama on many texts at once: keys, values, states, greedy text.

Adaptive rows look at what the base computed and never change it, so the base runs once for a
text, without gradients, and everything that training needs of it is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from accel.compiled_parts import middle_layer
from accel.llama import is_built_like_llama
from accel.training.errors import TrainingError

PREFILL_ROWS = 256


@dataclass(frozen=True)
class Projection:
    """Several linear layers of the same input as one. weight [out, in], bias [out] or None."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Layer:
    """Weights of one decoder layer."""

    attention_norm: Callable[[Tensor], Tensor]
    mlp_norm: Callable[[Tensor], Tensor]
    qkv: Projection
    output: Projection
    gate_up: Projection
    down: Projection
    head_norms: tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]] | None


@dataclass(frozen=True)
class Text:
    """Texts of one length and what the base computed of them.

    tokens: int64 [batch, length]; prompt: how many of them were given; memory: [layers, 2, batch,
    kv_heads, length, depth], keys (rotated) and values; states: [batch, length, width], normalised
    last hidden states; middle: the same, before ``middle_layer``; likeliest: int64 [batch, length],
    the base's choice after every token.
    """

    tokens: Tensor
    prompt: int
    memory: Tensor
    states: Tensor
    middle: Tensor
    likeliest: Tensor


class FrozenBase:
    """The weights of a module, fused, and its forward over a batch.

    Raises TrainingError for a module that is built otherwise.
    """

    def __init__(self, module: Any) -> None:
        if not is_built_like_llama(module):
            raise TrainingError(
                "adaptive rows are trained on models built like Llama; give one of that family"
            )
        base, config = module.model, module.config
        attention = base.layers[0].self_attn
        self.embedding: Tensor = base.embed_tokens.weight.detach()
        self.head: Tensor = module.lm_head.weight.detach()
        self.width = int(config.hidden_size)
        self.depth = int(attention.head_dim)
        self.heads = attention.q_proj.weight.shape[0] // self.depth
        self.kv_heads = attention.k_proj.weight.shape[0] // self.depth
        self.scaling = float(attention.scaling)
        self.activation: Callable[[Tensor], Tensor] = base.layers[0].mlp.act_fn
        self.max_positions = int(config.max_position_embeddings)
        self.layers = [_layer(layer) for layer in base.layers]
        self.norm = _norm(base.norm)
        self._frequencies = base.rotary_emb.inv_freq.float()
        self._rope_scaling = float(base.rotary_emb.attention_scaling)

    @torch.no_grad()
    def read(
        self,
        tokens: Tensor,
        new: int = 0,
        *,
        chosen_from: int = 0,
        strays: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Text:
        """Compute ``tokens`` (int64 [batch, length]) and ``new`` more of the base's greedy choice,
        end tokens included.

        What it chooses after tokens before ``chosen_from`` is not computed, and -1; so much of the
        text (``strays``, a share) is drawn by its chances instead, which keeps it from looping.
        """
        batch, prompt = tokens.shape
        length = prompt + new
        memory = self.embedding.new_empty(
            len(self.layers), 2, batch, self.kv_heads, length, self.depth
        )
        states, middle = self.embedding.new_empty(2, batch, length, self.width)
        likeliest = torch.full((batch, length), -1)
        text = torch.cat([tokens, tokens.new_empty(batch, new)], 1)
        for start in [*range(0, prompt, PREFILL_ROWS), *range(prompt, length)]:
            end = min(start + PREFILL_ROWS, prompt) if start < prompt else start + 1
            rows = self._forward(text[:, start:end], memory, start, middle[:, start:end])
            states[:, start:end] = rows
            skipped = min(max(chosen_from - start, 0), end - start)
            likeliest[:, start + skipped : end] = self.choices(rows[:, skipped:])
            if prompt <= end < length:
                text[:, end] = likeliest[:, end - 1]
                astray = torch.rand(batch, generator=generator) < strays
                text[astray, end] = self._drawn(rows[astray, -1], generator)
        return Text(text, prompt, memory, states, middle, likeliest)

    @torch.no_grad()
    def choices(self, states: Tensor) -> Tensor:
        """The likeliest token after each normalised state [..., width]. int64 [...]."""
        flat = states.reshape(-1, self.width)
        found = [F.linear(part, self.head).float().numpy() for part in flat.split(1024)]
        # NumPy's argmax is many times as fast as torch's on the CPU.
        best = [torch.from_numpy(part.argmax(-1)) for part in found]
        return torch.cat(best).view(states.shape[:-1])

    def _drawn(self, states: Tensor, generator: torch.Generator | None) -> Tensor:
        """A token after each normalised state [n, width], by its chance. int64 [n]."""
        if not len(states):
            return torch.empty(0, dtype=torch.long)
        chances = F.linear(states, self.head).float().softmax(-1)
        return torch.multinomial(chances, 1, generator=generator)[:, 0]

    def rotations(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and signed sine [..., depth] of positions [...]."""
        angles = places.float()[..., None] * self._frequencies
        cosine, sine = angles.cos() * self._rope_scaling, angles.sin() * self._rope_scaling
        kind = self.embedding.dtype
        return torch.cat([cosine, cosine], -1).to(kind), torch.cat([-sine, sine], -1).to(kind)

    def heads_of(
        self, layer: Layer, qkv: Tensor, cosine: Tensor, sine: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries [batch, rows, heads, depth], keys and values [batch, rows, kv_heads,
        depth] of projected rows; cosine and sine as ``rotations`` gives them."""
        split = qkv.unflatten(-1, (self.heads + 2 * self.kv_heads, self.depth))
        query, key, value = split.split([self.heads, self.kv_heads, self.kv_heads], -2)
        if layer.head_norms is not None:
            query, key = layer.head_norms[0](query), layer.head_norms[1](key)
        turned = torch.cat([query, key], -2)
        cosine, sine = cosine[..., None, :], sine[..., None, :]
        turned = turned * cosine + turned.roll(self.depth // 2, -1) * sine
        query, key = turned.split([self.heads, self.kv_heads], -2)
        return query, key, value

    def _forward(self, tokens: Tensor, memory: Tensor, start: int, middle: Tensor) -> Tensor:
        """Normalised states of tokens [batch, rows] behind ``start``; writes into ``memory`` and
        ``middle``, [batch, rows, width]."""
        rows = tokens.shape[1]
        end = start + rows
        cosine, sine = self.rotations(torch.arange(start, end))
        x = F.embedding(tokens, self.embedding)
        blocked = x.new_full((rows, rows), float("-inf")).triu(1) if rows > 1 else None
        for number, (layer, (keys, values)) in enumerate(zip(self.layers, memory, strict=True)):
            normed = layer.attention_norm(x)
            if number == middle_layer(len(self.layers)):
                middle[:] = normed
            query, key, value = self.heads_of(layer, layer.qkv(normed), cosine, sine)
            keys[:, :, start:end] = key.transpose(1, 2)
            values[:, :, start:end] = value.transpose(1, 2)
            grouped = self.grouped(query) * self.scaling
            scores = grouped @ keys[:, :, :end].transpose(-1, -2)
            if blocked is not None:
                group = self.heads // self.kv_heads
                scores.unflatten(2, (rows, group))[..., start:] += blocked[:, None]
            mixed = torch.softmax(scores, -1) @ values[:, :, :end]
            x = x + layer.output(self.ungrouped(mixed, rows))
            x = x + layer.down(self.gated(layer.gate_up(layer.mlp_norm(x))))
        return self.norm(x)

    def grouped(self, query: Tensor) -> Tensor:
        """[batch, rows, heads, depth] to [batch, kv_heads, rows * group, depth]."""
        batch, rows = query.shape[:2]
        return (
            query.view(batch, rows, self.kv_heads, -1, self.depth)
            .transpose(1, 2)
            .reshape(batch, self.kv_heads, -1, self.depth)
        )

    def ungrouped(self, mixed: Tensor, rows: int) -> Tensor:
        """The way back, to [batch, rows, heads * depth]."""
        return mixed.unflatten(2, (rows, -1)).transpose(1, 2).flatten(2)

    def gated(self, gate_up: Tensor) -> Tensor:
        """The product inside an MLP."""
        gate, up = gate_up.chunk(2, -1)
        return self.activation(gate) * up


def _layer(module: Any) -> Layer:
    attention, mlp = module.self_attn, module.mlp
    norms = None
    if hasattr(attention, "q_norm"):
        norms = _norm(attention.q_norm), _norm(attention.k_norm)
    return Layer(
        _norm(module.input_layernorm),
        _norm(module.post_attention_layernorm),
        _fused(attention.q_proj, attention.k_proj, attention.v_proj),
        _fused(attention.o_proj),
        _fused(mlp.gate_proj, mlp.up_proj),
        _fused(mlp.down_proj),
        norms,
    )


def _norm(module: Any) -> Callable[[Tensor], Tensor]:
    weight = module.weight.detach()
    epsilon = float(getattr(module, "variance_epsilon", getattr(module, "eps", 1e-6)))
    return lambda x: F.rms_norm(x, (x.shape[-1],), weight, epsilon)


def _fused(*projections: Any) -> Projection:
    weight = torch.cat([projection.weight.detach() for projection in projections])
    if all(projection.bias is None for projection in projections):
        return Projection(weight, None)
    biases = [
        p.weight.new_zeros(len(p.weight)) if p.bias is None else p.bias.detach()
        for p in projections
    ]
    return Projection(weight, torch.cat(biases))
