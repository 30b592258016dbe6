"""How the demo waits for a server that indexes and loads its model."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lsp_server.cli import demo as demo_command
from lsp_server.cli.demo import _Starting
from lsp_server.demo.client import DemoClient, ServerFailed
from lsp_server.errors import RedraftError

INDEXED = "$/progress", {"value": {"kind": "end", "message": "14 files"}}


def status(state: str, message: str, compiling: str = "") -> tuple[str, dict[str, Any]]:
    told = {"state": state, "message": message, "remedy": "", "compiling": compiling}
    return "redraft/status", told


def test_it_goes_on_once_both_are_there() -> None:
    starting, console = _Starting(), Console(record=True, width=100)
    told = [status("loading", "compiling"), INDEXED, status("indexing", ""), status("ready", "")]
    teller = threading.Thread(target=lambda: [starting.on_notification(*each) for each in told])
    teller.start()
    starting.wait(console)
    teller.join()
    shown = console.export_text()
    assert "14 files" in shown
    assert "loaded" in shown


def test_edits_wait_for_what_drafts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    starting, console = _Starting(), Console(record=True, width=100)
    starting.on_notification(*status("ready", "", "what drafts edits"))
    with monkeypatch.context() as shortly:
        shortly.setattr(demo_command, "MODEL_WAIT_S", 0.05)
        with pytest.raises(RedraftError, match="edits were not drafted in 0 s"):
            starting.wait_for_edits(console)
    assert "compiling what drafts edits, this once" in console.export_text()
    done = status("ready", "")
    teller = threading.Thread(target=starting.on_notification, args=done)
    teller.start()
    starting.wait_for_edits(console)
    teller.join()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ([status("ready", "")], "the index was not built"),
        ([INDEXED, status("loading", "compiling")], "the model was not loaded in 0 s: compiling"),
        ([INDEXED, status("error", "no such folder")], "not loaded in 0 s: no such folder"),
    ],
)
def test_what_is_missing_is_said(
    told: list[Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_command, "INDEX_WAIT_S", 0.05)
    monkeypatch.setattr(demo_command, "MODEL_WAIT_S", 0.05)
    starting = _Starting()
    for each in told:
        starting.on_notification(*each)
    with pytest.raises(RedraftError, match=message):
        starting.wait(Console(quiet=True))


def test_the_end_of_the_log_is_told(tmp_path: Path) -> None:
    program = "import sys; print('out of cheese', file=sys.stderr)"
    client = DemoClient(
        [sys.executable, "-c", program], {}, lambda *_: None, tmp_path / "server.log"
    )
    with pytest.raises(ServerFailed, match="the server ended; its log ends with: out of cheese"):
        client.request("initialize", {})
    client.close()
