"""``redraft uninstall``: removes everything that Redraft keeps outside of its installation."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from lsp_server.commands.cli.progress import typed_answer
from lsp_server.editor.daemon.control import running_daemons, stop_daemon
from lsp_server.models.fetched import fetched_models, models_folder, was_changed
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.printable import say
from operating_system.folders import (
    cache_folder,
    config_folder,
    data_folder,
    runtime_folders,
    spare_folder,
    state_folder,
    usual_log_folder,
)
from operating_system.system import is_windows

ADDRESSES = "addresses of the daemon"
BOOKKEEPING = ("fetched.json", "unfinished")

CACHES, SETTINGS, INDEXES, LOGS = "caches and measurements", "settings", "indexes", "logs"
MODELS = "models"
_KINDS = {
    "models": MODELS,
    "workspaces": INDEXES,
    "common": INDEXES,
    "kv": "prompts of documents, as computed",
    "packed": "weights of models, as computed",
    "compiled": "compiled code",
    "machine-code": "compiled code",
    "repositories": "copies of workspaces, of a team's server",
    "run": "addresses of the daemon",
}
"""What a user calls an entry of our folders; any other is of its folder's kind."""

_LOGS = ("daemon", "engine", "indexer", "watching", "children", "http-server", "mcp")


@dataclass(frozen=True, slots=True)
class Removable:
    """A file or folder that is removed: what it is, and its size in bytes."""

    kind: str
    path: Path
    nbytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="remove it without a question")
    parser.add_argument(
        "--dry-run", action="store_true", help="list what would be removed, and remove nothing"
    )
    parser.add_argument(
        "--keep-models", action="store_true", help="leave the models that were fetched"
    )


def run(args: argparse.Namespace) -> int:
    """List, ask, remove; 1 where something could not be removed. Raises RedraftError."""
    daemons = running_daemons()
    folders = _folders()
    entries = _entries(folders, args.keep_models)
    remaining = _left_alone(args.keep_models)
    _show(entries, remaining, daemons)
    question = "Remove all of this? [y/N] ", "Give --yes to agree"
    is_agreed = args.yes or not (entries or daemons)
    if not args.dry_run and (is_agreed or typed_answer(*question).lower() in ("y", "yes")):
        for path in daemons:
            stop_daemon(path)
        # The daemon wrote some more before it ended.
        return _remove(_folders(), args.keep_models)
    return 0


def _folders() -> list[OwnFolder]:
    ours = own_folders()
    own_paths = {folder.path for folder in ours}
    sockets = [
        OwnFolder(folder, ADDRESSES) for folder in runtime_folders() if folder not in own_paths
    ]
    return [*sockets, *ours]


def _entries(folders: list[OwnFolder], keep_models: bool) -> list[Removable]:
    """Return all that is to be removed."""
    entries = []
    for kind, path in own_entries(folders):
        if path != models_folder():
            entries.append(Removable(kind, path, _size(path)))
        elif not keep_models:
            entries += [Removable(MODELS, file, _size(file)) for file in _fetched()]
    return entries


def _fetched() -> Iterator[Path]:
    """Return our files in the folder of models: unchanged fetched ones, and notes on them."""
    fetched, folder = fetched_models(), models_folder()
    for path in sorted(folder.iterdir()):
        lock = path.name.startswith(".") and path.suffix == ".lock"
        if (path.name in fetched and not was_changed(path)) or path.name in BOOKKEEPING or lock:
            yield path


def _left_alone(keep_models: bool) -> list[str]:
    """Return the files that stay, each with the reason."""
    folder = models_folder()
    if not folder.is_dir():
        return []
    if keep_models:
        return [f"{_shown(folder)}, as you wish"]
    ours, fetched = set(_fetched()), fetched_models()
    return [
        f"{_shown(path)}: "
        + ("changed since it was fetched" if path.name in fetched else "not fetched by Redraft")
        for path in sorted(folder.iterdir())
        if path not in ours
    ]


def _size(path: Path) -> int:
    """Return bytes of a file, or of all files in a folder; links count as themselves."""
    files = [path]
    if path.is_dir() and not path.is_symlink():
        files = [Path(parent, name) for parent, _, names in os.walk(path) for name in names]
    nbytes = 0
    for file in files:
        with contextlib.suppress(OSError):  # it may go while it is counted
            nbytes += file.lstat().st_size
    return nbytes


def _show(
    entries: Sequence[Removable], remaining: Sequence[str], daemons: dict[Path, dict[str, Any]]
) -> None:
    for status in daemons.values():
        clients = status.get("clients", 0)
        windows = f", {clients} editor window(s) use it" if clients else ""
        process = f"process {status['pid']}" if status else "it does not answer"
        say(f"The daemon runs ({process}{windows}) and is stopped first.")
        if windows:
            say("Close those editors, or switch Redraft off there: they would start it again.")
    if not entries:
        say("Redraft keeps nothing on this machine.")
    for kind in dict.fromkeys(entry.kind for entry in entries):
        own = [entry for entry in entries if entry.kind == kind]
        say(f"{_size_of(own):>10}  {kind}: {_places(own)}")
    if entries:
        say(f"{_size_of(entries):>10}  in all")
    for line in remaining:
        say(f"Left alone: {line}")
    say("Left alone: the program itself. Remove the editor's extension or plugin, or run "
          "`pip uninstall redraft`, afterwards.")  # fmt: skip


def _size_of(entries: Sequence[Removable]) -> str:
    return decimal(sum(entry.nbytes for entry in entries))


def _places(entries: Sequence[Removable]) -> str:
    """Return the entries by their folder."""
    names: dict[Path, list[str]] = {}
    for entry in entries:
        names.setdefault(entry.path.parent, []).append(entry.path.name)
    return "; ".join(f"{_shown(folder)} ({', '.join(names[folder])})" for folder in names)


def _shown(path: Path) -> str:
    try:
        return str("~" / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)


def _remove(folders: list[OwnFolder], keep_models: bool) -> int:
    failed = []
    entries = _entries(folders, keep_models)
    for entry in entries:
        try:
            if entry.path.is_dir() and not entry.path.is_symlink():
                shutil.rmtree(entry.path)
            else:
                entry.path.unlink(missing_ok=True)
        except OSError as error:
            failed.append(f"{error.filename or entry.path} ({error.strerror})")
    remove_empty([OwnFolder(models_folder(), MODELS), *folders])
    if failed:
        raise RedraftError(f"could not be removed: {'; '.join(failed)}; remove it yourself")
    if entries:
        say(f"Removed {_size_of(entries)}.")
    return 0


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """A folder of ours, or one that the user named, where only what fits ``names`` is ours."""

    path: Path
    kind: str
    names: tuple[str, ...] = ("*",)


def own_folders() -> list[OwnFolder]:
    """Return those that there are, the deepest first. A folder stands for itself, not for those of
    the list that lie in it."""
    ours = {
        config_folder(): SETTINGS,
        state_folder(): SETTINGS,
        data_folder(): CACHES,
        cache_folder(): CACHES,
        usual_log_folder(): LOGS,
    }
    if not is_windows():
        # Where settle() goes to if the home cannot be written to.
        spare = spare_folder()
        ours |= dict.fromkeys((spare, spare / "cache", spare / "data", spare / "state"), CACHES)
    folders = [*_named(), *(OwnFolder(path, kind) for path, kind in ours.items())]
    existing = {folder.path: folder for folder in folders if folder.path.is_dir()}
    return sorted(existing.values(), key=lambda folder: -len(folder.path.parts))


def _named() -> Iterator[OwnFolder]:
    if data := os.environ.get("REDRAFT_DATA"):
        yield OwnFolder(Path(data), INDEXES, ("workspaces", "common"))
    if logs := os.environ.get("REDRAFT_LOG_DIR"):
        yield OwnFolder(Path(logs), LOGS, tuple(f"{name}.log*" for name in _LOGS))


def own_entries(folders: list[OwnFolder]) -> Iterator[tuple[str, Path]]:
    """Return the entries directly in our folders, each with its kind."""
    holding = {path for folder in folders for path in (folder.path, *folder.path.parents)}
    for folder in folders:
        for entry in sorted(folder.path.iterdir()):
            ours = any(fnmatch(entry.name, name) for name in folder.names)
            if ours and entry not in holding:
                yield _KINDS.get(entry.name, folder.kind), entry


def remove_empty(folders: list[OwnFolder]) -> None:
    """Remove those of our folders in which nothing is left, and links to them."""
    for folder in folders:
        with contextlib.suppress(OSError):
            if not any(folder.path.iterdir()):
                folder.path.unlink() if folder.path.is_symlink() else folder.path.rmdir()
