"""The daemon's address: a private socket, named after the build. Standard library only.

A front finds only a daemon that runs the very same code: the name holds a hash of it, so an old
daemon is never spoken to by a new front (gopls does the same).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from pathlib import Path

from lsp_server.shared.errors import UnsafeSocketFolder
from operating_system.files import problem_of_private
from operating_system.folders import runtime_folder

_PACKAGES = ("lsp_server", "accel", "repo_index", "operating_system")
_SURROUNDINGS = (
    *("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "REDRAFT_LOG_DIR"),
    *("USERPROFILE", "LOCALAPPDATA", "REDRAFT_DATA"),
)


def build_id() -> str:
    """Hash of the code (name, size and time of every file), the interpreter and the user's folders.

    Raises nothing: files that vanish while they are looked at count as absent.
    """
    root = Path(__file__).resolve().parents[3]
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
            if entry.name not in ("__pycache__", "bench"):
                lines += _file_lines(entry.path)
        elif entry.name.endswith((".py", ".json", ".safetensors")):
            try:
                status = entry.stat()
            except OSError:
                continue
            lines.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    return lines


def private_folder() -> Path:
    """Return the folder of sockets and locks, made if needed: ours alone. Raises UnsafeSocketFolder
    when it is a link, belongs to another user or others may write to it."""
    folder = runtime_folder()
    make_private(folder)
    return folder


def make_private(folder: Path) -> None:
    """Make ``folder`` with mode 0700, or check that it is so already. Raises UnsafeSocketFolder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if problem := problem_of_private(folder):
        raise UnsafeSocketFolder(problem)


def socket_path(build: str | None = None, *, make: bool = True) -> Path:
    """Return the socket of the daemon of this build; its folder is made with ``make`` alone. Raises
    UnsafeSocketFolder."""
    folder = runtime_folder()
    if make or os.path.lexists(folder):
        make_private(folder)
    return folder / f"{build or build_id()}.sock"
