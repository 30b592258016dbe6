"""Engines without a model: until when nothing is tried, and how often something is."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from breaking import sound
from python_environments import use_modules_of
from small_model import SMALL_MODEL

from lsp_server.engine import load_failure
from lsp_server.engine.client import EngineClient
from lsp_server.engine.load_failure import RETRY_S, LoadFailure
from lsp_server.engine.model_paths import files_state
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import EngineUnavailable
from lsp_server.shared.processes.child import Child

REQUESTS = 30


def failure_of(model: str, lasting: bool) -> LoadFailure:
    return LoadFailure([model], "it is broken", "mend it", files_state(model), lasting)


def test_a_failure_of_the_files_holds_until_one_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = failure_of(sound(tmp_path / "model"), lasting=True)
    assert str(failure.error) == "it is broken; mend it"
    assert failure.holds
    monkeypatch.setattr(load_failure.time, "monotonic", lambda: failure.since + 1e6)
    assert failure.holds
    (tmp_path / "model" / "config.json").write_text("{}")
    assert not failure.holds


def test_what_may_pass_is_tried_again_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = failure_of(sound(tmp_path / "model"), lasting=False)
    assert failure.holds
    monkeypatch.setattr(load_failure.time, "monotonic", lambda: failure.since + RETRY_S + 1)
    assert not failure.holds


DYING = """
import os, sys
with open(os.environ["REDRAFT_TEST_STARTS"], "a") as starts:
    starts.write("started\\n")
{}
"""

SAYS_WHY = """
from lsp_server.shared.processes.child import FramePipe
pipe = FramePipe(os.fdopen(0, "rb", buffering=0), os.fdopen(1, "wb", buffering=0))
pipe.write({"event": "status", "status": {"state": "failed", "message": "no memory",
            "remedy": "buy some", "lasting": False}})
"""


@pytest.mark.parametrize(
    ("body", "told", "most"),
    [("sys.exit(9)", "the engine process ended while it loaded", 2), (SAYS_WHY, "no memory", 1)],
    ids=["silently", "with its reason"],
)
def test_a_process_that_dies_while_it_loads_is_not_started_by_every_request(
    body: str, told: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = tmp_path / "starts"
    (tmp_path / "dying_engine.py").write_text(DYING.format(body))
    monkeypatch.setenv("REDRAFT_TEST_STARTS", str(starts))
    use_modules_of(tmp_path, monkeypatch)
    assert sys.platform != "win32"

    async def ask_again_and_again() -> list[str]:
        engine = EngineClient(EngineOptions(path=str(SMALL_MODEL)), lambda: None)
        engine._child = Child("dying_engine", [], engine._receive, engine._died)
        errors = []
        for _ in range(REQUESTS):
            call = engine.ask(CompletionJob("", "a.py", "x = ", ""), "client")
            with pytest.raises(EngineUnavailable) as caught:
                await asyncio.wait_for(call.future, 60)
            errors.append(str(caught.value))
        assert engine.status.state == "failed"
        assert engine.calls.queue_length == 0
        return errors

    errors = asyncio.run(ask_again_and_again())
    assert len(starts.read_text().splitlines()) == most
    assert all(told in error for error in errors[most - 1 :])


def test_a_process_that_is_being_started_ends_with_its_engine() -> None:
    async def start_and_close() -> bool:
        engine = EngineClient(EngineOptions(path=str(SMALL_MODEL)), lambda: None)
        starting = asyncio.ensure_future(engine.start())
        await asyncio.sleep(0)
        await engine.close()
        await asyncio.wait({starting})
        return engine.pid is not None

    assert not asyncio.run(start_and_close())
