"""CUDA graphs with one owner: one is recorded at a time, and none is freed meanwhile, which would
invalidate the recording. A graph that nobody uses is retired, and freed here later."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

_recording = threading.Lock()
"""Held while a graph is recorded, and while retired ones are freed."""

_retired: deque[torch.cuda.CUDAGraph] = deque()
"""Graphs that nobody uses any more."""


class RecordedGraph:
    """A computation that was recorded. It may be dropped at any time and by any thread."""

    def __init__(self, compute: Callable[[], Tensor]) -> None:
        """Record ``compute``, whose inputs and results stay where they are.

        It is computed once before, so that libraries set themselves up. Raises RuntimeError where
        the recording fails; then nothing of it is left.
        """
        with _alone():
            before, side = torch.cuda.current_stream(), torch.cuda.Stream()
            side.wait_stream(before)
            with torch.cuda.stream(side):
                compute()
            before.wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph):
                    self.output = compute()
            except BaseException:
                # A recording that does not end leaves its own stream behind.
                torch.cuda.set_stream(before)
                _retired.append(graph)
                raise
        self._graphs = [graph]
        # The list is referred to from here, too, and outlives this object.
        weakref.finalize(self, _retire, self._graphs).atexit = False

    def replay(self) -> Tensor:
        """Compute it again. The result holds until the next time."""
        self._graphs[0].replay()
        return self.output


def free_retired() -> None:
    """Free the graphs that nobody uses any more, unless one is recorded just now."""
    if not _recording.acquire(blocking=False):
        return
    try:
        while _retired:
            try:
                _retired.popleft().reset()
            except RuntimeError as error:
                logger.warning("a CUDA graph was not freed in order: %s", error)
    finally:
        _recording.release()


def _retire(graphs: list[torch.cuda.CUDAGraph]) -> None:
    """Called wherever the last reference to a recorded graph went, in the middle of a recording,
    too."""
    _retired.extend(graphs)
    graphs.clear()
    free_retired()


@contextmanager
def _alone() -> Iterator[None]:
    """Nothing else is recorded or freed, and garbage is not collected."""
    free_retired()
    try:
        with _recording, _no_garbage_collected():
            yield
    finally:
        free_retired()


@contextmanager
def _no_garbage_collected() -> Iterator[None]:
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
