"""A window of a real VS Code in Chromium, driven by keys and mouse."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser import Browser
from code_server import CodeServer
from waiting import PATIENCE, wait_for

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
SIGNS = """() => [...document.querySelectorAll('.editor-instance .cgmr')]
  .filter((one) => getComputedStyle(one).backgroundImage.includes('next-edit')).length"""
# Every line of the editor in front: its number, its text, what decorations struck out and added.
LINES = """() => {
  const shown = [...document.querySelectorAll('.editor-instance .monaco-editor')];
  const editor = shown.filter((one) => one.offsetParent).pop();
  if (!editor) return [];
  const top = (one) => Math.round(one.getBoundingClientRect().top);
  const numbers = new Map();
  const margin = editor.querySelectorAll('.line-numbers');
  margin.forEach((one) => numbers.set(top(one), +one.textContent));
  const lines = [...editor.querySelectorAll('.view-lines > .view-line')];
  return lines.sort((one, other) => top(one) - top(other)).map((line) => {
    const pieces = [...line.querySelectorAll('span span')];
    const behind = pieces.map((piece) => getComputedStyle(piece, '::after').content);
    const isStruck = (piece) => getComputedStyle(piece).textDecorationLine === 'line-through';
    const struck = pieces.filter(isStruck);
    return {
      number: numbers.get(top(line)) ?? 0,
      text: line.textContent,
      struck: struck.map((piece) => piece.textContent).join(''),
      added: behind.filter((one) => one.startsWith('"')).map((one) => JSON.parse(one)).join(''),
    };
  });
}"""
QUICK_INPUT = ".quick-input-widget:visible input"
LIST_ROW = ".quick-input-list .monaco-list-row"

# The lines of one side of the diff editor in front, as they are on the screen.
SIDE_OF_PREVIEW = """(side) => {
  const all = [...document.querySelectorAll('.monaco-diff-editor')];
  const shown = all.find((one) => one.offsetParent);
  if (!shown) return [];
  const lines = [...shown.querySelectorAll(`.editor.${side} .view-lines > .view-line`)];
  const top = (line) => line.getBoundingClientRect().top;
  return lines.sort((one, other) => top(one) - top(other)).map((line) => line.textContent);
}"""


class Window:
    """One window of VS Code with a folder, or the folders of a workspace file, open."""

    def __init__(self, code_server: CodeServer, browser: Browser, folder: Path) -> None:
        self.folder = folder if folder.is_dir() else folder.parent
        kind = "folder" if folder.is_dir() else "workspace"
        self.page: Any = browser.context.new_page()
        self.page.set_default_timeout(60_000 * PATIENCE)
        rows = self.page.locator(".explorer-folders-view .monaco-list-row")
        for is_last in (False, True):
            # Now and then Chromium leaves the workbench empty, before any extension begins.
            self.page.goto(
                f"http://127.0.0.1:{code_server.port}/?{kind}={folder}",
                wait_until="domcontentloaded",
            )
            try:
                rows.first.wait_for(timeout=30_000 * PATIENCE)
                break
            except Exception:
                # What is there instead can be looked at beside the test's other files.
                self.page.screenshot(path=self.folder / "window.png")
                if is_last:
                    raise

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
        """Show what a folder holds."""
        opened = self.row(folder).and_(self.page.locator("[aria-expanded='true']"))
        self._until(opened, self.row(folder).click)

    def open_tab(self, name: str) -> None:
        """Open a file by name, once the server is ready for it."""
        if not self.row(name).count():
            # The explorer's watcher starts late and misses what was made before it.
            self.command("Refresh Explorer")
        self._open_tab(name, self.row(name).dblclick)

    def open_path(self, path: str) -> None:
        """Open a file by its path, which the explorer need not show, nor a search find yet."""
        name = Path(path).name

        def open_file() -> None:
            self.keys("Escape", "Control+o")
            self.page.locator(QUICK_INPUT).fill(str(self.folder / path))
            with contextlib.suppress(AssertionError):
                self.wait(self.page.locator(LIST_ROW, has_text=name).count, "file in the list", 5)
            self.page.wait_for_timeout(400)
            self.keys("Enter")

        self._open_tab(name, open_file)

    def _open_tab(self, name: str, act: Callable[[], None]) -> None:
        self._until(self.page.locator(f'.tab.active[data-resource-name="{name}"]'), act)
        self.wait(lambda: "Redraft" in self.status(), "status bar item")
        self.wait_running()

    def _until(self, wanted: Any, act: Callable[[], None]) -> None:
        """Do something until something is there: a click while a tree is being drawn is lost."""
        for _ in range(12):
            if wanted.count():
                return
            act()
            with contextlib.suppress(AssertionError):
                self.wait(wanted.count, f"{wanted}", 5)
        raise AssertionError(f"no {wanted} after many clicks")

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
        """Put the cursor into the editor, by no locator's click: that may scroll it away."""
        self._click_lines()
        self._until(self.page.locator(".editor-instance .focused"), self._click_lines)

    def _click_lines(self) -> None:
        # What is in view of them: the lines themselves are scrolled, so their top may be above it.
        shown = self.page.locator(".editor-instance .monaco-editor .editor-scrollable").last
        box = shown.bounding_box() or {"x": 0, "y": 0}
        self.page.mouse.click(box["x"] + 300, box["y"] + 10)

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

    def wait_ghost(self) -> str:
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

        found: str = self.wait(stable, "suggestion")
        return found

    def lines(self) -> list[str]:
        """The lines of the editor in front that are on the screen, without what is suggested."""
        return [line["text"] for line in self._lines()]

    def struck_out(self) -> str:
        """What a next edit takes away."""
        return "".join(line["struck"] for line in self._lines())

    def next_edit(self) -> tuple[int, str] | None:
        """Line, 1-based, and text of what a next edit shows there: a new text or a hint."""
        found = [(line["number"], line["added"]) for line in self._lines() if line["added"]]
        assert len(found) <= 1, found
        return found[0] if found else None

    def signs(self) -> int:
        """How many signs of next edits are beside the lines."""
        signs: int = self.page.evaluate(SIGNS)
        return signs

    def _lines(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate(LINES)
        for line in found:
            for name in ("text", "struck", "added"):
                line[name] = line[name].replace("\u00a0", " ").replace("\u200b", "")
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
        self._choose(title)

    def _choose(self, text: str | re.Pattern[str]) -> None:
        """Press Enter once the entry in front of a list is the one that is meant."""
        self.page.locator(f"{LIST_ROW}.focused", has_text=text).wait_for()
        self.keys("Enter")

    def go_to_line(self, line: int) -> None:
        """Cursor to the start of a line, 1-based."""
        self.keys("Control+g")
        self.page.locator(QUICK_INPUT).fill(f":{line}")
        self._choose(re.compile(rf"go to line {line}\b"))
        self.page.locator(QUICK_INPUT).wait_for(state="hidden")
        self.keys("Home", "Home")
        self._wait_cursor(f"Ln {line}, Col 1")

    def go_to(self, line: int, column: int) -> None:
        """Cursor to a place, 1-based."""
        self.go_to_line(line)
        self.keys(*["ArrowRight"] * (column - 1))
        self.wait_cursor(line, column)

    def cursor(self) -> str:
        """Where the cursor is, as the status bar says it."""
        item = self.page.locator(".statusbar-item", has_text=re.compile(r"^Ln \d+, Col"))
        return str(item.first.inner_text()) if item.count() else ""

    def cursor_line(self) -> int:
        """Line of the cursor, 1-based."""
        found = re.search(r"Ln (\d+)", self.cursor())
        return int(found[1]) if found else 0

    def wait_cursor(self, line: int, column: int) -> None:
        """Until the cursor is somewhere, 1-based."""
        self._wait_cursor(f"Ln {line}, Col {column}")

    def select_lines(self, first: int, last: int) -> None:
        """Select whole lines, 1-based and inclusive."""
        self.go_to_line(first)
        for _ in range(last - first + 1):
            self.keys("Shift+ArrowDown")
        self._wait_cursor("selected")

    def _wait_cursor(self, text: str) -> None:
        """Until the status bar says where the cursor is."""
        self.page.locator(".statusbar-item", has_text=text).first.wait_for()

    def ask_for_edit(self, instruction: str, at_once: bool = False) -> None:
        """Edit the selection by the keybinding; ``at_once`` without looking at the list."""
        self.keys("Control+k", "Control+e")
        self.page.locator(QUICK_INPUT).fill(instruction)
        if at_once:
            self.keys("Enter")
        else:
            self._choose(instruction)

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
        self.page.locator(LIST_ROW, has_text="Show log").wait_for()

    def choose_in_menu(self, entry: str) -> None:
        """Click our status bar item and something it offers."""
        self.open_menu()
        self.page.locator(LIST_ROW, has_text=entry).click()

    def close_editors(self) -> None:
        """Close all editors without saving."""
        self.keys("Escape")
        while self.page.locator(".tab").count():
            self.command("View: Revert and Close Editor")
            self.page.wait_for_timeout(200)

    def saved(self, name: str) -> bytes:
        """Save and read the file's bytes."""
        self.keys("Control+s")
        dirty = self.page.locator(f'.tab.active.dirty[data-resource-name="{name}"]')
        self.wait(lambda: not dirty.count(), "saved file")
        return (self.folder / name).read_bytes()

    def saved_otherwise(self, name: str, before: str) -> str:
        """The file's text once it is another one than before, saved again and again."""
        text: str = self.wait(
            lambda: (now := self.saved(name).decode()) != before and now, "other text"
        )
        return text

    def toast(self, text: str) -> Any:
        """A notification that holds ``text``."""
        return self.page.locator(".notification-toast", has_text=text)

    def picture(self, path: Path) -> None:
        """A screenshot as PNG."""
        self.page.screenshot(path=str(path))

    def picture_of_editor(self, path: Path) -> None:
        """The first lines of the editor in front as PNG."""
        clip = {"x": 352, "y": 36, "width": 680, "height": 250}
        self.page.screenshot(path=str(path), clip=clip)


def lines_on_screen(text: str) -> list[str]:
    """Lines as an editor shows them: no line ends, no blanks behind, no blank lines at the end."""
    return [line.rstrip() for line in text.replace("\r\n", "\n").rstrip().split("\n")]
