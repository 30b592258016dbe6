"""Decoders like Llama and hybrids like Qwen3.5: their sizes, and one table of their weights for
folders and GGUF files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from accel.files.gguf.header import SMALL_BLOCK
from accel.files.hybrid import KERNEL, Hybrid, gated_query_rows, head_rows, turned_order

EMBEDDING, HEAD, NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"


@dataclass(frozen=True, slots=True)
class Family:
    """Properties of all models of one architecture."""

    is_interleaved: bool
    """True if RoPE pairs neighbouring rows of Q and K. Our forward pairs the first half of a head
    with the second."""
    norms_heads: bool = False
    """Each head of Q and K has a norm of its own."""
    is_scaled: bool = False
    """Embedding, attention, what layers add and logits are multiplied by numbers of the file."""
    is_hybrid: bool = False
    """Most layers are gated DeltaNet."""
    is_biased: bool | None = None
    """Q, K and V have biases; None where each file decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Sizes and constants of a decoder."""

    family: Family
    layers: int
    hidden_size: int
    intermediate_size: int
    heads: int
    kv_heads: int
    head_dim: int
    """Size of a head."""
    vocabulary: int
    positions: int
    """Tokens of the longest text."""
    eps: float
    attention_scale: float
    """Factor of the scores."""
    added_scale: float = 1.0
    """Factor of what attention and feed-forward add. A stream of states that begins with scaled
    embeddings is kept divided by that scale: norms undo it, and embedding and head stay one."""
    logit_scale: float = 1.0
    """Factor of the logits."""
    hybrid: Hybrid | None = None
    passed_over: int = 0
    """Layers after the decoder's, which guess several tokens and which our forward has not."""

    @property
    def odd_size(self) -> int:
        """The first size that is no multiple of ``SMALL_BLOCK``, 0 where all are."""
        sizes = [self.head_dim, self.hidden_size, self.intermediate_size]
        if self.hybrid:
            sizes += [self.hybrid.key_dim, self.hybrid.value_dim, self.hybrid.rotary_dim]
        return next((size for size in sizes if size % SMALL_BLOCK), 0)


@dataclass(frozen=True, slots=True)
class DecoderTensor:
    """A weight of our forward and the tensor that it comes from."""

    name: str
    """Its name in transformers."""
    tensor: str
    """The tensor's name in a GGUF file."""
    shape: tuple[int, ...]
    scale: float = 1.0
    """The factor of its values."""
    interleaved_heads: int = 0
    """Heads whose rows lie in Llama's order in a GGUF file, 0 for rows in our order."""
    is_needed: bool = True
    order: NDArray[np.int64] | None = None
    """The rows of the tensor that are its own, in order; all where None."""
    whole: tuple[int, ...] | None = None
    """The shape of the tensor, where these are a part of it."""

    @property
    def folder_shape(self) -> tuple[int, ...]:
        """The shape of the tensor in a folder."""
        shape = self.whole or self.shape
        return (shape[0], 1, shape[1]) if self.name.endswith("conv1d.weight") else shape


def decoder_tensors(architecture: Architecture) -> Iterator[DecoderTensor]:
    """Yield every weight that such a decoder has or may have."""
    hidden_size = architecture.hidden_size
    table = architecture.vocabulary, hidden_size
    yield DecoderTensor(EMBEDDING, "token_embd.weight", table)
    yield DecoderTensor(NORM, "output_norm.weight", (hidden_size,), architecture.logit_scale)
    yield DecoderTensor(HEAD, "output.weight", table, is_needed=False)
    hybrid = architecture.hybrid
    attention = [*_feed_forward(architecture), *_attention(architecture)]
    delta_net = (
        [] if hybrid is None else [*_feed_forward(architecture), *_delta_net(architecture, hybrid)]
    )
    for layer in range(architecture.layers):
        is_delta_net = hybrid is not None and layer in hybrid.layers
        for weight in delta_net if is_delta_net else attention:
            name, tensor = f"model.layers.{layer}.{weight.name}", f"blk.{layer}.{weight.tensor}"
            yield replace(weight, name=name, tensor=tensor)


def _feed_forward(architecture: Architecture) -> Iterator[DecoderTensor]:
    """Yield a layer's norms and feed-forward matrices."""
    hidden_size, width = architecture.hidden_size, architecture.intermediate_size
    mlp_norm = "post_attention_norm" if architecture.hybrid else "ffn_norm"
    yield DecoderTensor("input_layernorm.weight", "attn_norm.weight", (hidden_size,))
    yield DecoderTensor("post_attention_layernorm.weight", f"{mlp_norm}.weight", (hidden_size,))
    yield DecoderTensor("mlp.gate_proj.weight", "ffn_gate.weight", (width, hidden_size))
    yield DecoderTensor("mlp.up_proj.weight", "ffn_up.weight", (width, hidden_size))
    scale = architecture.added_scale
    yield DecoderTensor("mlp.down_proj.weight", "ffn_down.weight", (hidden_size, width), scale)


def _attention(architecture: Architecture) -> Iterator[DecoderTensor]:
    """Yield the weights of a layer's attention. In a hybrid queries and the gate of the output are
    one tensor."""
    hidden_size, size, family = architecture.hidden_size, architecture.head_dim, architecture.family
    queries, keys = architecture.heads * size, architecture.kv_heads * size
    both, query_rows, gate_rows, key_rows, order = None, None, None, None, None
    if architecture.hybrid:
        both, rotary = (2 * queries, hidden_size), architecture.hybrid.rotary_dim
        query_rows, gate_rows = gated_query_rows(architecture.heads, size, rotary)
        key_rows, order = head_rows(architecture.kv_heads, size, rotary), turned_order(size, rotary)
    for name, rows, heads, own_rows, stored_shape in (
        ("q", queries, architecture.heads, query_rows, both),
        ("k", keys, architecture.kv_heads, key_rows, None),
        ("v", keys, 0, None, None),
    ):
        weight = DecoderTensor(
            f"self_attn.{name}_proj.weight",
            f"attn_{name}.weight",
            (rows, hidden_size),
            interleaved_heads=heads if family.is_interleaved else 0,
            order=own_rows,
            whole=stored_shape,
        )
        yield weight
        if family.is_biased is not False:
            names = f"self_attn.{name}_proj.bias", f"attn_{name}.bias"
            needed = bool(family.is_biased)
            yield replace(weight, name=names[0], tensor=names[1], shape=(rows,), is_needed=needed)
    output = hidden_size, queries
    yield DecoderTensor(
        "self_attn.o_proj.weight", "attn_output.weight", output, architecture.added_scale
    )
    if both:
        yield DecoderTensor(
            *("self_attn.output_gate.weight", "attn_q.weight", (queries, hidden_size)),
            order=gate_rows,
            whole=both,
        )
    if family.norms_heads:
        for name in ("q_norm", "k_norm"):
            names = f"self_attn.{name}.weight", f"attn_{name}.weight"
            yield DecoderTensor(*names, (size,), order=order)


def _delta_net(architecture: Architecture, hybrid: Hybrid) -> Iterator[DecoderTensor]:
    """Yield the weights of a layer's gated DeltaNet."""
    hidden_size, heads, values = architecture.hidden_size, hybrid.value_heads, hybrid.value_size
    for name, tensor, shape in (
        ("in_proj_qkv.weight", "attn_qkv.weight", (hybrid.channels, hidden_size)),
        ("in_proj_z.weight", "attn_gate.weight", (values, hidden_size)),
        ("in_proj_b.weight", "ssm_beta.weight", (heads, hidden_size)),
        ("in_proj_a.weight", "ssm_alpha.weight", (heads, hidden_size)),
        ("conv1d.weight", "ssm_conv1d.weight", (hybrid.channels, KERNEL)),
        ("A", "ssm_a", (heads,)),
        ("dt_bias", "ssm_dt.bias", (heads,)),
        ("norm.weight", "ssm_norm.weight", (hybrid.value_dim,)),
        ("out_proj.weight", "ssm_out.weight", (hidden_size, values)),
    ):
        yield DecoderTensor(f"linear_attn.{name}", tensor, shape)
