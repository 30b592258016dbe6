"""Set-ups that suggest nothing, in editors without a plug-in of ours: ``python -m
tests.clients.broken FOLDER [NAME ...]`` prints after how many seconds the reason stood on the
screen, from when the editor showed the file."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.clients.editors import home_of, missing_of, started, stop
from tests.clients.stand_in import KEY

EDITORS = ("Neovim", "Helix", "Emacs, eglot", "coc.nvim")
SECONDS, LONGEST = 3.0, 12.0
MODEL = Path(__file__).resolve().parents[1] / "data" / "small_model"
TEXT = "def order_total(prices, tax):\n    return sum(prices)\n"
Home = Path
SetUp = Callable[[Home], dict[str, str]]
"""Breaks something in a home, and returns what to put into the environment."""


def _chosen(model: Path) -> SetUp:
    """Return a set-up whose user chose ``model``, below the home folder if it is relative."""

    def break_it(home: Path) -> dict[str, str]:
        (choices := home / ".config/redraft/models.json").parent.mkdir(parents=True)
        choices.write_text(json.dumps({"completion": str(home / model)}))
        return {}

    return break_it


def _with(name: str, content: bytes | None) -> SetUp:
    """Return a set-up whose model has this content; None: a folder with nothing in it."""

    def break_it(home: Path) -> dict[str, str]:
        if content is None:
            (home / name).mkdir()
        else:
            (home / name).write_bytes(content)
        return _chosen(Path(name))(home)

    return break_it


def _without(file: str, **changes: Any) -> SetUp:
    """Return a set-up whose model's folder lacks ``file``, or has ``changes`` in it."""

    def break_it(home: Path) -> dict[str, str]:
        shutil.copytree(MODEL, home / "m", ignore=None if changes else lambda *_: [file])
        if changes:
            values = json.loads((home / "m" / file).read_text())
            (home / "m" / file).write_text(json.dumps(values | changes))
        return _chosen(Path("m"))(home)

    return break_it


def _link(home: Path) -> dict[str, str]:
    (home / "m.gguf").symlink_to(home / "gone.gguf")
    return _chosen(Path("m.gguf"))(home)


def _loop(home: Path) -> dict[str, str]:
    (home / "m.gguf").symlink_to(home / "m.gguf")
    return _chosen(Path("m.gguf"))(home)


def _choices(home: Path) -> dict[str, str]:
    _chosen(MODEL)(home)
    (home / ".config/redraft/models.json").write_text("{")
    return {}


def _server(url: str, key: str = KEY) -> SetUp:
    def break_it(home: Path) -> dict[str, str]:
        return {"REDRAFT_SERVER_URL": url, **({"REDRAFT_SERVER_KEY": key} if key else {})}

    return break_it


def _answering(status: int, body: bytes = b"{}") -> str:
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def _full(home: Path) -> dict[str, str]:
    """Where a file system may be mounted, the user's data lie on one that is full."""
    (data := home / "data").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(data)], check=True)
    with suppress(OSError):
        (data / "all").write_bytes(bytes(1 << 17))
    return {**_chosen(MODEL)(home), "XDG_DATA_HOME": str(data)}


SILENT = socket.create_server(("127.0.0.1", 0))
CLOSED = "http://127.0.0.1:9"
SET_UPS: dict[str, tuple[SetUp, str]] = {
    "no model": (lambda _: {}, "none is chosen|no model"),
    "a path of nothing": (_chosen(Path("gone.gguf")), "no model at"),
    "an empty folder": (_with("m", None), "is empty"),
    "a file that is no model": (_with("m.gguf", b"hello" * 99), "damaged|GGUF"),
    "an empty file": (_with("m.gguf", b""), "empty|damaged"),
    "a file that is cut": (_with("m.gguf", b"GGUF\x03\0\0\0"), "damaged"),
    "a file that cannot be opened": (_loop, "cannot be opened"),
    "a folder without weights": (_without("model.safetensors"), "weights|safetensors"),
    "a folder without a tokenizer": (_without("tokenizer.json"), "tokenizer"),
    "an unknown architecture": (_without("config.json", model_type="x"), "knows no"),
    "choices that are damaged": (_choices, "none is chosen|no model|models.json"),
    "a server that is away": (_server(CLOSED), "cannot be reached"),
    "a server that is silent": (_server(f"http://127.0.0.1:{SILENT.getsockname()[1]}"), "asking"),
    "a wrong key": (_server(_answering(401)), "does not take the key"),
    "no key": (_server(_answering(401), ""), "asks for a key"),
    "another server": (_server(_answering(404)), "no model that"),
    "a server that fails": (_server(_answering(503)), "fails .503"),
    "no address": (_server("127.0.0.1:80"), "not an http"),
    "a link to nothing": (_link, "is a link to"),
    "a full disk": (_full, "No space left|compiling|loading"),
}
"""How it is broken, and what stands on the screen then."""


def told(name: str, clients: Path, editors: Sequence[str]) -> list[float | None]:
    """Return after how many seconds each editor told the reason; None: not at all."""
    break_it, words = SET_UPS[name]
    with tempfile.TemporaryDirectory(prefix="redraft-broken-", ignore_cleanup_errors=True) as work:
        environment = home_of(Path(work))
        environment |= break_it(home := Path(environment["HOME"]))
        (folder := Path(work) / "project").mkdir()
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        (file := folder / "orders.py").write_text(TEXT)
        times: list[float | None] = []
        try:
            for editor in editors:
                times.append(_seconds(editor, clients, environment, file, words))
                stop(environment)
        finally:
            subprocess.run(["umount", str(home / "data")], capture_output=True, check=False)
    return times


def _seconds(
    editor: str, clients: Path, environment: dict[str, str], file: Path, words: str
) -> float | None:
    _, terminal = started(editor, clients, environment, file)
    opened, began = None, time.monotonic()
    try:
        while time.monotonic() - began < LONGEST:
            terminal.read(0.05)
            # Words are broken where a line is full, and boxes have borders.
            screen = re.sub(r"[\s│~]", "", terminal.text)
            if opened is None and "order_total" in screen:
                opened = time.monotonic()
            if opened is not None and re.search(words.replace(" ", ""), screen):
                return time.monotonic() - opened
    finally:
        terminal.close()
    return None


def main(clients: Path, names: list[str]) -> int:
    """Print a table; 1 if a reason came late, or did not."""
    editors = [editor for editor in EDITORS if not missing_of(editor, clients)]
    print(" " * 30, *(f"{editor:14}" for editor in editors))
    late = 0
    for name in names or SET_UPS:
        times = told(name, clients, editors)
        late += sum(seconds is None or seconds > SECONDS for seconds in times)
        shown = ("no" if seconds is None else f"{seconds:.1f} s" for seconds in times)
        print(f"{name:30}", *(f"{each:14}" for each in shown), flush=True)
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
