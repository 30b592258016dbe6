"""The daemon's address: a private socket, named after the build. Standard library only.

A front finds only a daemon that runs the very same code: the name holds a hash of it, so an old
daemon is never spoken to by a new front (gopls does the same).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from lsp_server.errors import UnsafeSocketFolder

MAX_SOCKET_PATH = 100
"""Linux takes 107 bytes, macOS 103."""

_PACKAGES = ("lsp_server", "accel", "repo_index")
_SURROUNDINGS = ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "REDRAFT_LOG_DIR")


def build_id() -> str:
    """Hash of the code (name, size and time of every file), the interpreter and the user's folders.

    Raises nothing: files that vanish while they are looked at count as absent.
    """
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256(sys.executable.encode())
    for name in _SURROUNDINGS:
        digest.update(f"{name}={os.environ.get(name, '')}".encode())
    for package in _PACKAGES:
        for line in sorted(_file_lines(str(root / package))):
            digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def _file_lines(folder: str) -> list[str]:
    lines: list[str] = []
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return lines
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in ("__pycache__", "training", "bench"):
                lines += _file_lines(entry.path)
        elif entry.name.endswith((".py", ".json", ".safetensors")):
            try:
                status = entry.stat()
            except OSError:
                continue
            lines.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    return lines


def runtime_folder() -> Path:
    """The folder of sockets and locks, made if needed: ours alone.

    Raises UnsafeSocketFolder when it is a link, belongs to somebody else or others may write to it.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "redraft" if runtime else _in_cache()
    if len(os.fsencode(folder / "0123456789abcdef.sock")) > MAX_SOCKET_PATH:
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
        user = os.getuid() if hasattr(os, "getuid") else "user"
        folder = Path(tempfile.gettempdir()) / f"redraft-{user}-{name}"
    make_private(folder)
    return folder


def _in_cache() -> Path:
    # The cache's own folder is made with the usual mode by whoever comes first.
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "redraft" / "run"


def runtime_folders() -> list[Path]:
    """Where this user's daemons may have their sockets: one that was started elsewhere had, or
    lacked, another ``XDG_RUNTIME_DIR``."""
    folders = [runtime_folder(), _in_cache()]
    if hasattr(os, "getuid") and not os.environ.get("XDG_RUNTIME_DIR"):
        folders.append(Path(f"/run/user/{os.getuid()}/redraft"))
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def make_private(folder: Path) -> None:
    """Make ``folder`` with mode 0700, or check that it is so already."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafeSocketFolder(f"{folder} is a link or a file; remove it")
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise UnsafeSocketFolder(f"{folder} belongs to another user; remove it")
    if os.name == "posix" and status.st_mode & 0o077:
        raise UnsafeSocketFolder(f"others may use {folder}; run: chmod 700 {folder}")


def socket_path(build: str | None = None) -> Path:
    """The socket of the daemon of this build."""
    return runtime_folder() / f"{build or build_id()}.sock"
