"""A provider of completions against an engine that writes when the test says so."""

from __future__ import annotations

import asyncio
from typing import Any

from engine_stand_in import EngineStandIn, Request

from lsp_server.editor.completion.acceptance_rates import AcceptanceRates
from lsp_server.editor.completion.provider import Answer, CompletionProvider
from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.contract.jobs import COMPLETION, PREFETCH
from lsp_server.shared.settings import Settings, read_settings
from lsp_server.tasks.completion.confidence_gate import THRESHOLDS

PREFIX = "import os\n\n\ndef f(path):\n    return os."
SUFFIX = "\n\n\nprint(f('.'))\n"


class Session:
    """A provider, its engine, and a document being typed."""

    def __init__(self, **settings: Any) -> None:
        self.settings: Settings = read_settings(settings).settings
        self.engine = EngineStandIn(message="loading the model")
        self.rates = AcceptanceRates()
        self.provider = CompletionProvider(
            "client", lambda: self.settings, lambda: self.engine, lambda _: [],
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
    def fresh(self) -> list[Request]:
        return [one for one in self.engine.requests if one.priority == COMPLETION]

    @property
    def ahead(self) -> list[Request]:
        return [one for one in self.engine.requests if one.priority == PREFETCH]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def texts(answer: Answer | None) -> list[str]:
    assert answer is not None
    return answer.texts
