"""Mask rows on a frozen base: their embeddings, low-rank path and sampler, and the loss.

After Samragh et al. 2025 (arXiv 2507.11851): a group of mask rows stands behind a text; row ``i``
sees the text and the rows before it in its group and guesses the token ``i + 2`` places on. Low
rank additions to every projection apply to mask rows alone. The sampler joins what a row knows
with the tokens that came before its guess, once they are known, by a small recurrent network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from accel.training.frozen_base import FrozenBase, Projection, Text

PROJECTIONS = ("qkv", "output", "gate_up", "down")

_SLICE = 256

Parameters = dict[str, Tensor]
"""Names as in the weights' file, see ``accel.mask_tokens``."""


@dataclass(frozen=True)
class Loss:
    """What the loss consists of. ``decay``: weight of every further row of a group; ``prompt``:
    weight of guesses inside the given text; ``alone``: share of groups that are also held to guess
    without the sampler; ``state``: weight of the squared distance to the base's own state."""

    decay: float = 0.8
    prompt: float = 0.3
    alone: float = 0.25
    state: float = 0.0


def fresh_parameters(base: FrozenBase, masks: int, rank: int, seed: int) -> Parameters:
    """Where training begins: rows that the low-rank path does not change yet. float32."""
    random = torch.Generator().manual_seed(seed)
    width = base.width

    def drawn(*shape: int, scale: float) -> Tensor:
        return torch.randn(*shape, generator=random) * scale

    mean = base.embedding.float().mean(0)
    spread = float(base.embedding.float().std())
    found = {"embeddings": mean + drawn(masks, width, scale=0.5 * spread)}
    for number, layer in enumerate(base.layers):
        for name in PROJECTIONS:
            projection: Projection = getattr(layer, name)
            wide, narrow = projection.weight.shape
            found[f"layers.{number}.{name}.down"] = drawn(rank, narrow, scale=narrow**-0.5)
            found[f"layers.{number}.{name}.up"] = torch.zeros(wide, rank)
    for name in ("state", "token", "memory"):
        found[f"sampler.{name}"] = drawn(width, width, scale=(3 * width) ** -0.5)
    found["sampler.out"] = torch.zeros(width, width)
    return found


def group_states(base: FrozenBase, parameters: Parameters, text: Text, anchors: Tensor) -> Tensor:
    """Normalised states [batch, groups, masks, width] of groups behind the rows ``anchors``
    (int64 [batch, groups]) of a text. Parameters may lack the low-rank path."""
    kind = base.embedding.dtype
    embeddings = parameters["embeddings"].to(kind)
    masks, width = embeddings.shape
    batch, groups = anchors.shape
    places = (anchors[..., None] + 1 + torch.arange(masks)).flatten(1)
    cosine, sine = base.rotations(places)
    length = text.tokens.shape[1]
    share = base.heads // base.kv_heads
    hidden = torch.arange(length) > anchors[..., None]
    blocked = torch.zeros(hidden.shape, dtype=kind).masked_fill(hidden, float("-inf"))
    # One row of a group has ``share`` queries for each key head.
    blocked = blocked.repeat_interleave(masks * share, 1)[:, None]
    later = torch.full((masks, masks), float("-inf"), dtype=kind).triu(1)
    later = later.repeat_interleave(share, 0)
    x = embeddings.expand(batch, groups, masks, width).reshape(batch, groups * masks, width)
    for number, (layer, (keys, values)) in enumerate(zip(base.layers, text.memory, strict=True)):
        names = f"layers.{number}."

        def with_path(
            name: str, inputs: Tensor, projection: Projection, names: str = names
        ) -> Tensor:
            plain = projection(inputs)
            if f"{names}{name}.down" not in parameters:
                return plain
            down = parameters[f"{names}{name}.down"].to(kind)
            up = parameters[f"{names}{name}.up"].to(kind)
            return plain + F.linear(F.linear(inputs, down), up)

        qkv = with_path("qkv", layer.attention_norm(x), layer.qkv)
        query, key, value = base.heads_of(layer, qkv, cosine, sine)
        grouped = base.grouped(query) * base.scaling
        own_keys = key.transpose(1, 2).unflatten(2, (groups, masks))
        own_values = value.transpose(1, 2).unflatten(2, (groups, masks))
        by_group = grouped.unflatten(2, (groups, masks * share))
        to_text = grouped @ keys.transpose(-1, -2) + blocked
        to_own = (by_group @ own_keys.transpose(-1, -2) + later).flatten(2, 3)
        shares = torch.softmax(torch.cat([to_text, to_own], -1), -1)
        mixed = shares[..., :length] @ values
        mixed = mixed + (
            shares[..., length:].unflatten(2, (groups, masks * share)) @ own_values
        ).flatten(2, 3)
        x = x + with_path("output", base.ungrouped(mixed, groups * masks), layer.output)
        gate_up = with_path("gate_up", layer.mlp_norm(x), layer.gate_up)
        x = x + with_path("down", base.gated(gate_up), layer.down)
    return base.norm(x).view(batch, groups, masks, width)


def sampled_states(
    base: FrozenBase, parameters: Parameters, states: Tensor, previous: Tensor
) -> Tensor:
    """States [..., masks, width] once the tokens before each guess are known, previous int64
    [..., masks]."""
    kind = states.dtype
    by_state, by_token, by_memory, out = (
        parameters[f"sampler.{name}"].to(kind) for name in ("state", "token", "memory", "out")
    )
    known = F.linear(states, by_state) + F.linear(F.embedding(previous, base.embedding), by_token)
    memory: Tensor | None = None
    found = []
    for row in range(states.shape[-2]):
        inner = known[..., row, :]
        if memory is not None:
            inner = inner + F.linear(memory, by_memory)
        memory = F.silu(inner)
        found.append(states[..., row, :] + F.linear(memory, out))
    return torch.stack(found, -2)


def loss_of(
    base: FrozenBase, parameters: Parameters, text: Text, anchors: Tensor, loss: Loss
) -> tuple[Tensor, float]:
    """Weighted loss (nats, summed) of groups behind ``anchors``, and the sum of its weights.

    Row ``i`` behind row ``p`` is held to the base's own choice after ``p + 1 + i``; the states of
    some groups without the sampler too, since two-step drafting has no use for one.
    """
    states = group_states(base, parameters, text, anchors)
    masks = states.shape[2]
    places = (anchors[..., None] + 1 + torch.arange(masks)).flatten(1)
    previous = text.tokens.gather(1, places).view(states.shape[:3])
    targets = text.likeliest.gather(1, places).view(states.shape[:3])
    own = (places >= text.prompt - 1).float().view(states.shape[:3])
    weights = loss.decay ** torch.arange(masks) * (own + (1 - own) * loss.prompt)
    sampled = sampled_states(base, parameters, states, previous)
    alone = max(round(loss.alone * states.shape[1]), 1)
    total = cross_entropy(sampled, base.head, targets, weights) + cross_entropy(
        states[:, :alone], base.head, targets[:, :alone], weights[:, :alone]
    )
    if loss.state:
        wanted = text.states.gather(1, places[..., None].expand(-1, -1, base.width))
        distance = (sampled.flatten(1, 2) - wanted).float().square().mean(-1)
        total = total + loss.state * (distance * weights.flatten(1)).sum()
    return total, float(weights.sum())


def cross_entropy(states: Tensor, head: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Weighted cross entropy (nats, summed) of states [..., width] by a head that is not trained.

    No logits are kept, and the gradient of the states is computed on the way.
    """
    found: Tensor = _CrossEntropy.apply(
        states.flatten(0, -2), head, targets.flatten(), weights.flatten()
    )
    return found


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, head: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        gradient = torch.empty_like(states)
        total = torch.zeros(())
        for start in range(0, len(states), _SLICE):
            part = slice(start, start + _SLICE)
            logits = F.linear(states[part], head).float()
            logits -= logits.logsumexp(-1, keepdim=True)
            chosen = targets[part, None]
            total -= (logits.gather(1, chosen)[:, 0] * weights[part]).sum()
            surplus = logits.exp_().scatter_add_(1, chosen, logits.new_full(chosen.shape, -1.0))
            gradient[part] = (surplus * weights[part, None]).to(states.dtype) @ head
        ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * given[0].to(gradient.dtype), None, None, None
