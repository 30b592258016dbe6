"""What the tests find on this machine: the editors, and the server in surroundings of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import leftovers
from language_client import LanguageClient
from small_model import SMALL_MODEL
from waiting import PATIENCE, wait_for

EDITORS_MODEL = os.environ.get("REDRAFT_TEST_DEFAULT") or str(SMALL_MODEL)
"""What the tests' editors complete and edit with."""

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "editor-clients"


@dataclass(frozen=True, slots=True)
class Installed:
    """The folder that setup.sh filled."""

    folder: Path

    @classmethod
    def from_environment(cls) -> Installed:
        """Raises FileNotFoundError when nothing is installed."""
        folder = Path(os.environ.get("REDRAFT_EDITORS") or ROOT / ".editors").resolve()
        if not folder.is_dir():
            raise FileNotFoundError(f"{folder} does not exist; run tests/editors/run.sh")
        return cls(folder)

    def neovim_of(self, version: str) -> Path:
        """0.12 draws suggestions itself, 0.11 has configurations of servers, 0.10 has neither."""
        return (
            self.folder
            / {"0.12": "nvim", "0.11": "nvim-middle", "0.10": "nvim-older"}[version]
            / "nvim"
        )

    @property
    def neovim(self) -> Path:
        """The newest Neovim."""
        return self.neovim_of("0.12")

    @property
    def helix(self) -> Path:
        """Helix, which has the completion menu and code actions only."""
        return self.folder / "helix/binary"

    @property
    def emacs(self) -> Path:
        """Emacs, which has the completion menu and code actions through eglot."""
        return self.folder / "emacs/emacs"

    @property
    def node(self) -> Path:
        """The Node that code-server needs."""
        return self.folder / "node/bin/node"

    @property
    def code_server(self) -> Path:
        """VS Code for the browser."""
        return self.folder / "code-server/node_modules/code-server/out/node/entry.js"

    @property
    def vsix(self) -> Path:
        """The packed extension."""
        return Path(os.environ.get("REDRAFT_VSIX") or self.folder / "redraft.vsix")


@dataclass(frozen=True, slots=True)
class Server:
    """The command ``redraft`` for editors to start; everything it writes lies below ``folder``."""

    command: Path
    environment: dict[str, str]

    @classmethod
    def from_environment(cls, folder: Path) -> Server:
        """Wraps the server's command so that it never meets the user's own daemon."""
        real = Path(os.environ.get("REDRAFT_COMMAND") or ROOT / ".venv/bin/redraft")
        if not real.exists():
            raise FileNotFoundError(f"{real} does not exist; run tests/editors/run.sh")
        own: dict[str, str] = {}
        for name in ("CONFIG_HOME", "DATA_HOME", "STATE_HOME", "RUNTIME_DIR"):
            path = folder / name.lower().replace("_", "-")
            path.mkdir(mode=0o700)
            own[f"XDG_{name}"] = str(path)
        # The offer of the first start is not what these tests are about.
        answer = Path(own["XDG_STATE_HOME"]) / "redraft" / "setup.json"
        answer.parent.mkdir(mode=0o700)
        answer.write_text('{"answer": "in a test"}', encoding="utf-8")
        choices = Path(own["XDG_CONFIG_HOME"]) / "redraft" / "models.json"
        choices.parent.mkdir(mode=0o700)
        choices.write_text(json.dumps({"completion": EDITORS_MODEL}), encoding="utf-8")
        # What is compiled and measured once for a machine serves later runs too.
        cache = Installed.from_environment().folder / "cache"
        cache.mkdir(mode=0o700, exist_ok=True)
        own["XDG_CACHE_HOME"] = str(cache)
        # Part of the daemon's address: an editor with another home would start another daemon.
        own["HOME"] = os.environ["HOME"]
        own["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "2")
        command = folder / "redraft"
        exports = "".join(f"export {name}='{value}'\n" for name, value in own.items())
        # The daemon that an editor starts outlives the editor's test.
        script = f"#!/bin/sh\n{exports}unset {leftovers.TEST}\nexec '{real}' \"$@\"\n"
        command.write_text(script, encoding="utf-8")
        command.chmod(0o755)
        return cls(command, {**os.environ, **own})

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the server's command line."""
        return subprocess.run(
            [str(self.command), *arguments],
            capture_output=True, text=True, timeout=60 * PATIENCE, check=False,
        )  # fmt: skip

    def engine_of(self, model: str) -> bool:
        """Whether the daemon has an engine for a model whose path ends so."""
        return any(one["model"].endswith(model) for one in self.status().get("engines", []))

    def status(self) -> dict[str, Any]:
        """``redraft status --json``; empty when no daemon runs."""
        time.sleep(0.1)  # asked in loops, and a process each time
        answer = self.run("status", "--json")
        found: dict[str, Any] = json.loads(answer.stdout) if answer.stdout.strip() else {}
        return found

    def warm_up(self, folder: Path) -> None:
        """Load the model and build what is built once, so that no test waits for it."""
        with LanguageClient(self.command, folder) as client:
            document = client.open(folder / "empty.py", "x = 1\n")
            here = {"line": 1, "character": 0}
            asked = {"textDocument": document, "position": here, "context": {"triggerKind": 2}}
            client.request("textDocument/inlineCompletion", asked)
            try:
                wait_for(self._model_is_loaded, "loaded model", 400)
            except AssertionError as error:
                raise AssertionError(f"{error}; {self.run('status').stdout}") from None

    @contextmanager
    def halted_engine(self) -> Iterator[None]:
        """However fast the model is, it does not answer meanwhile."""
        engine = self.engine_process()
        os.kill(engine, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(engine, signal.SIGCONT)

    @contextmanager
    def slow_engine(self) -> Iterator[None]:
        """However fast the model is, one sees how it writes."""
        engine = self.engine_process()
        over = threading.Event()

        def slow_down() -> None:
            while not over.is_set():
                os.kill(engine, signal.SIGSTOP)
                over.wait(0.15)
                os.kill(engine, signal.SIGCONT)
                over.wait(0.004)

        worker = threading.Thread(target=slow_down)
        worker.start()
        try:
            yield
        finally:
            over.set()
            worker.join()

    def engine(self) -> dict[str, Any]:
        """The engine of the model that editors have unless a test chooses another."""
        (found,) = (one for one in self.status()["engines"] if one["model"] == EDITORS_MODEL)
        return dict(found)

    def engine_process(self) -> int:
        """Its process."""
        return int(self.engine()["pid"])

    def fronts(self) -> set[int]:
        """Processes that editors have started."""
        own = self.environment["XDG_RUNTIME_DIR"]
        found = set()
        for process in leftovers.carrying("XDG_RUNTIME_DIR", own.__eq__):
            with suppress(OSError):
                if b"serve" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0"):
                    found.add(process)
        return found

    def settled(self) -> dict[str, Any]:
        """The status once the daemon knows of every front that lives, and of no other."""

        def when_settled() -> dict[str, Any]:
            status = self.status()
            return status if status.get("clients") == len(self.fronts()) else {}

        return wait_for(when_settled, "settled clients")

    def wait_idle(self) -> None:
        """Until no engine has anything to do."""
        wait_for(lambda: all(one["queue"] == 0 for one in self.status()["engines"]), "idle engine")

    def _model_is_loaded(self) -> bool:
        engines = self.status().get("engines", [])
        return bool(engines) and engines[0]["state"] in ("ready", "idle")

    def stop(self) -> None:
        """End the daemon."""
        self.run("stop")
