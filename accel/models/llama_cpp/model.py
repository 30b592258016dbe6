"""A GGUF file as llama.cpp computes it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.errors import BackendDied, UnsupportedModel
from accel.files.model_options import FlashAttention, ModelOptions
from accel.models.base import BatchKind, Cache, Capability, Logits, Model
from accel.models.batch import ForwardBatch
from accel.models.llama_cpp.process import WorkerProcess
from accel.models.llama_cpp.tree_context import LEAVES

WIDTHS = (1, 4, 8, 12, 16, 32)
"""Numbers of rows between which the library changes its kernels."""


class LlamaCppModel(Model):
    """A model in a worker's process."""

    def __init__(self, path: Path, options: ModelOptions) -> None:
        """Load the file at ``path``. Raises UnsupportedModel or OutOfMemory."""
        if options.kv_type == "int8" and options.flash_attention == "off":
            raise UnsupportedModel(
                "llama.cpp keeps values in int8 with flash attention alone",
                "set redraft.model.flashAttention to auto, or redraft.model.kvType to f16",
            )
        self._worker = WorkerProcess(path, options)
        facts = self._worker.start()
        self.vocabulary_size = facts["vocabulary"]
        self.max_positions = facts["positions"]
        self.end_tokens = frozenset(facts["ends"])
        self.kv_type = options.kv_type
        self.computed_by = described(facts, options)
        self.is_on_gpu = bool(facts["gpus"]) and facts["gpu_layers"] > 0
        """Whether a GPU computes some of its layers."""
        self.system: str = facts["system"]
        """What the library says of itself and of the processor."""
        self.dtype = "gguf"
        self.device = "llama.cpp"
        kind = BatchKind.TREE
        widths: tuple[int, ...] = WIDTHS
        if facts["is_recurrent"]:
            kind = BatchKind.CHAIN if facts["rewinds"] else BatchKind.PLAIN
            # One row at the least is committed.
            widths = tuple(width for width in WIDTHS if width <= facts["rewinds"] + 1)
        self.capability = Capability(kind, leaves=LEAVES, widths=widths, fixed_batch=True)
        self._numbers = count()
        weakref.finalize(self, self._worker.end)

    def close(self) -> None:
        """End its process."""
        self._worker.end()

    @property
    def notice(self) -> str:
        kind = self.capability.kind
        if kind == BatchKind.PLAIN:
            return "llama.cpp computes it without drafts: what it computes cannot be taken back"
        if kind == BatchKind.CHAIN:
            return "llama.cpp verifies drafts of it as chains, not as trees"
        return ""

    def new_cache(self, capacity: int) -> Cache:
        return LlamaCppCache(self._worker, next(self._numbers), capacity)

    def forward(self, batch: ForwardBatch, caches: Sequence[Cache]) -> Logits:
        (cache,) = caches
        assert isinstance(cache, LlamaCppCache)
        return cache.forward(batch)


def described(facts: dict[str, Any], options: ModelOptions) -> str:
    """Return words for what computes a model, by the facts ``facts`` it that its worker tells."""
    on_gpus = min(facts["gpu_layers"], facts["layers"])
    if facts["gpus"]:
        gpus = " and ".join(facts["gpus"])
        where = f"{on_gpus} of {facts['layers']} layers on {gpus}"
    else:
        where = "on the CPU" + (
            ", as the library has no GPU" if options.gpu_layers not in (0, "auto") else ""
        )
    flash_attention: FlashAttention = options.flash_attention
    if options.kv_type == "int8":
        # The library needs it for that.
        flash_attention = "on"
    elif flash_attention == "auto" and facts["flash_attention"] is not None:
        flash_attention = "on" if facts["flash_attention"] else "off"
    attention = f"flash attention {flash_attention}"
    return f"llama.cpp, {where}; {attention}; keys and values in {options.kv_type}"


class LlamaCppCache(Cache):
    """A context of the library, made with the first forward."""

    nbytes = 0

    def __init__(self, worker: WorkerProcess, number: int, capacity: int) -> None:
        self._worker, self._number, self._capacity = worker, number, capacity
        self._generation = -1
        self._finalize = weakref.finalize(self, worker.forget, number)

    def reserve(self, rows: int) -> None:
        self._open()
        if not self.nbytes or self.length + rows > self._capacity:
            self._capacity, self.nbytes = self._worker.call("reserve", self._number, rows)

    def commit(self, path: Sequence[int]) -> None:
        self._worker.send("commit", self._number, list(path))
        self.length += len(path)

    def trim(self, length: int) -> None:
        self._open()
        self.length = self._worker.call("trim", self._number, min(length, self.length))

    def forward(self, batch: ForwardBatch) -> Logits:
        before = self.length
        self.reserve(len(batch))
        if self.length < before:
            raise BackendDied("llama.cpp was started again; the text so far is computed anew")
        rows = (np.ascontiguousarray(each, np.int32) for each in (batch.tokens, batch.parents))
        sent = (*(each.tobytes() for each in rows), batch.logits_from, batch.meant)
        return _RemoteLogits(self._worker.call("forward", self._number, *sent), self)

    def row(self, index: int) -> NDArray[np.float32]:
        data: bytes = self._worker.call("row", self._number, index)
        return np.frombuffer(data, np.float32)

    def _open(self) -> None:
        """Make the context in the worker that runs now. What an earlier one cached is gone: the
        cache is empty then."""
        if self._generation != self._worker.generation:
            self.length = self.nbytes = 0
            self._worker.call("open", self._number, self._capacity)
            self._generation = self._worker.generation


class _RemoteLogits:
    """Rows whose numbers are in the worker. See ``base.Logits``."""

    def __init__(self, likeliest: list[int], cache: LlamaCppCache) -> None:
        # The cache's rows are gone with it.
        self._likeliest, self._cache = likeliest, cache

    def argmax(self) -> Sequence[int]:
        return self._likeliest

    def row(self, index: int) -> NDArray[np.float32]:
        return self._cache.row(index)
