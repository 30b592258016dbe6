"""Our engine as the benches measure it beside another, in a process of its own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from accel.decoding.engine import Engine
from accel.execution.forwards import alone
from accel.execution.session import Session
from accel.files.model_options import BackendName, DType, KvType
from accel.models.base import Cache
from lsp_server.commands.bench.forward import behind, forward_s


class MeasuredEngine:
    """A model in our engine: times of forwards and of a prompt."""

    def __init__(
        self,
        model: str | None,
        dtype: DType,
        threads: int | None,
        backend: BackendName = "own",
        kv_type: KvType = "f16",
    ) -> None:
        """As ``Engine.load``, whose errors it raises."""
        self._engine = Engine.load(
            model, dtype=dtype, threads=threads, backend=backend, kv_type=kv_type
        )
        self._threads = threads
        self._behind: tuple[int, Cache] | None = None

    def about(self) -> dict[str, Any]:
        """``threads`` that were asked for, else the engine's own number, ``type`` of the weights,
        ``form``: by what forwards are computed, and ``kv_type``."""
        engine = self._engine
        threads = self._threads or engine.threads
        return {
            "threads": threads,
            "type": engine.dtype,
            "form": engine.execution_path,
            "kv_type": engine.model.kv_type,
        }

    def forward_s(self, rows: int, context: int, times: int) -> list[float]:
        """Seconds of forwards of a chain of ``rows`` behind ``context`` tokens, on the wall's
        clock. As in decoding, logits are made for the rows that a walk from the first may come to.
        """
        model = self._engine.model
        if self._behind is None or self._behind[0] != context:
            self._behind = context, behind(model, context)
        return forward_s(model, self._behind[1], rows, times)

    def prefill_s(self, tokens: int) -> float:
        """Seconds of a prompt of so many tokens from nothing."""
        rng = np.random.default_rng(tokens)
        prompt = rng.integers(0, self._engine.model.vocabulary_size, tokens + 1, np.int32)
        session: Session = self._engine.session()
        started = time.perf_counter()
        alone(self._engine.prefill_steps(prompt, session))
        return time.perf_counter() - started
