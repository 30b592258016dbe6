"""A real VS Code without its window: code-server with the packed extension."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import leftovers
from installed import Installed, Server
from vscode_settings import MACHINE_SETTINGS, SETTINGS
from waiting import PATIENCE, wait_for


class CodeServer:
    """The server side of VS Code: extension host and files."""

    def __init__(
        self,
        installed: Installed,
        server: Server,
        folder: Path,
        *,
        trusted: bool = True,
        vsix: Path | None = None,
        environment: dict[str, str] | None = None,
        **settings: Any,
    ) -> None:
        self.folder = folder
        self._sockets = tempfile.mkdtemp(prefix="cs-")
        # In a browser the server's side is a remote machine, with settings of its own.
        machine = {**MACHINE_SETTINGS, "redraft.serverPath": str(server.command)}
        user = dict(SETTINGS)
        for name, value in settings.items():
            (machine if name.startswith("redraft.server") else user)[name] = value
        for name, values in (("User", user), ("Machine", machine)):
            (folder / "data" / name).mkdir(parents=True)
            file = folder / "data" / name / "settings.json"
            file.write_text(json.dumps(values), encoding="utf-8")
        (folder / "config.yaml").write_text("auth: none\n", encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        base = [
            str(installed.node),
            str(installed.code_server),
            "--config",
            str(folder / "config.yaml"),
        ]
        base += [
            "--user-data-dir",
            str(folder / "data"),
            "--extensions-dir",
            str(folder / "extensions"),
        ]
        xdg = {f"XDG_{name}_HOME": str(folder / "xdg") for name in ("CONFIG", "DATA", "CACHE")}
        surroundings = {**os.environ, **xdg, "XDG_RUNTIME_DIR": self._sockets}
        surroundings.update(environment or {})
        surroundings["EXTENSIONS_GALLERY"] = '{"serviceUrl":""}'
        subprocess.run(
            [*base, "--install-extension", str(vsix or installed.vsix)],
            env=surroundings, check=True, capture_output=True, timeout=120 * PATIENCE,
        )  # fmt: skip
        options = ["--auth", "none", "--bind-addr", f"127.0.0.1:{self.port}", "--disable-telemetry"]
        options += ["--disable-update-check", "--disable-getting-started-override"]
        options += ["--disable-workspace-trust"] if trusted else []
        with (folder / "code-server.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*base, *options], env=surroundings, stdout=log, stderr=log, start_new_session=True
            )
        wait_for(self._answers, "code-server")

    def _answers(self) -> bool:
        url = f"http://127.0.0.1:{self.port}/healthz"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def close(self) -> None:
        """End the whole process group: extension hosts are children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(leftovers.GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(leftovers.GRACE_S)
        shutil.rmtree(self._sockets, ignore_errors=True)
