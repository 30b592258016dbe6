"""The way from fronts to the daemon: a Unix socket, or without those, loopback with a token.

Standard library only. The path of the socket is the address in both cases: on loopback it is a
file, private to the user, that holds the port and a secret.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from pathlib import Path
from typing import NamedTuple

from operating_system.files import replace_file
from operating_system.system import is_windows


class Dialled(NamedTuple):
    """A connection, and the secret that the daemon expects to hear first."""

    connection: socket.socket
    token: str


def uses_loopback() -> bool:
    """Return if this is Windows, whose Python has no Unix sockets, or the user asks for none."""
    return is_windows() or os.environ.get("REDRAFT_LOOPBACK") == "1"


def dial(path: Path) -> Dialled | None:
    """Return a connection to the process that listens; None without one."""
    try:
        if not uses_loopback():
            return Dialled(_connected(socket.socket(socket.AF_UNIX), str(path)), "")
        contents = json.loads(path.read_text("utf-8"))
        address = ("127.0.0.1", int(contents["port"]))
        return Dialled(_connected(socket.socket(socket.AF_INET), address), str(contents["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _connected(connection: socket.socket, address: str | tuple[str, int]) -> socket.socket:
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def listen(path: Path) -> Dialled:
    """Take the address; what was there is removed. The caller holds the daemon's lock."""
    if uses_loopback():
        return _listen_on_loopback(path)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    previous = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(previous)
    return _listening(listener, "")


def _listen_on_loopback(path: Path) -> Dialled:
    listener = socket.socket(socket.AF_INET)
    listener.bind(("127.0.0.1", 0))
    token = secrets.token_hex(32)
    listening = _listening(listener, token)
    # Never readable half-written, never by others: made beside it with its mode.
    unfinished = path.with_suffix(".new")
    with contextlib.suppress(FileNotFoundError):
        unfinished.unlink()
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump({"port": listener.getsockname()[1], "token": token}, file)
    replace_file(unfinished, path)
    return listening


def _listening(listener: socket.socket, token: str) -> Dialled:
    listener.listen(128)
    listener.setblocking(False)
    return Dialled(listener, token)
