"""Completes a line that is missing between others with the line that fits what follows
(`accel.decoding.infilling`). On models that are too slow a completion is decoded greedily."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from lsp_server.shared.contract.jobs import CompletionJob, JobResult, Span
from lsp_server.tasks.completion.gate import IMPOSSIBLE

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.decoding.infilling import Line, LineSearch
    from accel.execution.forwards import Forwards
    from accel.execution.session import Session
    from accel.text.prompts import Prompt
    from lsp_server.tasks.pool import Pool
    from lsp_server.tasks.task import Task

MOST_S = 0.1
"""A search that takes longer by the machine's profile is not made."""


class FittedLine(NamedTuple):
    """A line as a completion, and as one piece that is so likely, with its end."""

    result: JobResult
    likely: list[Span]


class LineFitter:
    """Finds such lines with an engine."""

    def __init__(self, engine: Engine) -> None:
        from accel.decoding.infilling import LineSearch

        self._engine = engine
        self._search: LineSearch = LineSearch(engine)

    def wants(self, job: CompletionJob) -> bool:
        """Whether a job is such a hole, and weighing lines pays on this model."""
        from accel.decoding.infilling import is_between_lines

        if job.temperature > 0 or not is_between_lines(job.suffix):
            return False
        if self._engine.fim_order is None or not self._engine.takes_trees:
            return False
        return self._search.seconds() <= MOST_S

    def line(self, task: Task, sessions: Pool[Session]) -> Forwards[FittedLine | None]:
        """The line; None where the text is likely to go on after the line, where there is no line,
        or when cancelled."""
        started = time.perf_counter()
        prompt, new = task.prompt, self._engine.session
        with (
            sessions.acquire(task.key, new) as session,
            sessions.acquire(("read", *task.key[1:]), new) as reading,
        ):
            line = yield from self._search.missing(prompt, session, reading, task.request.cancelled)
        return self._result(line, prompt, time.perf_counter() - started) if line else None

    def _result(self, line: Line, prompt: Prompt, seconds: float) -> FittedLine:
        engine = self._engine
        spelt = engine.tokenizer.decode_bytes(list(line.tokens))[len(prompt.required_prefix) :]
        text = spelt.decode("utf-8", errors="replace")
        result = JobResult(
            text=text,
            spans=[Span(text, "model")],
            tokens=len(line.tokens),
            forwards=self._search.forwards,
            seconds=seconds,
            prefill_seconds=0.0,
            sources={"model": len(line.tokens)},
            stopped_by="end",
        )
        end = Span("", "model", 0.0, end_logprob=0.0)
        whole = Span(text, "model", line.score, end_logprob=IMPOSSIBLE)
        return FittedLine(result, [whole, end])
