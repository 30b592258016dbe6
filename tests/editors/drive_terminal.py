"""A terminal for editors that live in one: a pseudo-terminal, its screen, and a recording of it."""

from __future__ import annotations

import fcntl
import html
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from waiting import PATIENCE, wait_for

COLUMNS, ROWS = 100, 28


class Terminal:
    """Runs a command on a pseudo-terminal and keeps what its screen shows."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], folder: Path) -> None:
        import pyte

        self.screen: Any = pyte.Screen(COLUMNS, ROWS)
        # pyte 0.8 fails on the private form of this question, and nobody waits for its answer.
        self.screen.report_device_status = lambda *_, **__: None
        self._stream: Any = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        # Some editors open /dev/tty instead of what they were given.
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *command], stdin=slave, stdout=slave, stderr=slave, cwd=folder,
            env={**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        )  # fmt: skip
        os.close(slave)
        self._started = time.monotonic()
        self.output: list[tuple[float, bytes]] = []

    def rest(self, seconds: float) -> None:
        """Take in everything that the command writes for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)

    def read(self, seconds: float = 0.05) -> None:
        """Take in what the command has written, waiting at most so long for something."""
        while select.select([self._master], [], [], seconds)[0]:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                return
            if not data:
                return
            self.output.append((time.monotonic() - self._started, data))
            self._stream.feed(data)
            seconds = 0.0

    def keys(self, keys: str) -> None:
        """Type characters; escapes such as ``\\x1b`` are keys too."""
        os.write(self._master, keys.encode())
        self.read()

    def type(self, text: str, delay_s: float = 0.04) -> None:
        """Type as a person does."""
        for character in text:
            self.keys(character)
            self.rest(delay_s)

    @property
    def text(self) -> str:
        """The screen's text."""
        self.read(0.0)
        return "\n".join(self.screen.display)

    def soon(self, probe: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Whether something comes true before a user would press the keys again."""
        end = time.monotonic() + seconds * PATIENCE
        while not probe() and time.monotonic() < end:
            self.read(0.05)
        return probe()

    def wait_text(self, wanted: str, timeout_s: float = 60.0) -> None:
        """Until the screen shows a text."""

        def shown() -> bool:
            self.read(0.05)
            return wanted in self.text

        self.wait(shown, f"{wanted!r} on the screen", timeout_s)

    def wait(self, probe: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
        """As ``wait_for``; a failure shows the screen."""
        try:
            wait_for(probe, what, timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n{self.text}") from None

    def close(self) -> None:
        """End the command."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
        os.close(self._master)


def save_recording(terminal: Terminal, path: Path, longest_pause_s: float = 1.5) -> None:
    """What happened on a terminal as an asciicast (version 2), with long pauses cut."""
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "env": {"TERM": "xterm-256color"}}
    lines = [json.dumps(header)]
    shown, last = 0.0, 0.0
    for moment, data in terminal.output:
        shown += min(moment - last, longest_pause_s)
        last = moment
        lines.append(json.dumps([round(shown, 3), "o", data.decode("utf-8", "replace")]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


FONT = 'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14"'
CELL_WIDTH, CELL_HEIGHT = 8.43, 18
DEFAULT_COLOURS = {"fg": "#d8dee9", "bg": "#1c2530"}
NAMED_COLOURS = {
    "black": "#3b4252", "red": "#e07a86", "green": "#a3be8c", "brown": "#ebcb8b",
    "blue": "#88b0e0", "magenta": "#c79fd8", "cyan": "#8fd0d8", "white": "#e5e9f0",
    "brightblack": "#7b8794", "brightred": "#e07a86", "brightgreen": "#a3be8c",
    "brightbrown": "#ebcb8b", "brightblue": "#88b0e0", "brightmagenta": "#c79fd8",
    "brightcyan": "#8fd0d8", "brightwhite": "#ffffff",
}  # fmt: skip


def save_animation(cast: Path, path: Path, frames: int = 60, rows: int = ROWS) -> None:
    """The first rows of a recording as an animated SVG, which a page shows without a player."""
    import pyte

    header, *events = map(json.loads, cast.read_text(encoding="utf-8").splitlines())
    screen: Any = pyte.Screen(header["width"], header["height"])
    screen.report_device_status = lambda *_, **__: None
    stream = pyte.Stream(screen)
    length = events[-1][0] + 2.0
    pictures: list[tuple[float, str]] = []
    for moment, _, data in events:
        stream.feed(data)
        drawn = _drawn(screen, rows)
        if pictures and moment - pictures[-1][0] < length / frames:
            pictures[-1] = (pictures[-1][0], drawn)
        elif not pictures or pictures[-1][1] != drawn:
            pictures.append((moment, drawn))
    parts = _frame(header["width"], rows)
    for index, (moment, drawn) in enumerate(pictures):
        start = 0.0 if index == 0 else moment / length
        end = pictures[index + 1][0] / length if index + 1 < len(pictures) else 1.0
        times = f"0;{start:.4f};{end:.4f};1" if start else f"0;0;{end:.4f};1"
        values = "hidden;visible;hidden;hidden" if end < 1 else "hidden;visible;visible;visible"
        parts.append(
            f'<g transform="translate(8 20)" visibility="hidden">'
            f'<animate attributeName="visibility" '
            f'values="{values}" keyTimes="{times}" dur="{length:.1f}s" calcMode="discrete" '
            f'repeatCount="indefinite"/>{drawn}</g>'
        )
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


def save_picture(terminal: Terminal, path: Path, rows: int) -> None:
    """The first rows of a terminal as an SVG."""
    drawn = f'<g transform="translate(8 20)">{_drawn(terminal.screen, rows)}</g>'
    parts = [*_frame(terminal.screen.columns, rows), drawn, "</svg>"]
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")


def _frame(columns: int, rows: int) -> list[str]:
    """The beginning of an SVG with so many cells."""
    width, height = int(columns * CELL_WIDTH) + 16, rows * CELL_HEIGHT + 16
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>',
        f'<rect width="{width}" height="{height}" rx="8" fill="{DEFAULT_COLOURS["bg"]}"/>',
    ]


def _drawn(screen: Any, rows: int | None = None) -> str:
    """A screen, or its first rows, as SVG text: one piece for each run of cells of one style."""
    pieces = []
    for row in range(rows or screen.lines):
        cells = [screen.buffer[row][column] for column in range(screen.columns)]
        start = 0
        while start < len(cells):
            style = _style(cells[start])
            end = start
            while end < len(cells) and _style(cells[end]) == style:
                end += 1
            text = "".join(cell.data for cell in cells[start:end])
            foreground, background = style
            x, y = start * CELL_WIDTH, row * CELL_HEIGHT
            if background != DEFAULT_COLOURS["bg"]:
                pieces.append(
                    f'<rect x="{x:.1f}" y="{y - 14}" width="{(end - start) * CELL_WIDTH:.1f}" '
                    f'height="{CELL_HEIGHT}" fill="{background}"/>'
                )
            if text.strip():
                stripped = text.rstrip()
                pieces.append(
                    f'<text x="{x:.1f}" y="{y}" fill="{foreground}" xml:space="preserve" '
                    f'textLength="{len(stripped) * CELL_WIDTH:.1f}">{html.escape(stripped)}</text>'
                )
            start = end
    cursor = screen.cursor
    pieces.append(
        f'<rect x="{cursor.x * CELL_WIDTH:.1f}" y="{cursor.y * CELL_HEIGHT - 14}" width="2" '
        f'height="{CELL_HEIGHT}" fill="#ffffff"/>'
    )
    return "".join(pieces)


def _style(cell: Any) -> tuple[str, str]:
    foreground, background = _colour(cell.fg, "fg"), _colour(cell.bg, "bg")
    return (background, foreground) if cell.reverse else (foreground, background)


def _colour(name: str, side: str) -> str:
    if name == "default":
        return DEFAULT_COLOURS[side]
    return NAMED_COLOURS.get(name) or f"#{name}"
