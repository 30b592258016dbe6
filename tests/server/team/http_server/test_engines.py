"""What holds of every engine that editors are given: a process of this machine, a server, a server
that is away, and what stands for an engine in tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_stand_in import EngineStandIn
from served import KEY
from steady_costs import DTYPE, THREADS

from lsp_server.editor.remote.engine import RemoteEngine
from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.calls import Call
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    EDIT,
    AcceptedText,
    CompletionJob,
    EditJob,
    JobResult,
    Span,
)
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import EngineUnavailable
from lsp_server.shared.settings import read_settings

CODE = "def scale(value):\n    factor = 2\n    return value * factor\n"
JOBS = {
    "a completion": CompletionJob("", "a.py", "def total(prices):\n    return ", "\n", "python"),
    "an edit": EditJob("", "a.py", "rename value to amount", CODE, language="python"),
}
LONG = EditJob(
    "", "a.py", "add comments", CODE * 60, language="python", max_tokens=1500, plain=True
)
AWAY = "http://127.0.0.1:9"
SOON_S = 120


@pytest.fixture(params=["a process", "a server", "a server that is away", "the stand-in"])
async def engine(request: pytest.FixtureRequest, model: Path) -> AsyncIterator[EngineInterface]:
    """Such an engine, which is closed at the end."""

    def made() -> EngineInterface:
        if request.param == "the stand-in":
            return EngineStandIn(lambda job: None if job is LONG else "written")
        process = EngineClient(
            EngineOptions(path=str(model), dtype=DTYPE, threads=THREADS), lambda: None
        )
        if request.param == "a process":
            return process
        there = request.param == "a server"
        url = request.getfixturevalue("server").url if there else AWAY
        settings = read_settings({"server": {"url": url, "key": KEY}}).settings.server
        return RemoteEngine(settings, lambda: None, None if there else process)

    started = made()
    yield started
    await started.close()


async def ended(call: Call) -> Any:
    """What came of a call, None for no engine."""
    try:
        return await asyncio.wait_for(call.future, SOON_S)
    except EngineUnavailable:
        return None


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
async def test_a_text_is_its_spans(engine: EngineInterface, job: Any) -> None:
    spans: list[Span] = []
    call = engine.ask(job, "a client", spans.extend, EDIT)
    result = await call.future
    assert isinstance(result, JobResult)
    assert result.text
    # An edit ends as its selection does.
    assert "".join(span.text for span in spans).rstrip() == result.text.rstrip()
    assert 0 < result.forwards <= result.tokens + 1
    assert call.priority == EDIT
    assert not engine.calls.busy
    assert (engine.status.state, engine.refused) == ("ready", "")


async def test_a_prompt_that_may_come_is_computed_without_a_text(engine: EngineInterface) -> None:
    for job in JOBS.values():
        result = await engine.prefill(job, "a client").future
        assert result is None or result.text == ""
    assert not engine.calls.busy


@pytest.mark.parametrize("begun", [True, False])
async def test_a_cancelled_request_ends_and_the_next_is_answered(
    engine: EngineInterface, begun: bool
) -> None:
    writing = asyncio.Event()
    if begun:
        await engine.ask(JOBS["a completion"], "a client").future
    call = engine.ask(LONG, "a client", lambda _: writing.set())
    if begun and not isinstance(engine, EngineStandIn):
        await asyncio.wait_for(writing.wait(), SOON_S)
    call.cancel()
    call.cancel()
    result = await ended(call)
    assert result is None or result.stopped_by == "cancelled"
    assert call.cancelled is not None
    assert (await engine.ask(JOBS["a completion"], "a client").future).text
    assert not engine.calls.busy


async def test_whoever_stops_waiting_cancels(engine: EngineInterface) -> None:
    call = engine.ask(LONG, "a client")
    waiting = asyncio.ensure_future(call.result())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert call.cancelled is not None
    await ended(call)


async def test_it_says_when_it_has_work_and_when_it_has_none(engine: EngineInterface) -> None:
    told: list[bool] = []
    engine.calls.on_busy = lambda: told.append(engine.calls.busy)
    await engine.ask(JOBS["a completion"], "a client").future
    assert told == [True, False]
    assert engine.calls.request_count == 1


async def test_several_are_under_way_together(engine: EngineInterface) -> None:
    jobs = [replace(JOBS["a completion"], path=f"{number}.py") for number in range(3)]  # type: ignore[type-var]
    calls = [engine.ask(job, f"client {job.path}", None, COMPLETION) for job in jobs]
    assert len({call.id for call in calls}) == 3
    texts = {(await call.future).text for call in calls}
    assert len(texts) == 1, "what one asks changes no other's text"


async def test_what_it_is_told_before_there_is_a_model_is_in_order(
    engine: EngineInterface, tmp_path: Path
) -> None:
    engine.set_buffer(str(tmp_path), "b.py", lambda: "b = 1\n", opened=True)
    engine.tell(AcceptedText("", "a.py", "x = ", "1"))
    await engine.start()
    assert (await engine.ask(JOBS["a completion"], "a client").future).text


async def test_an_engine_that_is_closed_leaves_no_request_under_way(
    engine: EngineInterface,
) -> None:
    await engine.ask(JOBS["a completion"], "a client").future
    call = engine.ask(LONG, "a client")
    await engine.close()
    await ended(call)
    assert not engine.calls.busy
