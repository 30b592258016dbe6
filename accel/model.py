"""One forward of a causal language model over rows, whatever its architecture."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import CacheLayerMixin

from accel.draft_tree import DraftTree, TokenArray
from accel.drawing import GREEDY, Draws
from accel.kv_cache import KVCache
from accel.mask_tokens import MaskTokens
from accel.rows import BLOCKED, Rows
from accel.speculator import Speculator

if TYPE_CHECKING:
    from accel.choice import Odds
    from accel.compiled_stage import Limits, Made, Steps
    from accel.sources.asking import Asking


class Capability(IntEnum):
    """What a forward may be given, found by a probe."""

    PLAIN = 0
    """One token after another; the state cannot be trimmed."""
    CHAIN = 1
    """Several tokens, each following the one before."""
    TREE = 2
    """Several branches at once."""


class Model(ABC):
    """A causal language model on one device in one dtype."""

    dtype: torch.dtype
    device: torch.device
    capability: Capability
    vocabulary_size: int
    max_positions: int
    has_fixed_shapes: bool = True
    """A number of rows not seen before costs time (kernels are compiled or recorded for it)."""
    shared_from: int = 0
    """Rows from which two threads share a forward, 0 for never, where ``can_share``."""
    can_share: bool = False
    computes_masks: bool = False
    """Whether mask rows can be computed."""
    verifies: bool = False
    """Whether ``verify`` and what it leaves, ``state_of`` and ``mask_rows``, are there."""
    runs_steps: bool = False
    """Whether ``run_steps`` is there."""
    speculator: Speculator | None = None
    """What guesses from ``state_of``, on models that have such."""
    mask_tokens: MaskTokens | None = None
    """What mask rows are, on models that compute them and have them."""

    def take_mask_tokens(self, mask_tokens: MaskTokens) -> None:
        """Compute mask rows by these from now on."""
        assert self.computes_masks, "this model computes no mask rows"
        self.mask_tokens = mask_tokens

    def take_speculator(self, speculator: Speculator) -> None:
        """Have this guess from ``state_of`` from now on."""
        assert self.verifies, "this model leaves no states"
        self.speculator = speculator

    def shares_patiently(self, patiently: bool) -> None:
        """Whether to share although the other thread keeps losing its core; to measure that."""
        assert self.can_share, "this model has one thread"

    @abstractmethod
    def new_cache(self, capacity: int) -> KVCache:
        """An empty cache with room for ``capacity`` rows before it has to grow."""

    @abstractmethod
    def forward(self, rows: Rows, cache: KVCache) -> Tensor:
        """Logits [T - rows.logits_from, vocabulary] in ``dtype``.

        Keys and values of all rows are written behind the committed ones; the caller then keeps
        those that count. Rows attend everything committed and each other as their mask says.
        """

    def forward_with_masks(self, rows: Rows, cache: KVCache) -> tuple[Tensor, Tensor]:
        """What ``forward`` gives, and the normalised states [M, width] of the mask rows."""
        assert not len(rows.mask_places), "this model computes no mask rows"
        logits = self.forward(rows, cache)
        return logits, logits[:0]

    def verify(
        self, rows: Rows, tree: DraftTree, cache: KVCache, draws: Draws = GREEDY
    ) -> tuple[list[int], TokenArray]:
        """What ``verifier.walk`` gives by the likeliest tokens, or those drawn (the path, and int32
        [path + 1], a new array), without logits that nobody sees.
        The tree's root is row ``rows.logits_from``, and mask rows alone stand behind its nodes. Of
        the cache the same holds as after ``forward``."""
        raise NotImplementedError("this model gives logits alone")

    def run_steps(
        self,
        last: int,
        drafting: tuple[Asking, Odds] | None,
        cache: KVCache,
        limits: Limits,
        draws: Draws = GREEDY,
    ) -> tuple[Made, Steps] | None:
        """Several steps behind the cache's rows and the text's ``last`` token, which has none yet:
        ``compiled_steps.steps_in``, or ``plain_steps_in`` without ``drafting``. Their rows are
        committed. What they left is valid until the next; None where none can be made now."""
        raise NotImplementedError("this model computes one forward at a time")

    def state_of(self, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The normalised states of a row of the last forward, of those from ``logits_from`` on, the
        last and that before ``compiled_parts.middle_layer``: [width] each, float32, or the bits of
        bf16 as int16. Valid until the next forward."""
        raise NotImplementedError("this model gives no states")

    def mask_rows(self, group: slice) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits [rows, >= vocabulary] and normalised states [rows, width] of some mask rows of the
        last ``verify``, float32. Valid until the next forward."""
        raise NotImplementedError("this model gives logits alone")


class TransformersModel(Model):
    """Any causal LM of transformers, by its own module, with our cache and masks."""

    def __init__(self, module: Any, capability: Capability) -> None:
        config = module.config.get_text_config()
        parameter = next(module.parameters())
        self.module = module
        self.capability = capability
        self.dtype = parameter.dtype
        self.device = parameter.device
        self.vocabulary_size = module.get_output_embeddings().weight.shape[0]
        self.max_positions = getattr(config, "max_position_embeddings", None) or 1 << 20
        self._layers = config.num_hidden_layers
        self._windows = attention_windows(config) or {}
        arguments = inspect.signature(module.forward).parameters
        self._takes_positions = "position_ids" in arguments
        self._keep_argument = "logits_to_keep" if "logits_to_keep" in arguments else None

    def new_cache(self, capacity: int) -> KVCache:
        if self.capability == Capability.PLAIN:
            return OwnCache(self.module.config)
        return RowCache(self._layers, capacity)

    def forward(self, rows: Rows, cache: KVCache) -> Tensor:
        cache.reserve(len(rows))
        arguments: dict[str, Any] = {}
        if self._takes_positions:
            offsets = torch.from_numpy(rows.offsets).to(self.device, torch.long)
            arguments["position_ids"] = (offsets + cache.length)[None]
        if self.capability == Capability.TREE:
            arguments["attention_mask"] = self._masks(rows, cache.length)
        wanted = len(rows) - rows.logits_from
        if self._keep_argument:
            arguments[self._keep_argument] = max(wanted, 1)
        tokens = torch.from_numpy(rows.tokens).to(self.device, torch.long)
        assert isinstance(cache, RowCache | OwnCache)
        output = self.module(
            input_ids=tokens[None],
            past_key_values=cache.layers,
            use_cache=True,
            **arguments,
        )
        logits: Tensor = output.logits[0]
        return logits[len(logits) - wanted :]

    def _masks(self, rows: Rows, past: int) -> Tensor | dict[str, Tensor]:
        """Additive masks [1, 1, T, past + T], one for every kind of layer."""
        lowest = torch.finfo(self.dtype).min
        tail = torch.from_numpy(rows.mask).to(self.device)
        full = torch.zeros((len(rows), past + len(rows)), dtype=self.dtype, device=self.device)
        full[:, past:] = tail.clamp(min=lowest) if lowest > BLOCKED else tail
        masks: dict[str, Tensor] = {}
        for kind, window in self._windows.items():
            mask = full
            if window is not None and past + len(rows) > window:
                own = torch.from_numpy(rows.offsets).to(self.device) + past
                places = torch.cat([torch.arange(past, device=self.device), own])
                mask = full.masked_fill(own[:, None] - places[None] >= window, lowest)
            masks[kind] = mask[None, None]
        return masks if len(masks) > 1 else next(iter(masks.values()))


def attention_windows(config: Any) -> dict[str, int | None] | None:
    """Sliding window (None for none) by kind of attention layer, as transformers names them.

    None when a layer does something else than full or sliding attention.
    """
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if not kinds:
        if not getattr(config, "use_sliding_window", True):
            window = None
        return {"sliding_attention" if window else "full_attention": window}
    if kinds - {"full_attention", "sliding_attention"}:
        return None
    return {kind: window if kind == "sliding_attention" else None for kind in sorted(kinds)}


class RowCache(KVCache):
    """Rows for a transformers module: two buffers a layer, made when a layer first writes."""

    def __init__(self, layers: int, capacity: int) -> None:
        super().__init__(capacity)
        self.layers = Cache(layers=[_RowLayer(self, index) for index in range(layers)])
        self.buffers = [torch.empty(0)] * (2 * layers)

    def _grown(self, buffer: Tensor) -> Tensor:
        return buffer if buffer.dim() == 1 else super()._grown(buffer)

    def keep(self, rows: Sequence[int]) -> None:
        assert all(buffer.dim() > 1 for buffer in self.buffers), "a layer never wrote its rows"
        super().keep(rows)


class _RowLayer(CacheLayerMixin):
    """One layer's view of a RowCache, as transformers wants it."""

    is_sliding = False
    is_croppable = True

    def __init__(self, cache: RowCache, index: int) -> None:
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


class OwnCache(KVCache):
    """The model's own cache, for models whose state cannot be trimmed (recurrent, hybrid)."""

    def __init__(self, config: Any) -> None:
        super().__init__(capacity=1 << 30)
        self._config = config
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

    def keep(self, rows: Sequence[int]) -> None:
        """Every row computed is kept: ``rows`` must say so."""
        assert list(rows) == list(range(len(rows))), "this model decodes one token after another"
        self.length += len(rows)

    def trim(self, length: int) -> None:
        """Nothing but the whole can be forgotten."""
        if length < self.length:
            self.layers = DynamicCache(config=self._config)
            self.length = 0
