"""Names every folder outside of its installation that Redraft writes to, for its removal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from operating_system.folders import (
    cache_folder,
    config_folder,
    data_folder,
    spare_folder,
    state_folder,
    usual_log_folder,
)
from operating_system.system import is_windows

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
