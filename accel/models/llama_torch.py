"""A lean forward for decoders built like Llama (also Qwen2, Qwen3, Mistral and others), in a third
of the time of transformers' modules. Whether a module is built this way is read from its parts and
confirmed by comparing logits, never from its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, pad, scaled_dot_product_attention, silu

from accel.batch import BLOCKED, ForwardBatch
from accel.files.rope import rope_table, rotary_frequencies
from accel.models.attention_windows import attention_windows
from accel.models.base import BatchKind, Cache, Capability, Logits, Model
from accel.models.kv_cache import TorchKVCache
from accel.models.packed_linear import Linear
from accel.models.torch_forward import by_torch
from accel.models.torch_logits import TorchLogits
from accel.models.torch_names import name_of
from accel.models.tree_attention import repeat_rows

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256)
"""A number of rows that was not seen before costs time: kernels are compiled for it."""

SHARED_WIDTHS = tuple(width for width in WIDTHS if 1 < width <= 32)
"""Numbers of rows of several requests that one forward computes. One row alone goes by another
kernel, and is as quick among two."""

MOST_REQUESTS = 16
"""Requests that share a forward at most."""

_STATIC_ROPE = ("default", "linear", "llama3", "yarn")

FEW_ROWS = 8
SCORE_BYTES = 1 << 26
"""Few rows, and scores too large to be written out, are left to torch's attention kernel. In
between plain products are faster."""

COLUMN_STEP = 128
"""oneDNN compiles a bf16 product for every new shape, which takes a millisecond: columns come in
steps, so that shapes recur while the text grows."""


Attend = Callable[..., Tensor]
"""Attention output [T, heads * D] of a layer by its number, and of what is known before attention:
rows' query [T, heads, D], key and value [T, kv_heads, D], which are to be attended, too."""


class LlamaCache(TorchKVCache):
    """Keys and values of all layers in one tensor [layers, 2, kv_heads, capacity, head_dim]."""

    def __init__(self, shape: tuple[int, int, int], capacity: int, like: Tensor) -> None:
        super().__init__(capacity)
        layers, kv_heads, head_dim = shape
        self.buffers = [like.new_zeros((layers, 2, kv_heads, capacity, head_dim))]
        self.layers = [(layer[0], layer[1]) for layer in self.buffers[0]]

    @torch.inference_mode()
    def copy(self, other: Cache) -> bool:
        assert isinstance(other, LlamaCache)
        self.length = 0
        self.reserve(other.length)
        own, others = self.buffers[0], other.buffers[0]
        own.narrow(-2, 0, other.length).copy_(others.narrow(-2, 0, other.length))
        self.length = other.length
        return True

    def reserve(self, rows: int) -> None:
        before = self.buffers[0]
        super().reserve(rows)
        if self.buffers[0] is not before:
            self.layers = [(layer[0], layer[1]) for layer in self.buffers[0]]


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
    """The forward. Build it with ``from_module``."""

    shared_rows = 0
    """Rows up to which requests share a forward, see ``share``."""

    def __init__(self, module: Any) -> None:
        base, config = module.model, module.config
        attention = base.layers[0].self_attn
        self.capability = Capability(BatchKind.TREE, widths=WIDTHS)
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
        self._cos_sin = torch.empty(0, 2, 1, self._head_dim)

    @classmethod
    def from_module(cls, module: nn.Module) -> FusedLlama | None:
        """The lean form of a module, None when its parts are others than Llama's.

        The module's layers give up their weights, so that no model is in memory twice.
        """
        return cls(module) if is_built_like_llama(module) else None

    @by_torch
    def new_cache(self, capacity: int) -> Cache:
        shape = (len(self._layers), self._kv_heads, self._head_dim)
        return LlamaCache(shape, capacity, self._embedding)

    def forward(self, batch: ForwardBatch, caches: Sequence[Cache]) -> Logits:
        (logits,) = self.forward_all([batch], caches)
        return logits

    @by_torch
    def forward_all(
        self, batches: Sequence[ForwardBatch], caches: Sequence[Cache]
    ) -> Iterable[Logits]:
        found: list[Logits] = []
        for group in self._groups(batches, cast("Sequence[LlamaCache]", caches)):
            found += map(TorchLogits, self._logits(group))
        return found

    def _groups(
        self, batches: Sequence[ForwardBatch], caches: Sequence[LlamaCache]
    ) -> list[list[tuple[ForwardBatch, LlamaCache]]]:
        """Requests whose rows are computed together, in order."""
        groups: list[list[tuple[ForwardBatch, LlamaCache]]] = []
        rows = 0
        for batch, cache in zip(batches, caches, strict=True):
            if not groups or rows + len(batch) > self.shared_rows:
                groups.append([])
                rows = 0
            groups[-1].append((batch, cache))
            rows += len(batch)
        return groups

    def _logits(self, requests: Sequence[tuple[ForwardBatch, LlamaCache]]) -> list[Tensor]:
        """Logits [rows from ``logits_from`` on, vocabulary] of each request."""
        counts = [len(batch) for batch, _ in requests]
        padding = self._width(sum(counts)) - sum(counts)
        tokens = torch.from_numpy(np.concatenate([batch.tokens for batch, _ in requests]))
        x = _padded(embedding(tokens.to(self._embedding.device), self._embedding), padding)
        tables = [self._cos_sin_of(batch, cache.length) for batch, cache in requests]
        cos, sin = (_padded(torch.cat(parts), padding) for parts in zip(*tables, strict=True))
        attends = [self._attention(batch, cache) for batch, cache in requests]

        def attend(layer: int, *rows: Tensor) -> Tensor:
            if len(rows[0]) == counts[0]:
                return attends[0](layer, *rows)
            own = zip(*(each.split([*counts, padding]) for each in rows), strict=True)
            attended = [attend(layer, *each) for attend, each in zip(attends, own, strict=False)]
            return _padded(torch.cat(attended), padding)

        x = self._through_layers(x, cos, sin, attend)
        split = zip(x.split([*counts, padding]), requests, strict=False)
        wanted = [rows[batch.logits_from :] for rows, (batch, _) in split]
        numbers = [len(rows) for rows in wanted]
        if not sum(numbers):
            return [x.new_empty(0, self.vocabulary_size) for _ in requests]
        states = _padded(torch.cat(wanted), self._width(sum(numbers)) - sum(numbers))
        return list(self._head(self._norm(states))[: sum(numbers)].split(numbers))

    def _width(self, rows: int) -> int:
        """Rows that are computed for so many, where they may be of several requests."""
        if rows > self.shared_rows:
            return rows
        return next(width for width in SHARED_WIDTHS if rows <= width)

    def _attention(self, rows: ForwardBatch, cache: LlamaCache) -> Attend:
        """Attention of a request's rows over its own cache."""
        past = cache.length
        columns = self._columns(len(rows), past)
        cache.reserve(columns - past)
        mask = self._mask(rows, past, columns)
        places = slice(past, past + len(rows))

        def attend(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            keys, values = (each[:, :columns] for each in cache.layers[layer])
            keys[:, places], values[:, places] = key.transpose(0, 1), value.transpose(0, 1)
            grouped = query.unflatten(1, (self._kv_heads, -1)).permute(1, 2, 0, 3)
            output = self._weigh(grouped.flatten(1, 2), keys, values, mask)
            return output.unflatten(1, (-1, len(rows))).permute(2, 0, 1, 3).flatten(1)

        return attend

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

    def share(self, rows: int) -> None:
        """Have requests of up to so many rows together share forwards, as ``rows_alike`` found."""
        self.shared_rows = rows
        self.capability = replace(self.capability, requests=MOST_REQUESTS if rows else 1)

    @by_torch
    def rows_alike(self) -> int:
        """Up to how many rows a forward computes each of them to the last bit as among two,
        wherever it stands; 0 where already three are another matter. Kernels are chosen by the
        shapes of what they compute, which all layers have in common."""
        hidden, layer = self._embedding.shape[1], self._layers[0]
        two = torch.arange(2 * hidden).sin().view(2, hidden).to(self._embedding)
        table, found = self._rope_table(2), 0
        expected: list[Tensor] = []
        for width in SHARED_WIDTHS:
            order = torch.arange(width, device=two.device) % 2
            cos, sin = table[order].unbind(1)
            parts = self._before_attention(layer, two[order], cos, sin)
            after = self._after_attention(layer, two[order], parts[0].flatten(1))
            parts = *parts, after, self._head(self._norm(after))
            expected = expected or list(parts)
            if not all(map(torch.equal, parts, [part[order] for part in expected])):
                break
            found = width
        return found if found > SHARED_WIDTHS[0] else 0

    def _columns(self, rows: int, past: int) -> int:
        """Columns of keys that ``rows`` rows look at, some of them blocked by the mask."""
        columns = past + rows
        compiled = self.dtype == "bf16" and self.device == "cpu"
        return -(-columns // COLUMN_STEP) * COLUMN_STEP if compiled and rows > FEW_ROWS else columns

    def _mask(self, rows: ForwardBatch, past: int, columns: int) -> Tensor | None:
        """Additive mask of the columns from ``past`` on [group * T, columns - past], all before
        them being attended; or of all columns where torch's own kernel wants them."""
        if len(rows) == 1:
            return None
        groups = self._heads // self._kv_heads
        scores = self._heads * len(rows) * columns * self._embedding.element_size()
        first = past if len(rows) > FEW_ROWS and scores <= SCORE_BYTES else 0
        mask = self._embedding.new_zeros((len(rows), columns - first))
        mask[:, past - first :] = float(BLOCKED)
        mask[:, past - first : past - first + len(rows)] = torch.from_numpy(rows.mask)
        return repeat_rows(mask, groups)

    def _weigh(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """query [kv_heads, group * T, D] over keys and values [kv_heads, columns, D]."""
        if mask is None or mask.shape[-1] == keys.shape[1]:
            return scaled_dot_product_attention(
                query[None], keys[None], values[None], attn_mask=mask, scale=self._scaling
            )[0]
        scores = torch.bmm(query * self._scaling, keys.transpose(1, 2))
        scores[:, :, -mask.shape[-1] :].add_(mask)
        return torch.bmm(torch.softmax(scores, -1), values)

    def _gated(self, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        return (silu(gate) if self._silu else self._activation(gate)) * up

    def _cos_sin_of(self, rows: ForwardBatch, past: int) -> tuple[Tensor, Tensor]:
        """Cosine and signed sine [T, 1, D] of the rows' positions."""
        needed = past + len(rows)
        if needed > len(self._cos_sin):
            self._cos_sin = self._rope_table(max(needed, 2 * len(self._cos_sin), 1024))
        if rows.is_chain:
            table = self._cos_sin[past:needed]
        else:
            places = torch.from_numpy(rows.offsets).to(self._embedding.device) + past
            table = self._cos_sin.index_select(0, places)
        return table[:, 0], table[:, 1]

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


def _padded(rows: Tensor, more: int) -> Tensor:
    """With so many rows of zeros behind its own."""
    return pad(rows, [0, 0] * (rows.dim() - 1) + [0, more]) if more else rows


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
