"""One forward of a causal language model over rows, whatever its architecture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accel.draft_tree import DraftTree, TokenArray
from accel.drawing import GREEDY, Draws
from accel.kv_cache import KVCache
from accel.mask_tokens import MaskTokens
from accel.rows import Rows
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
    ) -> tuple[Made, Steps]:
        """Several steps behind the cache's rows and the text's ``last`` token, which has none yet:
        ``compiled_steps.steps_in``, or ``plain_steps_in`` without ``drafting``. Their rows are
        committed. What they left is valid until the next."""
        raise NotImplementedError("this model computes one forward at a time")

    @property
    def interruptions(self) -> int:
        """How often somebody called ``interrupt``."""
        raise NotImplementedError("this model computes one forward at a time")

    def interrupt(self) -> None:
        """End ``run_steps`` after the forward that is computed now. For other threads."""
        raise NotImplementedError("this model computes one forward at a time")

    def state_of(self, row: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The normalised states of a row of the last forward, of those from ``logits_from`` on, the
        last and that before ``compiled_parts.middle_layer``: [width] each, float32, or the bits of
        bf16, see ``matmul.row_dtype``. Valid until the next forward."""
        raise NotImplementedError("this model gives no states")

    def mask_rows(self, group: slice) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Logits [rows, >= vocabulary] and normalised states [rows, width] of some mask rows of the
        last ``verify``, float32. Valid until the next forward."""
        raise NotImplementedError("this model gives logits alone")


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
