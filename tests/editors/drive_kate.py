"""A real Kate on a screen that nobody sees, driven by keys; what it says to the server is noted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import leftovers
from installed import Server
from waiting import wait_for

# Hands on what both sides say, and writes it down.
RELAY = """\
import subprocess, sys, threading

def relay(source, target, note):
    with open(note, "ab", buffering=0) as noted:
        while data := source.read1():
            noted.write(data)
            target.write(data)
            target.flush()
    target.close()

command, said, answered = sys.argv[1:4]
server = subprocess.Popen([command, *sys.argv[4:]], stdin=-1, stdout=-1)
threading.Thread(target=relay, args=(sys.stdin.buffer, server.stdin, said), daemon=True).start()
relay(server.stdout, sys.stdout.buffer, answered)
"""

# As after the first start: no page of welcome, and the server's command once allowed.
SETTINGS = """\
[General]
Show welcome view for new window=false

[Kate Plugins]
lspclientplugin=true

[lspclient]
AllowedServerCommandLines={command} serve
"""


class Kate:
    """One Kate with one file open, with the settings of a page for its language servers."""

    def __init__(self, server: Server, folder: Path, settings: str, file: Path) -> None:
        self._said, self._answered = folder / "said", folder / "answered"
        command = self._relaying_command(server, folder)
        configuration = folder / "configuration"
        (configuration / "kate/lspclient").mkdir(parents=True)
        (configuration / "kate/lspclient/settings.json").write_text(settings, encoding="utf-8")
        katerc = SETTINGS.format(command=command)
        (configuration / "katerc").write_text(katerc, encoding="utf-8")
        runtime = folder / "runtime"
        runtime.mkdir(mode=0o700)
        self._screen, display = self._start_screen()
        self._environment = {
            **os.environ,
            "DISPLAY": display,
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PATH": f"{command.parent}:{os.environ['PATH']}",
            "QT_QPA_PLATFORM": "xcb",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_CONFIG_HOME": str(configuration),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_RUNTIME_DIR": str(runtime),
        }
        with (folder / "kate.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["kate", "--block", "--new", str(file)],
                env=self._environment, stdout=log, stderr=log, cwd=file.parent,
            )  # fmt: skip
        window = wait_for(
            lambda: self._tool("search", "--onlyvisible", "--name", file.name), "Kate"
        )
        self._tool("windowfocus", "--sync", window.split()[0])
        wait_for(lambda: self.answers("initialize"), "started server")

    def _relaying_command(self, server: Server, folder: Path) -> Path:
        relay = folder / "relay.py"
        relay.write_text(RELAY, encoding="utf-8")
        command = folder / "bin/redraft"
        command.parent.mkdir(parents=True)
        words = [sys.executable, relay, server.command, self._said, self._answered]
        quoted = " ".join(f"'{word}'" for word in words)
        command.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        return command

    @staticmethod
    def _start_screen() -> tuple[subprocess.Popen[str], str]:
        """An X server, and the name that it found for itself."""
        screen = subprocess.Popen(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "1200x800x24", "-nolisten", "tcp"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert screen.stdout is not None
        return screen, f":{screen.stdout.readline().strip()}"

    def _tool(self, *words: str) -> str:
        done = subprocess.run(
            ["xdotool", *words], env=self._environment, capture_output=True, text=True, check=False
        )
        return done.stdout

    def keys(self, *keys: str) -> None:
        """Press keys such as ``ctrl+End``."""
        self._tool("key", "--delay", "40", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tool("type", "--delay", "40", text)

    def go_to_line(self, line: int) -> None:
        """Cursor to the start of a line, 1-based."""
        self.keys("ctrl+Home", *["Down"] * (line - 1))

    def answers(self, method: str) -> list[Any]:
        """Results of the requests of a method, of Kate or of the server, in their order."""
        said, answered = messages(self._said), messages(self._answered)
        found = []
        for asking, answering in ((said, answered), (answered, said)):
            asked = [one["id"] for one in asking if one.get("method") == method and "id" in one]
            results = {one["id"]: one.get("result") for one in answering if "method" not in one}
            found += [results[number] for number in asked if number in results]
        return found

    def asked(self, method: str) -> int:
        """How many messages of a method Kate has sent."""
        return sum(one.get("method") == method for one in messages(self._said))

    def save(self) -> None:
        """Write the file."""
        before = self.asked("textDocument/didSave")
        self.keys("ctrl+s")
        wait_for(lambda: self.asked("textDocument/didSave") > before, "saved file", 10)

    def close(self) -> None:
        """End Kate and its screen."""
        leftovers.end([self._process.pid])
        self._process.wait()
        leftovers.end([self._screen.pid])
        self._screen.wait()


def messages(note: Path) -> list[dict[str, Any]]:
    """The whole messages of one side, so far."""
    rest = note.read_bytes() if note.exists() else b""
    found = []
    while True:
        header, separator, rest = rest.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in header.splitlines() if b"ength:" in line), 0
        )
        if not separator or len(rest) < length:
            return found
        found.append(json.loads(rest[:length]))
        rest = rest[length:]
