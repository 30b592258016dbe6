"""Editors for ``typing``: documents, requests that can be cancelled, one daemon."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.keystrokes.editor_process import (
    EditorProcess,
    ServerFailed,
    private_environment,
    serve_command,
)
from tests.benchmarks.keystrokes.open_document import OpenDocument

READY_S = 600.0
CAPABILITIES = {
    "general": {"positionEncodings": ["utf-32"]},
    "textDocument": {"inlineCompletion": {}},
}


class PrivateDaemon:
    """A daemon of its own, with everything that it writes below one folder."""

    def __init__(
        self,
        folder: Path,
        workspace: Path,
        model: str | None,
        settings: dict[str, Any] | None = None,
        command: list[str] | None = None,
        *,
        measured: bool = False,
    ) -> None:
        """``command``: starts the server of another installation; ``measured``: the daemon takes
        times of itself."""
        self.environment = private_environment(folder)
        self.workspace = workspace
        self.settings = {"model": {"path": model or ""}, **(settings or {})}
        self._logs = folder
        self.command = command or serve_command()
        self.clients = 0
        self._measured = measured

    def _start_measured(self) -> None:
        """Start a daemon that takes times, before a front starts one without."""
        path = "from lsp_server.editor.daemon.address import socket_path; print(socket_path())"
        asked = [sys.executable, "-c", path]
        shown = subprocess.run(
            asked, env=self.environment, capture_output=True, text=True, check=True
        )
        with (self._logs / "measured_daemon.log").open("wb") as log:
            module = "tests.benchmarks.keystrokes.measured_daemon"
            daemon = subprocess.Popen(
                [sys.executable, "-m", module, shown.stdout.strip()],
                env=self.environment,
                cwd=Path(__file__).parents[3],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        while not self.status().get("pid"):
            if daemon.poll() is not None:
                raise ServerFailed(f"the daemon ended; see {log.name}")

    def connect(self, wait: bool = True) -> TypingClient:
        """One more editor; it is waited for until model and index are there."""
        if self._measured and not self.clients:
            self._start_measured()
        self.clients += 1
        client = TypingClient(self, self._logs / f"front-{self.clients}.log")
        if wait:
            client.wait_until_ready()
        return client

    def status(self) -> dict[str, Any]:
        """What ``redraft status`` tells."""
        return self._command("status", "--json")

    def stop(self) -> None:
        """End the daemon."""
        self._command("stop")

    def pids(self) -> list[int]:
        """Daemon, engines and indexer."""
        shown = self.status()
        found = [shown["pid"], shown["indexer_pid"], *(one["pid"] for one in shown["engines"])]
        return [pid for pid in found if pid]

    def _command(self, *words: str) -> dict[str, Any]:
        command = [*self.command[:-1], *words]
        shown = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        answer: dict[str, Any] = json.loads(shown.stdout) if "--json" in words else {}
        return answer


class TypingClient:
    """One editor with one workspace folder."""

    def __init__(self, daemon: PrivateDaemon, log: Path) -> None:
        self._ready = threading.Event()
        self._failed = ""
        started = time.monotonic()
        self.client = EditorProcess(daemon.command, daemon.environment, self._notified, log)
        uri = daemon.workspace.as_uri()
        self.client.request(
            "initialize",
            {
                "processId": None,
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": "typing"}],
                "capabilities": CAPABILITIES,
                "initializationOptions": {"settings": daemon.settings},
            },
        )
        self.initialized_s = time.monotonic() - started
        """From the start of the front to the answer of ``initialize``."""
        self.client.notify("initialized", {})

    @property
    def pid(self) -> int:
        """Process id of the front."""
        return self.client.pid

    def _notified(self, method: str, params: Any) -> None:
        if method == "redraft/status" and params["state"] in ("ready", "error"):
            self._failed = params["message"] if params["state"] == "error" else ""
            self._ready.set()

    def wait_until_ready(self) -> None:
        """Until model and index are there."""
        if not self._ready.wait(READY_S):
            raise ServerFailed("model and index were not ready in time")
        if self._failed:
            raise ServerFailed(self._failed)

    def open(self, uri: str, text: str) -> OpenDocument:
        """Open a document; nothing is written to disk."""
        return OpenDocument(self.client, uri, text)

    def edited(self, uri: str, text: str, lines: tuple[int, int], instruction: str) -> str:
        """What becomes of lines of a document by an instruction, without the end of the last one.

        Lines from 0, the second one excluded. Raises ServerFailed where the server refuses.
        """
        document = self.open(uri, text)
        try:
            return str(document.edited(lines, instruction, limit_s=READY_S)["text"])
        finally:
            document.close()

    def measurements(self) -> dict[str, Any]:
        """Times that the daemon took; the first call begins to watch its event loop."""
        measured: dict[str, Any] = self.client.request("redraft/measurements", {})
        return measured

    def watch_no_more(self) -> None:
        """Watching the event loop costs processor time itself."""
        self.client.request("redraft/measurements", {"watch": False})

    def close(self) -> None:
        """End the front."""
        self.client.close()
