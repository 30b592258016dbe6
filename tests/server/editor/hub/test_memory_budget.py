"""One budget of memory for all engines: who gives way, who is waited for, what is refused."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from python_environments import use_modules_of

sys.path.insert(0, str(Path(__file__).parents[3] / "decoding"))

from gguf_models import random_module, save_gguf

from lsp_server.editor.hub import memory_budget
from lsp_server.editor.hub.hub import Hub
from lsp_server.engine import client
from lsp_server.engine.client import EngineClient
from lsp_server.engine.key import EngineKey
from lsp_server.engine.memory import Need, need_of, used_by
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.shared.errors import MemoryTaken, ModelUnavailable
from lsp_server.shared.processes.child import Child
from lsp_server.shared.settings import Settings, read_settings

MEGABYTE = 1_000_000
JOB = CompletionJob("", "a.py", "x = ", "")
ENGINE = """
import os, sys, time
from lsp_server.shared.processes.child import FramePipe
ballast = b"x" * 50_000_000
pipe = FramePipe(os.fdopen(0, "rb", buffering=0), os.fdopen(1, "wb", buffering=0))
while os.path.exists(os.environ["STILL_LOADS"]):
    time.sleep(0.01)
pipe.write({"event": "status", "status": {"state": "ready"}})
while (frame := pipe.read()) is not None:
    if frame["op"] == "cancel":
        pipe.write({"event": "result", "id": frame["id"], "result": None, "forward_s": 0.0})
"""
"""An engine of 50 MB and more that loads while a file is there, and whose requests go on until they
are cancelled."""


@pytest.fixture
async def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hub]:
    """A hub of engines that need 100 MB each, in real processes."""
    (tmp_path / "staged_process.py").write_text(ENGINE)
    use_modules_of(tmp_path, monkeypatch)
    monkeypatch.setenv("STILL_LOADS", str(tmp_path / "loads"))
    monkeypatch.setattr(memory_budget, "need_of", lambda key: Need(100 * MEGABYTE, key))
    monkeypatch.setattr(client, "check_model", lambda model: None)
    started = Hub()
    yield started
    await started.close()


def settings(path: str, megabytes: int) -> Settings:
    return read_settings({"model": {"path": path, "memoryMegabytes": megabytes}}).settings


def made(hub: Hub, path: str, megabytes: int) -> EngineClient:
    """An engine of the hub, staged."""
    engine = hub.engine(settings(path, megabytes))
    engine._child = Child("staged_process", [], engine._receive, engine._died)
    return engine


async def ready(engine: EngineClient) -> None:
    await engine.start()
    while engine.status.state != "ready":
        await asyncio.sleep(0.01)


async def test_two_engines_that_fit_stay_beside_each_other(hub: Hub) -> None:
    first, second = made(hub, "/a", 250), made(hub, "/b", 250)
    await ready(first)
    await ready(second)
    assert first.pid
    assert second.pid
    told = hub.status()["memory"]
    assert told["held_bytes"] >= 200 * MEGABYTE
    assert told["budget_bytes"] == 250 * MEGABYTE


async def test_the_engine_that_is_idle_longest_gives_way_and_comes_back(hub: Hub) -> None:
    first, second, third = (made(hub, path, 250) for path in ("/a", "/b", "/c"))
    for engine in (first, second):
        await ready(engine)
    assert first.pid is not None
    process = psutil.Process(first.pid)
    await ready(third)
    assert not process.is_running()
    assert (first.status.state, first.memory_bytes) == ("idle", 0)
    assert first.status.message.startswith("unloaded to make room for /c")
    assert second.pid
    await ready(first)
    assert second.pid is None


async def test_an_engine_at_work_is_waited_for(hub: Hub) -> None:
    first, second = made(hub, "/a", 150), made(hub, "/b", 150)
    await ready(first)
    call = first.ask(JOB, "client")
    starting = asyncio.ensure_future(second.start())
    await asyncio.wait({starting}, timeout=0.3)
    assert not starting.done()
    assert first.pid
    call.cancel()
    await starting
    assert await call.future is None, "its answer came before it gave way"
    assert first.pid is None


async def test_waiting_is_bounded_and_the_next_request_tries_again(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_budget, "WAIT_S", 0.2)
    first, second = made(hub, "/a", 150), made(hub, "/b", 150)
    await ready(first)
    call = first.ask(JOB, "client")
    with pytest.raises(MemoryTaken, match=r"are left beside /a, at work; ask again"):
        await second.ask(JOB, "client").future
    assert not second.refused
    assert first.pid
    call.cancel()
    await ready(second)


async def test_an_engine_that_loads_is_waited_for_until_it_is_ready(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_budget, "WAIT_S", 0.1)
    loads = tmp_path / "loads"
    loads.touch()
    first, second = made(hub, "/a", 150), made(hub, "/b", 150)
    await first.start()
    starting = asyncio.ensure_future(second.start())
    await asyncio.wait({starting}, timeout=0.5)
    assert first.status.state == "loading"
    assert not starting.done(), "a load may take longer than work is waited for"
    loads.unlink()
    await starting
    assert first.pid is None
    assert second.pid


async def test_what_never_fits_is_refused_until_the_budget_changes(hub: Hub) -> None:
    first, second = made(hub, "/a", 150), made(hub, "/b", 90)
    await ready(first)
    with pytest.raises(ModelUnavailable, match=r"memoryMegabytes allows 90 MB; .* would fit"):
        await second.start()
    assert first.pid, "nobody gives way in vain"
    assert "needs 100 MB" in second.refused
    hub.engine(settings("/b", 120))
    assert not second.refused
    await ready(second)


async def test_half_of_what_is_free_and_held_is_the_budget_by_default(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from operating_system import machine

    monkeypatch.setattr(machine, "free_bytes", lambda: 1000 * MEGABYTE)
    engine = made(hub, "/a", 0)
    assert hub.status()["memory"] == {"held_bytes": 0, "budget_bytes": 500 * MEGABYTE}
    await ready(engine)
    held = used_by(engine.pid)
    assert held > 50 * MEGABYTE
    assert hub.status()["memory"]["budget_bytes"] == pytest.approx(
        (1000 * MEGABYTE + held) / 2, rel=0.05
    )


def test_a_model_needs_what_its_header_says_and_its_draft_model_too(tmp_path: Path) -> None:
    small = save_gguf(tmp_path / "small.gguf", random_module("qwen2"), "Q8_0")
    sizes = {"hidden_size": 256, "intermediate_size": 2048}
    large = save_gguf(tmp_path / "large.gguf", random_module("qwen2", **sizes), "Q8_0")

    def need(**values: Any) -> int:
        return need_of(EngineKey.of(read_settings(values).settings, "edits").options).nbytes

    alone = {"model": {"path": str(large), "device": "cpu"}}
    assert need(**alone) > need(model={"path": str(small), "device": "cpu"}) > 0
    both = need(**alone, edit={"draftModel": str(small)})
    assert both > need(**alone)
    with pytest.raises(ModelUnavailable):
        need(model={"path": str(tmp_path / "none.gguf")})


def test_a_process_that_has_gone_holds_nothing() -> None:
    assert used_by(None) == 0
    assert used_by(2**22 + 1) == 0
