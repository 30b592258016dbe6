"""Any causal language model of transformers, by its own module, with our cache and masks."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad
from transformers import Cache as LayerCache
from transformers import DynamicCache
from transformers.cache_utils import CacheLayerMixin

from accel.models.array_logits import ArrayLogits
from accel.models.base import BatchKind, Cache, Capability, Logits, Model, RowCache
from accel.models.batch import BLOCKED, ForwardBatch
from accel.models.torch_forward import by_torch, name_of

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256)
"""A number of rows that was not seen before costs time: kernels are compiled for it."""


class TransformersModel(Model):
    """A module of transformers."""

    def __init__(self, module: Any, kind: BatchKind) -> None:
        config = module.config.get_text_config()
        parameter = next(module.parameters())
        self.module = module
        self.capability = Capability(kind, widths=WIDTHS if kind == BatchKind.TREE else None)
        self.dtype, self.device = name_of(parameter.dtype), parameter.device.type
        self._parameter = parameter
        self.vocabulary_size = module.get_output_embeddings().weight.shape[0]
        self.max_positions = getattr(config, "max_position_embeddings", None) or 1 << 20
        self._layers = config.num_hidden_layers
        self._windows = attention_windows(config) or {}
        arguments = inspect.signature(module.forward).parameters
        self._takes_positions = "position_ids" in arguments
        self._keep_argument = "logits_to_keep" if "logits_to_keep" in arguments else None

    @by_torch
    def new_cache(self, capacity: int) -> Cache:
        if self.capability.kind == BatchKind.PLAIN:
            return OwnCache(self.module.config)
        return TransformersCache(self._layers, capacity)

    @by_torch
    def forward(self, batch: ForwardBatch, caches: Sequence[Cache]) -> Logits:
        (cache,) = caches
        assert isinstance(cache, TransformersCache | OwnCache)
        rows, device = batch, self._parameter.device
        cache.reserve(len(rows))
        arguments: dict[str, Any] = {}
        if self._takes_positions:
            offsets = torch.from_numpy(rows.offsets).to(device, torch.long)
            arguments["position_ids"] = (offsets + cache.length)[None]
        if self.capability.kind == BatchKind.TREE:
            arguments["attention_mask"] = self._masks(rows, cache.length)
        count = len(rows) - rows.logits_from
        if self._keep_argument:
            arguments[self._keep_argument] = max(count, 1)
        tokens = torch.from_numpy(rows.tokens).to(device, torch.long)
        output = self.module(
            input_ids=tokens[None], past_key_values=cache.layers, use_cache=True, **arguments
        )
        logits: Tensor = output.logits[0]
        return TorchLogits(logits[len(logits) - count :])

    def wait(self) -> None:
        if self.device in ("cuda", "mps"):
            getattr(torch, self.device).synchronize()

    def _masks(self, rows: ForwardBatch, past: int) -> Tensor | dict[str, Tensor]:
        """Additive masks [1, 1, T, past + T], one for every kind of layer."""
        dtype, device = self._parameter.dtype, self._parameter.device
        lowest = torch.finfo(dtype).min
        tail = torch.from_numpy(rows.mask).to(device)
        full = torch.zeros((len(rows), past + len(rows)), dtype=dtype, device=device)
        full[:, past:] = tail.clamp(min=lowest) if lowest > BLOCKED else tail
        masks: dict[str, Tensor] = {}
        for kind, window in self._windows.items():
            mask = full
            if window is not None and past + len(rows) > window:
                own = torch.from_numpy(rows.offsets).to(device) + past
                positions = torch.cat([torch.arange(past, device=device), own])
                mask = full.masked_fill(own[:, None] - positions[None] >= window, lowest)
            masks[kind] = mask[None, None]
        return masks if len(masks) > 1 else next(iter(masks.values()))


class TransformersCache(RowCache):
    """Preallocated rows for a transformers module: two tensors a layer, made when a layer first
    writes, whose next to last dimension is the row.

    The first ``length`` rows are the committed text; a forward writes its own rows after them, and
    ``commit`` moves the accepted ones into place. Room grows by half when ``reserve`` asks for
    more, which is the only copy.
    """

    def __init__(self, layers: int, capacity: int) -> None:
        self.length, self.capacity = 0, capacity
        self.layers = LayerCache(layers=[_RowLayer(self, index) for index in range(layers)])
        self.buffers = [torch.empty(0)] * (2 * layers)

    @property
    def nbytes(self) -> int:
        return sum(buffer.numel() * buffer.element_size() for buffer in self.buffers)

    @by_torch
    def reserve(self, rows: int) -> None:
        needed = self.length + rows
        if needed <= self.capacity:
            return
        self.capacity = max(needed, self.capacity + self.capacity // 2)
        # Zeros: rows after the committed ones may be read under a mask, and NaN would pass it.
        missing = (0, 0, 0, self.capacity - self.length)
        self.buffers = [
            pad(buffer.narrow(-2, 0, self.length), missing) if buffer.dim() > 1 else buffer
            for buffer in self.buffers
        ]

    def commit(self, path: Sequence[int]) -> None:
        assert all(buffer.dim() > 1 for buffer in self.buffers), "a layer never wrote its rows"
        super().commit(path)

    @torch.inference_mode()
    def _move(self, rows: list[int], start: int) -> None:
        for buffer in self.buffers:
            moved = buffer.index_select(-2, torch.tensor(rows, device=buffer.device))
            buffer.narrow(-2, start, len(rows)).copy_(moved)


class _RowLayer(CacheLayerMixin):
    """One layer's view of a RowCache, as transformers expects it."""

    is_sliding = False
    is_croppable = True

    def __init__(self, cache: TransformersCache, index: int) -> None:
        super().__init__()
        self._cache, self._index = cache, index

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        for offset, states in enumerate((key_states, value_states)):
            shape = (*states.shape[:-2], self._cache.capacity, states.shape[-1])
            self._cache.buffers[2 * self._index + offset] = states.new_empty(shape)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, end = self._cache.length, self._cache.length + key_states.shape[-2]
        keys, values = self._cache.buffers[2 * self._index : 2 * self._index + 2]
        keys[..., start:end, :] = key_states
        values[..., start:end, :] = value_states
        return keys[..., :end, :], values[..., :end, :]

    def get_seq_length(self) -> int:
        return self._cache.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.length + query_length, 0

    def get_max_length(self) -> int:
        return -1


class OwnCache(Cache):
    """The model's own cache, for models whose state cannot be trimmed (recurrent, hybrid)."""

    def __init__(self, config: Any) -> None:
        self.length, self._config = 0, config
        self.layers = DynamicCache(config=config)

    @property
    def nbytes(self) -> int:
        tensors = [
            tensor
            for layer in self.layers.layers
            for tensor in vars(layer).values()
            if isinstance(tensor, Tensor)
        ]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def reserve(self, rows: int) -> None:
        """The module makes room by itself."""

    def commit(self, path: Sequence[int]) -> None:
        """Every row computed is text: ``path`` must say so."""
        assert list(path) == list(range(len(path))), "this model decodes one token after another"
        self.length += len(path)

    def trim(self, length: int) -> None:
        """Nothing but the whole can be forgotten."""
        if length < self.length:
            self.layers = DynamicCache(config=self._config)
            self.length = 0


class TorchLogits:
    """Logits [rows, vocabulary] on any device, in any format. See ``base.Logits``."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._numbers: NDArray[np.float32] | None = None

    def argmax(self) -> Sequence[int]:
        # On the CPU NumPy's argmax is many times as fast as torch's.
        if self._tensor.device.type == "cpu":
            return ArrayLogits(self._all()).argmax()
        with torch.inference_mode():
            tokens: list[int] = self._tensor.argmax(-1).tolist()
        return tokens

    def row(self, index: int) -> NDArray[np.float32]:
        # All rows come from the device at once.
        row: NDArray[np.float32] = self._all()[index]
        return row

    def _all(self) -> NDArray[np.float32]:
        if self._numbers is None:
            self._numbers = self._tensor.float().cpu().numpy()
        return self._numbers


def attention_windows(config: Any) -> dict[str, int | None] | None:
    """Sliding window (None for none) by kind of attention layer, as transformers names them. None
    when a layer does something else than full or sliding attention."""
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if not kinds:
        if not getattr(config, "use_sliding_window", True):
            window = None
        return {"sliding_attention" if window else "full_attention": window}
    if kinds - {"full_attention", "sliding_attention"}:
        return None
    return {kind: window if kind == "sliding_attention" else None for kind in sorted(kinds)}
