"""Editors with the recipe that ``redraft setup --editor`` prints: a suggestion is shown, taken and
saved, and no text is lost. What is suggested comes from a stand-in model at a server."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lsp_server.commands.cli.editor_snippets import all_snippets
from tests.clients.stand_in import KEY, SUGGESTED, StandIn

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
QUIET = (
    "(setq inhibit-startup-screen t make-backup-files nil auto-save-default nil"
    " create-lockfiles nil)\n"
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
    to_end: str = "GA"
    typed: str = "[o"
    asked: str = ""
    taken: str = "\x0e\x19"
    saved: str = "\x1b:w\r"


NVIM = ".config/nvim/init.lua"
EDITORS = {
    "Neovim": Editor("neovim", NVIM, "editors/nvim/nvim", taken="\t"),
    "Neovim's menu": Editor("nvim-menu", NVIM, "editors/nvim/nvim"),
    "nvim-cmp": Editor(
        "nvim-cmp",
        NVIM,
        "editors/nvim/nvim",
        plugins=("hrsh7th/nvim-cmp", "hrsh7th/cmp-nvim-lsp"),
        taken="\x0e\r",
    ),
    "blink.cmp": Editor("blink", NVIM, "editors/nvim/nvim", plugins=("Saghen/blink.cmp",)),
    "copilot.lua": Editor(
        "copilot.lua", NVIM, "editors/nvim/nvim", plugins=("zbirenbaum/copilot.lua",), taken="\t"
    ),
    "vim-lsp": Editor(
        "vim-lsp", ".vimrc", "vim", plugins=("prabirshrestha/vim-lsp",), asked="\x18\x0f"
    ),
    "vim-lsp, asyncomplete": Editor(
        "vim-lsp",
        ".vimrc",
        "vim",
        plugins=(
            "prabirshrestha/vim-lsp",
            "prabirshrestha/asyncomplete.vim",
            "prabirshrestha/asyncomplete-lsp.vim",
        ),
    ),
    "yegappan/lsp": Editor("vim", ".vimrc", "vim", plugins=("yegappan/lsp",)),
    "Helix": Editor(
        "helix",
        ".config/helix/languages.toml",
        "editors/helix/binary",
        to_end="geA",
        typed="[",
        asked="\x18",
        taken="\t\r",
    ),
    "Emacs, eglot": Editor(
        "eglot",
        ".emacs.d/init.el",
        "editors/emacs/emacs",
        arguments=("-nw", "-Q", "-l", "HOME/.emacs.d/init.el"),
        before=QUIET,
        to_end="\x1b>",
        typed="[",
        asked="\x1b\t",
        taken="",
        saved="\x18\x13",
    ),
}


def _start_file(editor: Editor, sources: Path) -> str:
    """Return what the editor's file holds: the recipe behind its plug-ins."""
    (snippet,) = (each for each in all_snippets() if editor.recipe in each.names)
    folders = [sources / name.replace("/", "+") for name in editor.plugins]
    if editor.file.endswith(".lua"):
        added = "vim.opt.rtp:prepend('{0}') vim.opt.rtp:append('{0}/after')\n"
        paths = "".join(added.format(path) for path in folders)
        return f"vim.opt.swapfile = false\n{paths}{snippet.text}\n"
    if editor.file.endswith("vimrc"):
        return VIM + "".join(f"set rtp^={path}\n" for path in folders) + snippet.text + "\n"
    return f"{editor.before}{snippet.text}\n"


def _home(work: Path, url: str) -> dict[str, str]:
    """Return the environment of a new user who has ``redraft`` on PATH, and a server."""
    home, programs = work / "home", work / "home" / ".local" / "bin"
    programs.mkdir(parents=True)
    for name, options in (("redraft", '"$@"'), ("redraft-copilot", "--stdio")):
        script = programs / name
        script.write_text(f"#!/bin/sh\nexec {sys.executable} -m lsp_server {options}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    root = str(Path(__file__).resolve().parents[2])
    own = {"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": root}
    own |= {"REDRAFT_SERVER_URL": url, "REDRAFT_SERVER_KEY": KEY, "REDRAFT_IDLE_EXIT_S": "5"}
    return {**kept, **own, "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": str(home)}


def drive(name: str, clients: Path, work: Path) -> tuple[str, str]:
    """Return the version and the verdict of an editor of the folder ``clients``."""
    editor = EDITORS[name]
    found = clients / editor.program if "/" in editor.program else shutil.which(editor.program)
    missing = [p for p in editor.plugins if not (clients / "src" / p.replace("/", "+")).is_dir()]
    if found is None or not Path(found).exists() or missing:
        return "", f"not installed: {', '.join(missing) or editor.program}"
    shutil.rmtree(work, ignore_errors=True)
    folder = work / "project"
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    file = folder / "orders.py"
    file.write_text(TEXT)
    stand_in = StandIn(folder, PORT)
    environment = _home(work, stand_in.url)
    environment["HELIX_RUNTIME"] = str(clients / "editors/helix/usr/lib/hx/runtime")
    answers = work / "home/.local/state/redraft/shared-workspaces.json"
    answers.parent.mkdir(parents=True)
    answers.write_text(json.dumps({stand_in.url: {str(folder.resolve()): "no"}}))
    start = work / "home" / editor.file
    start.parent.mkdir(parents=True, exist_ok=True)
    start.write_text(_start_file(editor, clients / "src"))
    (work / "home/.config/helix").mkdir(parents=True, exist_ok=True)
    (work / "home/.config/helix/config.toml").write_text("[editor]\nauto-pairs = false\n")
    arguments = [each.replace("HOME", environment["HOME"]) for each in editor.arguments]
    version = subprocess.run(
        [str(found), "--version"], env=environment, capture_output=True, text=True, check=False
    ).stdout.splitlines()[:1]
    terminal = Terminal([str(found), *arguments, "orders.py"], environment, folder)
    try:
        return "".join(version), _taken(terminal, editor, file)
    finally:
        (work / "screen.txt").write_text(terminal.text)
        terminal.close()
        stop = [sys.executable, "-m", "lsp_server", "stop"]
        subprocess.run(stop, env=environment, capture_output=True, check=False)
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
