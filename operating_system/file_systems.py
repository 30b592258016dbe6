"""Properties of the file system that holds a folder."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import psutil

from operating_system.system import is_linux, is_windows

_REMOTE = (
    *("nfs", "cifs", "smb", "9p", "fuse.", "afs", "ceph", "lustre", "davfs", "webdav", "afpfs"),
    *("drvfs", "vboxsf", "virtiofs", "prl_fs", "fakeowner", "osxfs", "grpcfuse"),
)
"""Beginnings of names: network file systems, and what a virtual machine, a container's host or WSL
shows of another system's files."""


def remote_file_system(folder: Path) -> str | None:
    """Return the type of the file system of a folder if others may change it unseen by this
    system."""
    if is_windows() and str(folder).startswith("\\\\"):
        # \\server\share, and WSL's files as \\wsl.localhost\name.
        return "network"
    best, kind = "", ""
    for mount in psutil.disk_partitions(all=True):
        point = mount.mountpoint
        if holds(point, str(folder)) and len(point) >= len(best):
            best, kind = point, mount.fstype
            if "remote" in mount.opts.split(","):
                kind = f"remote {kind}".strip()
    return kind if kind.startswith((*_REMOTE, "remote")) else None


def holds(folder: str, path: str) -> bool:
    """Return True if ``path`` is ``folder`` or lies in it. Systems other than Linux spell a folder
    as it was made, not as it was requested: in other letters, or with accents apart."""
    above = folder.rstrip(os.sep).split(os.sep)
    begin = path.split(os.sep)[: len(above)]
    return begin == above or (not is_linux() and [*map(_spelt, begin)] == [*map(_spelt, above)])


def _spelt(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def path_below(root: Path | str, path: str) -> str | None:
    """Return the path within a folder, with ``/``; None for the folder itself and what lies
    elsewhere."""
    folder = str(root).rstrip(os.sep)
    if not holds(folder, path):
        return None
    return "/".join(path.split(os.sep)[folder.count(os.sep) + 1 :]) or None


def announces_by_folder() -> bool:
    """Return True if the system announces changes of one folder at a time (inotify) and not of a
    tree."""
    return is_linux()


def most_watches() -> int | None:
    """Return the number of folders that one user's processes may watch, None without such a
    limit."""
    if not is_linux():
        return None
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_watches").read_text("ascii"))
    except (OSError, ValueError):
        return None
