"""Asks the running daemon for something other than LSP. Standard library only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lsp_server.editor.daemon.address import socket_path
from lsp_server.editor.daemon.front import connect
from lsp_server.shared.errors import RedraftError
from operating_system.file_lock import LockFile
from operating_system.folders import runtime_folders

STOP_S = 30.0


def ask_daemon(command: str, path: Path | None = None) -> dict[str, Any] | None:
    """Return the daemon's answer to ``status``, ``stop`` or ``models``, which tells it that others
    were chosen; None when no daemon runs at ``path``, by default that of this build."""
    connection = connect(path or socket_path(make=False), {"command": command}, start=False)
    if connection is None:
        return None
    with connection:
        data = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    answer: dict[str, Any] = json.loads(data or b"{}")
    return answer


def running_daemons() -> dict[Path, dict[str, Any]]:
    """Return the status of every daemon of this user, those of other builds too, by its address;
    empty of one that does not answer."""
    locks = [path for folder in runtime_folders() for path in sorted(folder.glob("*.lock"))]
    sockets = [path.with_suffix(".sock") for path in locks if _is_held(path, 0.0)]
    return {path: ask_daemon("status", path) or {} for path in sockets}


def stop_daemon(path: Path) -> None:
    """End a daemon and wait until it and what it started are gone. Raises RedraftError."""
    answer = ask_daemon("stop", path) or {}
    # It lets its lock go last.
    if _is_held(path.with_suffix(".lock"), STOP_S):
        process = f", process {answer['stopped']}," if answer else ""
        raise RedraftError(f"the daemon at {path}{process} does not end; end it and try again")


def _is_held(path: Path, wait_s: float) -> bool:
    """Return if a process holds a lock for ``wait_s`` seconds."""
    lock = LockFile(path)
    if not lock.acquire(wait_s):
        return True
    lock.release()
    return False
