"""What clients share: engines by model, workspaces by folder."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from text_cases import data_cases

from lsp_server.editor.hub import hub as hub_module
from lsp_server.editor.hub.hub import Hub
from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.calls import Calls, percentile_ms
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.shared.settings import Settings, read_settings


class Recorder:
    """Stands for the indexer and notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []
        self.workspaces: dict[tuple[str, str], Any] = {}
        self.pid = None
        self.busy = False

    def open_workspace(self, folder: str, model: str, options: dict[str, Any]) -> None:
        self.told.append(("open", folder, model))

    def close_workspace(self, folder: str) -> None:
        self.told.append(("close", folder))

    def set_busy(self, busy: bool) -> None:
        if busy != self.busy:
            self.told.append(("busy", str(busy)))
        self.busy = busy


class Client:
    """An editor that wants one engine."""

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine

    def engines(self) -> set[EngineClient]:
        return {self._engine}


def made() -> tuple[Hub, Recorder]:
    hub, recorder = Hub(), Recorder()
    hub.indexer = recorder  # type: ignore[assignment]
    return hub, recorder


def settings(**values: Any) -> Settings:
    return read_settings({"model": {"path": "/m"}, **values}).settings


def test_windows_share_an_engine_only_when_they_want_the_same() -> None:
    hub, _ = made()
    first = hub.engine(settings())
    assert hub.engine(settings(completion={"maxTokens": 5})) is first
    assert hub.engine(settings(model={"path": "/other"})) is not first
    assert hub.engine(settings(model={"dtype": "fp32"})) is not first
    assert hub.engine(settings(index={"common": "none"})) is not first


def test_two_purposes_share_an_engine_when_they_have_one_model() -> None:
    hub, _ = made()
    same = settings(model={"path": "/one"}, edit={"draftModel": "/small"})
    assert hub.engine(same) is hub.engine(same, "edits")
    other = settings(model={"path": "/one"}, edit={"draftModel": "/small", "model": "/other"})
    completion, edits = hub.engine(other), hub.engine(other, "edits")
    assert completion is not edits
    assert (completion.options.models, edits.options.models) == (["/one"], ["/other", "/small"])


def test_a_workspace_is_indexed_for_both_models() -> None:
    hub, recorder = made()
    hub.use_workspace("/w", settings(model={"path": "/one"}, edit={"model": "/other"}))
    assert recorder.told == [("open", "/w", "/one"), ("open", "/w", "/other")]


def test_a_folder_is_closed_with_its_last_client() -> None:
    hub, recorder = made()
    hub.open_workspace("/w", settings())
    hub.open_workspace("/w", settings())
    hub.close_workspace("/w")
    assert ("close", "/w") not in recorder.told
    hub.close_workspace("/w")
    assert ("close", "/w") in recorder.told


@pytest.mark.parametrize("off", [{"enabled": False}, {"index": {"enabled": False}}])
def test_what_is_switched_off_is_not_indexed(off: dict[str, Any]) -> None:
    hub, recorder = made()
    hub.open_workspace("/w", settings(**off))
    assert recorder.told == []


@data_cases()
def test_engines_that_nobody_uses_give_their_memory_back(
    monkeypatch: pytest.MonkeyPatch, wanted: bool, idle_s: float, busy: bool, unloaded: bool
) -> None:
    monkeypatch.setattr(hub_module, "BUSY_POLL_S", 0.01)
    monkeypatch.setattr(EngineClient, "pid", 7)
    monkeypatch.setattr(Calls, "busy", busy)
    monkeypatch.setattr(EngineClient, "hung", False)
    ended: list[EngineClient] = []

    def unload(engine: EngineClient) -> None:
        ended.append(engine)

    monkeypatch.setattr(EngineClient, "unload", unload)

    async def scene() -> None:
        hub, _ = made()
        engine = hub.engine(settings(model={"unloadAfterMinutes": 80 / 60}))
        engine.calls.last_used = time.monotonic() - idle_s
        if wanted:
            hub.clients.add(Client(engine))  # type: ignore[arg-type]
        watching = asyncio.ensure_future(hub.watch())
        await asyncio.sleep(0.05)
        watching.cancel()

    asyncio.run(scene())
    assert bool(ended) is unloaded


class Answering:
    """Stands for an engine's process, which takes every frame."""

    alive = True

    def send(self, frame: dict[str, Any]) -> bool:
        return True


def test_the_indexer_is_told_at_once_when_requests_begin_and_end() -> None:
    async def scene() -> list[tuple[str, ...]]:
        hub, recorder = made()
        engines = [hub.engine(settings()), hub.engine(settings(model={"path": "/other"}))]
        job = CompletionJob("", "a.py", "a = ", "")
        for engine in engines:
            engine._child = Answering()  # type: ignore[assignment]
            engine.prefill(job, "client", 0)
            engine.prefill(job, "client", 0)
        for engine in engines:
            for call in list(engine.calls._calls.values()):
                engine._receive(
                    {"event": "result", "id": call.id, "result": None, "forward_s": 0.0}
                )
        return recorder.told

    assert asyncio.run(scene()) == [("busy", "True"), ("busy", "False")]


def test_percentiles() -> None:
    assert percentile_ms([], 95) == 0
    assert percentile_ms([0.002], 50) == 2
    assert percentile_ms([0.001 * number for number in range(101)], 95) == pytest.approx(95)


def test_an_engine_that_hangs_is_ended_and_one_that_works_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REDRAFT_HUNG_S", "5")

    async def scene() -> None:
        hub, _ = made()
        engine = hub.engine(settings())
        engine.last_heard = time.monotonic() - 60
        assert not engine.hung, "it has nothing to do"
        engine.ask(CompletionJob("", "a.py", "x", ""), "c")
        engine.status = replace(engine.status, state="loading")
        assert not engine.hung, "loading and compiling may take long"
        engine.status = replace(engine.status, state="ready")
        assert not engine.hung, "the request has only come"
        (call,) = engine.calls._calls.values()
        call.started -= 60
        assert engine.hung
        ended: list[EngineClient] = []

        def restart(one: EngineClient) -> None:
            ended.append(one)

        monkeypatch.setattr(EngineClient, "restart", restart)
        monkeypatch.setattr(hub_module, "BUSY_POLL_S", 0.01)
        watching = asyncio.ensure_future(hub.watch())
        await asyncio.sleep(0.1)
        watching.cancel()
        assert ended
        assert ended[0] is engine
        engine.last_heard = time.monotonic()
        assert not engine.hung, "it lives"

    async def no_process(_: EngineClient) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(EngineClient, "start", no_process)
    asyncio.run(scene())


def test_the_daemon_loads_no_arrays_no_compiler_and_no_model() -> None:
    program = (
        "import sys; import lsp_server.editor.hub.hub\n"
        "from lsp_server.editor.daemon import connection\n"
        "connection.warm_up()\n"
        "print([m for m in ('numpy', 'numba', 'torch') if m in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert shown.stdout.strip() == "[]", "each costs every machine tens of megabytes"
