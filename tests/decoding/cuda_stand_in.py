"""What of ``torch.cuda`` records graphs, on a CPU and as strict as CUDA is.

A graph replays what was computed while it was recorded. To free one while another is recorded
fails, and invalidates the recording.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from accel.models.cuda.fixed_forward import FixedForward
from accel.models.cuda.pooled_llama import PooledLlama

NOT_PERMITTED = "CUDA error: operation not permitted when stream is capturing (function reset)"
INVALIDATED = (
    "CUDA error: operation failed due to a previous error (cudaErrorStreamCaptureInvalidated)"
)


class CudaStandIn:
    """The state of the device: its streams, the recording under way, and what was freed."""

    def __init__(self) -> None:
        self.stream = "main"
        self.recording: StandInGraph | None = None
        self.is_invalid = False
        self.recordings = self.recorded = self.replays = self.freed = 0
        self.living: weakref.WeakSet[StandInGraph] = weakref.WeakSet()
        self.on_begin: Callable[[], None] = lambda: None
        """Called where a recording begins, in place of CUDA's own checks."""
        self.on_compute: Callable[[], None] = lambda: None
        """Called by what is computed while something is recorded."""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Be ``torch.cuda`` as far as recording goes."""
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: StandInGraph(self))
        monkeypatch.setattr(torch.cuda, "graph", self.graph)
        monkeypatch.setattr(torch.cuda, "Stream", StandInStream)
        monkeypatch.setattr(torch.cuda, "stream", lambda _stream: nullcontext())
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: StandInStream(self.stream))
        monkeypatch.setattr(torch.cuda, "set_stream", self.set_stream)

    def set_stream(self, stream: StandInStream) -> None:
        self.stream = stream.name

    @contextmanager
    def graph(self, graph: StandInGraph) -> Any:
        """``torch.cuda.graph``, which leaves its stream behind where the recording fails."""
        self.recordings += 1
        before, self.stream = self.stream, "recording"
        self.on_begin()
        self.recording, self.is_invalid = graph, False
        try:
            yield
        finally:
            self.recording = None
            if self.is_invalid:
                raise RuntimeError(INVALIDATED)
        self.stream = before
        self.recorded += 1


class StandInStream:
    def __init__(self, name: str = "side") -> None:
        self.name = name

    def wait_stream(self, _other: StandInStream) -> None:
        """Everything is computed at once here."""


class StandInGraph:
    """``torch.cuda.CUDAGraph``. It holds nothing of what is recorded, as a real one does not."""

    def __init__(self, cuda: CudaStandIn) -> None:
        self._cuda = cuda
        self.compute: Callable[[], None] | None = None
        cuda.living.add(self)

    def replay(self) -> None:
        assert self.compute is not None
        self._cuda.replays += 1
        self.compute()

    def reset(self) -> None:
        if self._cuda.recording is not None:
            self._cuda.is_invalid = True
            raise RuntimeError(NOT_PERMITTED)
        self._cuda.freed += self.compute is not None
        self.compute = None

    def __del__(self) -> None:
        if self.compute is not None and self._cuda.recording is not None:
            self._cuda.is_invalid = True


class RecordingLlama(PooledLlama):
    """Records on a CPU what is recorded on a GPU."""

    cuda: CudaStandIn

    @property
    def records_graphs(self) -> bool:
        return not self._records_nothing

    def compute(self, forward: FixedForward) -> Tensor:
        output = super().compute(forward)
        graph = self.cuda.recording
        if graph is not None:
            self.cuda.on_compute()
            graph.compute = _replay_of(weakref.ref(self), weakref.ref(forward), output)
        return output


def _replay_of(model: Any, forward: Any, output: Tensor) -> Callable[[], None]:
    def replay() -> None:
        with torch.inference_mode():
            output.copy_(PooledLlama.compute(model(), forward()))

    return replay
