"""Editors with the recipe that ``redraft setup --editor`` prints: a suggestion is shown, taken and
saved, and no text is lost. What is suggested comes from a stand-in model at a server."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.clients.stand_in import KEY, SUGGESTED, StandIn, recipe
from tests.text_cases import data_beside

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "editors"))

import pyte
from drive_terminal import Terminal

_styled = pyte.Screen.select_graphic_rendition


def _style(screen: pyte.Screen, *values: int, private: bool = False) -> None:
    if not private:  # which pyte does not know
        _styled(screen, *values)


pyte.Screen.select_graphic_rendition = _style

PORT = 8218
TEXT = (
    "def order_total(prices, tax):\n    return sum(prices) * (1 + tax)\n\n\n"
    "def smallest_total(orders, tax):\n    totals = "
)
SETTLED_S, SECONDS, ATTEMPTS = 12, 8, 3
VIM = (
    "set nocompatible noswapfile hidden completeopt=menuone,noinsert,noselect\nfiletype plugin on\n"
)


@dataclass(frozen=True, slots=True)
class Editor:
    """recipe: its name for ``--editor``; file: where that goes, below the home folder; program:
    below the folder of clients, or on PATH; typed, asked and taken: the keys before a suggestion,
    for it, and that take it; plugins: owners and names."""

    recipe: str
    file: str
    program: str
    arguments: Sequence[str] = ()
    plugins: Sequence[str] = ()
    before: str = ""
    more: Sequence[tuple[str, str]] = ()
    """Further files below the home folder, and what is in them."""
    to_end: str = "GA"
    typed: str = "[o"
    asked: str = ""
    taken: str = "\x0e\x19"
    saved: str = "\x1b:w\r"


EDITORS = {name: Editor(**fields) for name, fields in data_beside(__file__).items()}


def _start_file(editor: Editor, sources: Path, url: str) -> str:
    """Return what the editor's file holds: the recipe behind its plug-ins."""
    printed = recipe(editor.recipe, url)
    folders = [sources / name.replace("/", "+") for name in editor.plugins]
    if editor.file.endswith(".lua"):
        added = "vim.opt.rtp:prepend('{0}') vim.opt.rtp:append('{0}/after')\n"
        paths = "".join(added.format(path) for path in folders)
        return f"vim.opt.swapfile = false\n{paths}{printed}\n"
    if editor.file.endswith("vimrc"):
        return VIM + "".join(f"set rtp^={path}\n" for path in folders) + printed + "\n"
    if editor.file.endswith(".el"):
        folders += [sources.parent / "editors/emacs/usr/share/emacs/site-lisp/elpa-src"]
        below = '(let ((default-directory "{0}/")) (push "{0}" load-path)'
        below += " (normal-top-level-add-subdirs-to-load-path))\n"
        paths = "".join(below.format(path) for path in reversed(folders))
        return f"{paths}{editor.before}{printed}\n"
    return f"{editor.before}{printed}\n"


def home_of(work: Path, url: str = "") -> dict[str, str]:
    """Return the environment of a new user who has ``redraft`` on PATH, and a server at ``url``."""
    home, programs = work / "home", work / "home" / ".local" / "bin"
    programs.mkdir(parents=True)
    for name, options in (("redraft", '"$@"'), ("redraft-copilot", "--stdio")):
        script = programs / name
        script.write_text(f"#!/bin/sh\nexec {sys.executable} -m lsp_server {options}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    root = str(Path(__file__).resolve().parents[2])
    own = {"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": root}
    own |= {"REDRAFT_SERVER_URL": url, "REDRAFT_SERVER_KEY": KEY} if url else {}
    own |= {"REDRAFT_IDLE_EXIT_S": "5", "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": str(home)}
    return {**kept, **own}


def missing_of(name: str, clients: Path) -> str:
    """Return what is not in the folder ``clients`` of an editor; empty if all is."""
    editor = EDITORS[name]
    program = clients / editor.program if "/" in editor.program else shutil.which(editor.program)
    missing = [p for p in editor.plugins if not (clients / "src" / p.replace("/", "+")).is_dir()]
    return ", ".join(missing) or ("" if program and Path(program).exists() else editor.program)


def started(
    name: str, clients: Path, environment: dict[str, str], file: Path
) -> tuple[str, Terminal]:
    """Return the version of an editor and it with ``file``, started in a home of ``home_of``."""
    editor, home = EDITORS[name], Path(environment["HOME"])
    program = str(clients / editor.program) if "/" in editor.program else editor.program
    runtime = str(clients / "editors/helix/usr/lib/hx/runtime")
    environment = {**environment, "HELIX_RUNTIME": runtime}
    url = environment.get("REDRAFT_SERVER_URL", "")
    texts = {
        editor.file: _start_file(editor, clients / "src", url),
        ".config/helix/config.toml": "[editor]\nauto-pairs = false\n",
        **dict(editor.more),
    }
    for path, text in texts.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text.replace("SOURCES", str(clients / "src")))
    if name == "micro":
        (home / ".config/micro/plug").mkdir()
        (home / ".config/micro/plug/lsp").symlink_to(clients / "src" / "AndCake+micro-plugin-lsp")
    arguments = [each.replace("HOME", str(home)) for each in editor.arguments]
    version = subprocess.run(
        [program, "--version"], env=environment, capture_output=True, text=True, check=False
    ).stdout.splitlines()[:1]
    return "".join(version), Terminal([program, *arguments, file.name], environment, file.parent)


def stop(environment: dict[str, str]) -> None:
    """End the daemon of a home."""
    command = [sys.executable, "-m", "lsp_server", "stop"]
    subprocess.run(command, env=environment, capture_output=True, check=False)


def drive(name: str, clients: Path, work: Path) -> tuple[str, str]:
    """Return the version and the verdict of an editor of the folder ``clients``."""
    if missing := missing_of(name, clients):
        return "", f"not installed: {missing}"
    folder = work / "project"
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    file = folder / "orders.py"
    file.write_text(TEXT)
    stand_in = StandIn(folder, PORT)
    environment = home_of(work, stand_in.url)
    version, terminal = started(name, clients, environment, file)
    try:
        return version, _taken(terminal, EDITORS[name], file)
    finally:
        terminal.close()
        stop(environment)
        stand_in.end()


def _taken(terminal: Terminal, editor: Editor, file: Path) -> str:
    """Return what became of the text once a suggestion was asked for and taken."""
    terminal.rest(SETTLED_S)
    terminal.type(editor.to_end)
    terminal.rest(0.5)

    def is_shown_now() -> bool:
        return SUGGESTED[1:12] in terminal.text.split("totals =")[-1]

    for attempt in range(ATTEMPTS):
        # A person who sees nothing deletes what was typed and types it again.
        terminal.type("\x7f" * len(editor.typed) if attempt else "")
        if attempt and editor.saved.startswith("\x1b"):
            terminal.type("\x1b" + editor.to_end)
        terminal.type(editor.typed + editor.asked)
        end = time.monotonic() + SECONDS
        while not is_shown_now() and time.monotonic() < end:
            terminal.read(0.1)
        if is_shown := is_shown_now():
            break
        if os.environ.get("REDRAFT_CLIENTS_SHOW"):
            print(terminal.text, flush=True)
    terminal.rest(0.7)
    terminal.type(editor.taken)
    terminal.rest(0.7)
    terminal.type(editor.saved)
    terminal.rest(1.5)
    text = file.read_text()
    if not text.startswith(TEXT.rstrip()):
        return f"LOSES TEXT: {text[-60:]!r}"
    if f"totals = [{SUGGESTED}" not in text:
        return f"no: {'shown, not taken' if is_shown else 'nothing shown'}: {text[-50:]!r}"
    return "yes: shown, taken, saved"
