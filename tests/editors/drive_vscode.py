"""A real VS Code: code-server in Chromium with the packed extension, driven by keys and mouse."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from installed import Installed, Server, wait_for
from vscode_settings import CHROMIUM, SETTINGS

# A busy machine may be slower than the server is willing to wait; it then answers with nothing.
PATIENCE_S = 12.0

STATUS_ITEM = ".statusbar-item[id='redraft.redraft.redraft.status']"

# The first line of a suggestion is decorations of the cursor's line, the others are lines below it.
GHOST = """() => {
  const found = (selector) => [...document.querySelectorAll(selector)];
  const first = found('.ghost-text-decoration').map((one) => one.textContent).join('');
  const below = new Map();
  for (const piece of found('.ghost-text')) {
    const line = piece.closest('.view-line') ?? piece.parentElement.parentElement;
    below.set(line, (below.get(line) ?? '') + piece.textContent);
  }
  const top = ([line]) => line.getBoundingClientRect().top;
  const lines = [...below.entries()].sort((one, other) => top(one) - top(other));
  return [first, ...lines.map(([, text]) => text)].join('\\n');
}"""
QUICK_INPUT = ".quick-input-widget:visible input"

# The lines of one side of the diff editor in front, as they are on the screen.
SIDE_OF_PREVIEW = """(side) => {
  const all = [...document.querySelectorAll('.monaco-diff-editor')];
  const shown = all.find((one) => one.offsetParent);
  if (!shown) return [];
  const lines = [...shown.querySelectorAll(`.editor.${side} .view-lines > .view-line`)];
  const top = (line) => line.getBoundingClientRect().top;
  return lines.sort((one, other) => top(one) - top(other)).map((line) => line.textContent);
}"""


class CodeServer:
    """The server side of VS Code: extension host and files."""

    def __init__(
        self,
        installed: Installed,
        server: Server,
        folder: Path,
        *,
        trusted: bool = True,
        environment: dict[str, str] | None = None,
        **settings: Any,
    ) -> None:
        self.folder = folder
        self._sockets = tempfile.mkdtemp(prefix="cs-")
        # In a browser the server's side is a remote machine, with settings of its own.
        machine = {"redraft.serverPath": str(server.command)}
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
            [*base, "--install-extension", str(installed.vsix)],
            env=surroundings, check=True, capture_output=True, timeout=120,
        )  # fmt: skip
        options = ["--auth", "none", "--bind-addr", f"127.0.0.1:{self.port}", "--disable-telemetry"]
        options += ["--disable-update-check", "--disable-getting-started-override"]
        options += ["--disable-workspace-trust"] if trusted else []
        with (folder / "code-server.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*base, *options], env=surroundings, stdout=log, stderr=log, start_new_session=True
            )
        wait_for(self._answers, "code-server", 60)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/healthz", timeout=2
            ) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def close(self) -> None:
        """End the whole process group: extension hosts are children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
        shutil.rmtree(self._sockets, ignore_errors=True)


class Browser:
    """Chromium with a fresh profile. ``outside`` collects every address but this machine's."""

    def __init__(self, folder: Path) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        self.context = self._playwright.chromium.launch_persistent_context(
            str(folder),
            executable_path=shutil.which("chromium"),
            headless=True,
            args=CHROMIUM,
            viewport={"width": 1280, "height": 800},
        )
        self.outside: set[str] = set()
        self.context.on("request", self._seen)

    def _seen(self, request: Any) -> None:
        if "//127.0.0.1" not in request.url and not request.url.startswith(("data:", "blob:")):
            self.outside.add(request.url)

    def close(self) -> None:
        """End Chromium."""
        self.context.close()
        self._playwright.stop()


class Window:
    """One window of VS Code with a folder, or the folders of a workspace file, open."""

    def __init__(self, code_server: CodeServer, browser: Browser, folder: Path) -> None:
        self.folder = folder if folder.is_dir() else folder.parent
        kind = "folder" if folder.is_dir() else "workspace"
        self.page: Any = browser.context.new_page()
        self.page.set_default_timeout(60000)
        self.page.goto(
            f"http://127.0.0.1:{code_server.port}/?{kind}={folder}", wait_until="domcontentloaded"
        )
        self.page.locator(".explorer-folders-view .monaco-list-row").first.wait_for(timeout=60000)

    def wait(self, probe: Any, what: str, timeout_s: float = 60.0) -> Any:
        """As ``wait_for``, with the page's events handled meanwhile."""

        def probed() -> Any:
            self.page.wait_for_timeout(40)
            return probe()

        return wait_for(probed, what, timeout_s)

    def row(self, name: str) -> Any:
        """A file or folder in the explorer."""
        rows = self.page.locator(".explorer-folders-view .monaco-list-row")
        return rows.filter(has=self.page.get_by_text(name, exact=True))

    def expand(self, folder: str) -> None:
        """Show what a folder holds. A click while the tree is being drawn is lost."""
        opened = self.row(folder).and_(self.page.locator("[aria-expanded='true']"))
        for _ in range(9):
            if opened.count():
                return
            self.row(folder).click(timeout=60000)
            with contextlib.suppress(AssertionError):
                self.wait(opened.count, f"contents of {folder}", 5)
        raise AssertionError(f"{folder} does not open")

    def open_tab(self, name: str) -> None:
        """Open a file by name, once the server is ready for it."""
        self.row(name).dblclick(timeout=60000)
        self.page.locator(f'.tab.active[data-resource-name="{name}"]').wait_for()
        self.wait(lambda: "Redraft" in self.status(), "status bar item", 60)
        self.wait_running()

    def open(self, name: str) -> None:
        """Open a file by name, cursor at its end, once the server is ready for it."""
        self.open_tab(name)
        self.focus()
        self.page.keyboard.press("Control+End")

    def wait_running(self) -> None:
        """Until the server answers: ready, or still indexing, which hinders nothing."""
        try:
            self.wait(lambda: self.state() in ("ready", "indexing"), "running server", 90)
        except AssertionError as error:
            raise AssertionError(f"{error}; status: {self.summary()}") from None

    def focus(self) -> None:
        """Put the cursor into the editor."""
        self.page.locator(".editor-instance .monaco-editor .view-lines").last.click(
            position={"x": 300, "y": 10}
        )

    def status(self) -> str:
        """Text of our status bar item."""
        item = self.page.locator(STATUS_ITEM)
        return item.inner_text() if item.count() else ""

    def summary(self) -> str:
        """What the status bar item tells a screen reader."""
        item = self.page.locator(STATUS_ITEM)
        said = item.get_attribute("aria-label") if item.count() else ""
        return (said or "").removeprefix("Redraft: ")

    def state(self) -> str:
        """State of the server, as ``summary`` begins."""
        return self.summary().split(":")[0].strip()

    def keys(self, *keys: str) -> None:
        """Press keys such as ``Control+End``."""
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Type as a person does."""
        self.page.keyboard.type(text, delay=35)

    def ghost(self) -> str:
        """The suggestion on the screen without its blank lines; empty when there is none."""
        shown: str = self.page.evaluate(GHOST)
        return shown.replace("\u00a0", " ").replace("\u200b", "")

    def wait_ghost(self, timeout_s: float = 60.0) -> str:
        """The first suggestion that appears and stays; a user who sees none asks again."""
        asked = time.monotonic()

        def stable() -> str:
            nonlocal asked
            if time.monotonic() - asked > PATIENCE_S:
                asked = time.monotonic()
                self.keys("Alt+\\")
            first = self.ghost()
            # The lines below may be drawn a moment before the one at the cursor.
            if not first.split("\n")[0]:
                return ""
            self.page.wait_for_timeout(150)
            return first if self.ghost() == first else ""

        found: str = self.wait(stable, "suggestion", timeout_s)
        return found

    def command(self, title: str) -> None:
        """Run a command of the palette by its title."""
        box = self.page.locator(QUICK_INPUT)

        def palette_is_open() -> bool:
            self.keys("F1")
            self.page.wait_for_timeout(300)
            return bool(box.count())

        self.wait(palette_is_open, "palette")
        box.fill(f">{title}")
        self.page.locator(".quick-input-list .monaco-list-row", has_text=title).first.wait_for()
        self.keys("Enter")

    def go_to_line(self, line: int) -> None:
        """Cursor to the start of a line, 1-based."""
        self.keys("Control+g")
        self.page.locator(QUICK_INPUT).fill(f":{line}")
        self.keys("Enter")
        self.keys("Home", "Home")

    def select_lines(self, first: int, last: int) -> None:
        """Select whole lines, 1-based and inclusive."""
        self.go_to_line(first)
        for _ in range(last - first + 1):
            self.keys("Shift+ArrowDown")

    def ask_for_edit(self, instruction: str) -> None:
        """Edit the selection by the keybinding."""
        self.keys("Control+k", "Control+e")
        box = self.page.locator(QUICK_INPUT)
        box.fill(instruction)
        self.page.locator(
            ".quick-input-list .monaco-list-row", has_text=instruction
        ).first.wait_for()
        self.keys("Enter")

    def in_preview(self) -> bool:
        """Whether a diff editor is in front."""
        return bool(self.page.locator(".monaco-diff-editor:visible").count())

    def proposes(self, text: str) -> bool:
        """Whether the right side of the preview shows a text."""
        return self._side("modified") == lines_on_screen(text)

    def compares_with(self, text: str) -> bool:
        """Whether the left side of the preview shows a text."""
        return self._side("original") == lines_on_screen(text)

    def proposal(self) -> list[str]:
        """The lines on the right side of the preview."""
        return self._side("modified")

    def _side(self, side: str) -> list[str]:
        lines = "\n".join(self.page.evaluate(SIDE_OF_PREVIEW, side))
        return lines_on_screen(lines.replace("\u00a0", " ").replace("\u200b", ""))

    def is_dirty(self, name: str) -> bool:
        """Whether a file has unsaved changes."""
        return bool(self.page.locator(f'.tab.dirty[data-resource-name="{name}"]').count())

    def open_menu(self) -> None:
        """Click our status bar item."""
        self.page.locator(STATUS_ITEM).click()
        self.page.locator(".quick-input-list .monaco-list-row", has_text="Show log").wait_for()

    def choose_in_menu(self, entry: str) -> None:
        """Click our status bar item and something it offers."""
        self.open_menu()
        self.page.locator(".quick-input-list .monaco-list-row", has_text=entry).click()

    def close_editors(self) -> None:
        """Close all editors without saving."""
        self.keys("Escape")
        while self.page.locator(".tab").count():
            self.command("View: Revert and Close Editor")
            self.page.wait_for_timeout(200)

    def saved(self, name: str) -> bytes:
        """Save and read the file's bytes."""
        path = self.folder / name
        before = path.stat().st_mtime_ns
        self.keys("Control+s")
        dirty = self.page.locator(f'.tab.active.dirty[data-resource-name="{name}"]')
        self.wait(lambda: not dirty.count(), "saved file")
        assert path.stat().st_mtime_ns >= before
        return path.read_bytes()

    def toast(self, text: str) -> Any:
        """A notification that holds ``text``."""
        return self.page.locator(".notification-toast", has_text=text)

    def picture(self, path: Path) -> None:
        """A screenshot as PNG."""
        self.page.screenshot(path=str(path))


def lines_on_screen(text: str) -> list[str]:
    """Lines as an editor shows them: no line ends, no blanks behind, no blank lines at the end."""
    return [line.rstrip() for line in text.replace("\r\n", "\n").rstrip().split("\n")]
