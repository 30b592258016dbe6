"""Locations of our files on each system. Standard library only: platformdirs is imported where it
is needed, and ``redraft serve`` needs none of it."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from operating_system.system import is_linux, is_macos, is_windows

NAME = "redraft"
MAX_SOCKET_PATH = 100
"""Bytes: Linux takes 107, macOS 103."""
LONGEST_NAME = "0123456789abcdef.sock"


def cache_folder() -> Path:
    """Return the folder of files that can be made or fetched again."""
    if (folder := _given("XDG_CACHE_HOME")) is not None:
        return folder
    if is_windows():
        local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        return Path(local) / NAME / "Cache"
    return base_folder("XDG_CACHE_HOME") / NAME


def data_folder() -> Path:
    """Indexes and what was learnt."""
    import platformdirs

    return _given("XDG_DATA_HOME") or platformdirs.user_data_path(NAME, appauthor=False)


def state_folder() -> Path:
    """Answers that the user gave, counts of accepted suggestions."""
    import platformdirs

    return _given("XDG_STATE_HOME") or platformdirs.user_state_path(NAME, appauthor=False)


def config_folder() -> Path:
    """Return the folder of the user's choices."""
    import platformdirs

    return _given("XDG_CONFIG_HOME") or platformdirs.user_config_path(NAME, appauthor=False)


def _given(variable: str) -> Path | None:
    """Our folder below the one that the environment names, on every system. A relative one is
    passed over, as the XDG Base Directory Specification says."""
    value = os.environ.get(variable, "")
    return Path(value) / NAME if os.path.isabs(value) else None


def log_folder() -> Path:
    """Return the folder of our processes' logs."""
    folder = os.environ.get("REDRAFT_LOG_DIR")
    return Path(folder) if folder else usual_log_folder()


def usual_log_folder() -> Path:
    """Return the folder of logs unless the user chose another one."""
    import platformdirs

    if is_windows() and (folder := _given("XDG_STATE_HOME")) is not None:
        return folder / "log"
    return platformdirs.user_log_path(NAME, appauthor=False)


def spare_folder() -> Path:
    """Return the folder to use, on systems with numbered users, if nothing can be written below the
    home."""
    return Path(tempfile.gettempdir()) / f"redraft-home-{os.getuid()}"


def base_folder(variable: str) -> Path:
    """Return the folder that an unset ``XDG_…_HOME`` stands for on Linux and macOS."""
    below, on_macos = _BASES[variable]
    return Path(os.path.expanduser("~"), on_macos if is_macos() else below)


_BASES = {
    "XDG_CACHE_HOME": (".cache", "Library/Caches"),
    "XDG_DATA_HOME": (".local/share", "Library/Application Support"),
    "XDG_STATE_HOME": (".local/state", "Library/Application Support"),
}


def runtime_folder() -> Path:
    """For locks and sockets: below where the system has such files, or the cache; where that has
    too long a path for a socket, among the temporary files. It need not be there."""
    folder = _given("XDG_RUNTIME_DIR") or cache_folder() / "run"
    if len(os.fsencode(folder / LONGEST_NAME)) > MAX_SOCKET_PATH and not is_windows():
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"redraft-{os.getuid()}-{name}"
    return folder


def runtime_folders() -> list[Path]:
    """Return the folders that this user's daemons may have their sockets in: one that was started
    elsewhere had, or lacked, another ``XDG_RUNTIME_DIR``."""
    folders = [runtime_folder(), cache_folder() / "run"]
    if is_linux() and not os.environ.get("XDG_RUNTIME_DIR"):
        folders.append(Path("/run/user", str(os.getuid()), NAME))
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]
