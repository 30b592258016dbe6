"""A client that leaves before its answer is no failure of the server."""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lsp_server.shared.contract.calls import Call, Calls, OnSpans
from lsp_server.shared.contract.jobs import AnyJob, GenerateJob, JobResult, Span
from lsp_server.shared.contract.status import EngineStatus
from lsp_server.shared.errors import EngineFailed, EngineUnavailable
from lsp_server.team.http_server import streaming
from lsp_server.team.http_server.application import app
from lsp_server.team.http_server.infill import InfillEvents
from lsp_server.team.http_server.keys import Keys
from lsp_server.team.http_server.metrics import Metrics
from lsp_server.team.http_server.streaming import StreamedCalls

KEY = "sesame-open"
TEXT: dict[str, Any] = {"prompt": "once upon a time", "max_tokens": 100}
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
HOLE: dict[str, Any] = {"input_prefix": "a = ", "input_suffix": "\n"}
COMPLETION = {"path": "a.py", "prefix": "a = ", "suffix": ""}
EDIT = {"path": "a.py", "instruction": "loud", "selection": "a = 1\n"}
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "a text": ("/v1/completions", TEXT),
    "a text as a stream": ("/v1/completions", {**TEXT, "stream": True}),
    "four texts": ("/v1/completions", {**TEXT, "n": 4}),
    "four texts as a stream": ("/v1/completions", {**TEXT, "n": 4, "stream": True}),
    "texts of two prompts": ("/v1/completions", {**TEXT, "prompt": ["a", "b"]}),
    "a prompt alone": ("/v1/completions", {**TEXT, "max_tokens": 0}),
    "probabilities": ("/v1/completions", {**TEXT, "logprobs": 3}),
    "a chat": ("/v1/chat/completions", CHAT),
    "a chat as a stream": ("/v1/chat/completions", {**CHAT, "stream": True}),
    "two chats": ("/v1/chat/completions", {**CHAT, "n": 2}),
    "a hole": ("/infill", HOLE),
    "a hole as a stream": ("/infill", {**HOLE, "stream": True}),
    "two for a hole": ("/infill", {**HOLE, "n_cmpl": 2}),
    "a hole's prompt": ("/infill", {**HOLE, "n_predict": 0}),
    "a completion": ("/redraft/v1/complete", {"protocol": 1, "job": COMPLETION}),
    "an edit": ("/redraft/v1/edit", {"protocol": 1, "job": EDIT}),
    "a prompt ahead": (
        "/redraft/v1/prefill",
        {"protocol": 1, "operation": "complete", "job": COMPLETION},
    ),
}
CUT = JobResult("up", [Span("up", "model")], 1, 1, 0.0, 0.0, {"model": 1}, "cancelled")
ENDS: dict[str, JobResult | Exception | None] = {
    "in the queue": None,
    "while its text is written": CUT,
    "from an engine that fails": EngineFailed("no such thing", "KeyError"),
    "from an engine that ends": EngineUnavailable("the engine process ended"),
}


class WaitingEngine:
    """An engine that answers nothing until it is told to stop, with ``end`` then."""

    def __init__(self, end: JobResult | Exception | None) -> None:
        self.calls = Calls()
        self.status = EngineStatus("ready", model="m", max_tokens=4096)
        self.refused = ""
        self.asked = asyncio.Event()
        self._end = end

    def ask(self, job: AnyJob, client: str, on_spans: OnSpans | None, priority: int = 0) -> Call:
        self.asked.set()
        return self.calls.begin(priority, on_spans, self._stopped)

    def prefill(self, job: AnyJob, client: str, priority: int = 3) -> Call:
        return self.ask(job, client, None, priority)

    def _stopped(self, call: Call) -> None:
        error = self._end if isinstance(self._end, Exception) else None
        result = None if error is not None else self._end
        asyncio.get_running_loop().call_soon(partial(self.calls.finish, call, result, error))


async def leave(
    path: str, body: dict[str, Any], engine: WaitingEngine, keys: Path, *, first: str = ""
) -> tuple[list[dict[str, Any]], Metrics]:
    """What a client is sent that leaves once the engine was asked, or was sent a ``first`` text."""
    metrics, sent = Metrics(), list[dict[str, Any]]()
    served = app(engine, Keys(keys), metrics=metrics)  # type: ignore[arg-type]
    requests = [{"type": "http.request", "body": json.dumps(body).encode()}]
    began = asyncio.Event()

    async def receive() -> Any:
        if requests:
            return requests.pop()
        await engine.asked.wait()
        if first:
            for call in list(engine.calls._calls.values()):
                assert call.on_spans is not None
                call.on_spans([Span(first, "model")])
            await began.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        began.set()

    headers = [(b"authorization", f"Bearer {KEY}".encode()), (b"host", b"localhost")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    more = {"query_string": b"", "client": ("127.0.0.1", 5), "scheme": "http", "root_path": ""}
    await asyncio.wait_for(served({**scope, **more}, receive, send), 30)
    return sent, metrics


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"ann {KEY}\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", ASKED)
def test_who_leaves_is_counted_as_such_and_logged_in_a_line(
    name: str, end: str, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path, body = ASKED[name]
    sent, metrics = asyncio.run(_left(path, body, ENDS[end], keys))
    assert sent == []
    assert list(metrics.requests) == [(path, 499)]
    assert metrics.running == 0
    told = [record for record in caplog.records if record.name.startswith("lsp_server")]
    assert [record.levelname for record in told] == ["INFO"]
    assert not any(record.exc_info for record in caplog.records)


async def _left(path: str, body: dict[str, Any], end: Any, keys: Path, first: str = "") -> Any:
    engine = WaitingEngine(end)
    found = await leave(path, body, engine, keys, first=first)
    assert not engine.calls.busy
    return found


@pytest.mark.parametrize("name", [name for name, (_, body) in ASKED.items() if "stream" in body])
def test_who_leaves_a_stream_that_has_begun_was_answered(
    name: str, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, body = ASKED[name]
    sent, metrics = asyncio.run(_left(path, body, None, keys, first="up "))
    assert sent[0]["status"] == 200
    assert list(metrics.requests) == [(path, 200)]
    assert not any(record.exc_info for record in caplog.records)


def test_a_stream_is_heard_while_its_prompt_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers and a comment come before the engine says anything; what fails then is an event."""
    monkeypatch.setattr(streaming, "HEARD_AFTER_S", 0.01)

    async def sent_by(outcome: Any) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def send(message: Any) -> None:
            sent.append(message)
            if len(sent) == 3:
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)

        async def receive() -> Any:
            await asyncio.Event().wait()

        call: Any = SimpleNamespace(future=future, cancel=lambda: None)
        events = InfillEvents("m", [GenerateJob(text="a")], [])
        await StreamedCalls([lambda _: call], events)({"type": "http"}, receive, send)
        return sent

    for outcome, end in ((CUT, b'"stop":true'), (EngineFailed("broke"), b'"server_error"')):
        start, *bodies = asyncio.run(sent_by(outcome))
        assert start["status"] == 200
        assert bodies[0]["body"].startswith(b": ")
        assert end in bodies[-1]["body"]
        assert not bodies[-1]["more_body"]
