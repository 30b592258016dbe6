"""A provider of completions against an engine that writes when the test says so."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

from lsp_server.editor.completion.acceptance_rates import AcceptanceRates
from lsp_server.editor.completion.provider import Answer, CompletionProvider
from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.contract.calls import Call
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    PREFETCH,
    PREFILL,
    AcceptedText,
    CompletionJob,
    JobResult,
    Span,
)
from lsp_server.shared.contract.status import EngineStatus
from lsp_server.shared.settings import Settings, read_settings
from lsp_server.tasks.completion.gate import THRESHOLDS

PREFIX = "import os\n\n\ndef f(path):\n    return os."
SUFFIX = "\n\n\nprint(f('.'))\n"


class Written:
    """One request as the engine sees it."""

    def __init__(self, job: CompletionJob, priority: int, call: Call) -> None:
        self.job, self.priority, self.call = job, priority, call
        self.text = ""
        self.cancelled = False

    def write(self, text: str) -> None:
        self.text += text
        if self.call.on_spans is not None:
            self.call.on_spans([Span(text, "model")])

    def end(self, text: str = "", stopped_by: str = "stop") -> None:
        if text:
            self.write(text)
        if not self.call.future.done():
            self.call.future.set_result(
                JobResult(self.text, [], len(self.text), 1, 0.1, 0.0, {}, stopped_by)
            )


class FakeEngine:
    """Collects requests; the test answers them."""

    def __init__(self) -> None:
        self.requests: list[Written] = []
        self.refused = ""
        self.status = EngineStatus(state="ready", message="loading the model")
        self.prefills: list[CompletionJob] = []
        self.cancelled_prefills: list[Call] = []
        self.taken: list[AcceptedText] = []
        self._ids = itertools.count()

    def ask(
        self, job: CompletionJob, client: str, on_spans: Any = None, priority: int = COMPLETION
    ) -> Call:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = Call(next(self._ids), priority, future, on_spans, lambda: self._cancel(written))
        written = Written(job, priority, call)
        self.requests.append(written)
        return call

    def prefill(self, job: CompletionJob, client: str, priority: int = PREFILL) -> Call:
        self.prefills.append(job)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        call = Call(next(self._ids), priority, future, None, lambda: self._cancel_prefill(call))
        return call

    def _cancel_prefill(self, call: Call) -> None:
        self.cancelled_prefills.append(call)
        call.future.set_result({"tokens": 0})

    def tell(self, note: AcceptedText) -> None:
        self.taken.append(note)

    @staticmethod
    def _cancel(written: Written) -> None:
        written.cancelled = True
        written.end(stopped_by="cancelled")


class Session:
    """A provider, its engine, and a document being typed."""

    def __init__(self, **settings: Any) -> None:
        self.settings: Settings = read_settings(settings).settings
        self.engine = FakeEngine()
        self.rates = AcceptanceRates()
        self.provider = CompletionProvider(
            "client", lambda: self.settings, lambda: self.engine, lambda _: [],  # type: ignore[arg-type,return-value]
            rates=self.rates,
        )  # fmt: skip

    def ask(self, typed: str = "", **changes: Any) -> asyncio.Task[Answer | None]:
        values = {"document": "d", "path": "d.py", "workspace": "", "language": "python",
                  "prefix": PREFIX + typed, "suffix": SUFFIX, **changes}  # fmt: skip
        if not values.get("invoked"):
            values.setdefault("threshold", THRESHOLDS[self.settings.completion.gate])
        return asyncio.ensure_future(self._answer(CompletionRequest(**values)))

    async def _answer(self, ask: CompletionRequest) -> Answer | None:
        answer = await self.provider.complete(ask)
        if answer is not None and answer.texts:
            self.provider.shown(ask, answer.texts[0])
        return answer

    @property
    def fresh(self) -> list[Written]:
        return [one for one in self.engine.requests if one.priority == COMPLETION]

    @property
    def ahead(self) -> list[Written]:
        return [one for one in self.engine.requests if one.priority == PREFETCH]


Scene = Callable[[Session], Coroutine[Any, Any, None]]


def play(scene: Scene, **settings: Any) -> None:
    asyncio.run(asyncio.wait_for(scene(Session(**settings)), 60))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def texts(answer: Answer | None) -> list[str]:
    assert answer is not None
    return answer.texts
