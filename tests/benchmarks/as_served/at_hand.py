"""The best that a model does here: engines in this process, each with a number of threads that it
was told, whose forwards were measured when it was opened."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from accel.execution.forwards import Forward
from lsp_server.engine.service import EngineService, never
from lsp_server.shared.contract.jobs import COMPLETION, JobResult
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.tasks.steps import in_place
from tests.benchmarks.as_served.requests import ServedRequest, TimedText


@contextmanager
def engines_at_hand(
    model: str, threads: Sequence[int], folder: Path
) -> Iterator[dict[int, EngineService]]:
    """Open an engine for each number of ``threads``; ``folder`` keeps the costs that they
    measure."""
    engines: dict[int, EngineService] = {}
    with patch.dict(os.environ, {"XDG_CACHE_HOME": str(folder)}):
        try:
            for count in threads:
                options = EngineOptions(
                    path=model, threads=count, common=False, disk_cache_megabytes=0
                )
                engines[count] = EngineService(options)
                engines[count].load()
                engines[count].warm_up()
            yield engines
        finally:
            for engine in engines.values():
                engine.close()


class Writing:
    """A request under way."""

    def __init__(self, engine: EngineService, request: ServedRequest) -> None:
        self.forward: Forward | None = None
        """The forward that the request waits for; None once it is answered."""
        self.result: JobResult | None = None
        self.rows = 0
        self.first_s = 0.0
        self.ended_s = 0.0
        self._started = time.perf_counter()
        self._steps = in_place(engine.steps(request.job, never))
        self.resume(None)

    def resume(self, logits: Any) -> None:
        """Take the ``logits`` of the forward, and go on to the next one or to the end."""
        self.rows += self.forward.rows if self.forward is not None else 0
        self.forward = None
        try:
            step = self._steps.send(logits)
            while isinstance(step, list):
                self.first_s = self.first_s or time.perf_counter() - self._started
                step = next(self._steps)
            self.forward = step
        except StopIteration as end:
            self.result, self.ended_s = end.value, time.perf_counter() - self._started

    @property
    def written(self) -> TimedText:
        """The answer."""
        result = self.result
        assert result is not None, "the request is answered"
        seconds = self.ended_s - result.prefill_seconds
        rows = self.rows
        return TimedText(result.text, result.tokens, result.forwards, rows, seconds, self.first_s)


def write(engine: EngineService, requests: Sequence[ServedRequest]) -> list[TimedText]:
    """Answer ``requests`` in shared forwards of ``engine``."""
    writings = [Writing(engine, request) for request in requests]
    while waiting := {id(each.forward): each for each in writings if each.forward is not None}:
        asked = [(COMPLETION, each.forward) for each in waiting.values() if each.forward]
        for forwards in engine.planned(asked):
            for forward, logits in engine.compute(forwards):
                if isinstance(logits, Exception):
                    raise logits
                waiting[id(forward)].resume(logits)
    return [each.written for each in writings]
