"""Files that are replaced as a whole, and that only their user may read. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
import time
from pathlib import Path

from operating_system.system import is_windows

_DIGEST_BYTES = 32
BUSY_S = 2.0
"""For how long Windows is asked again to replace a file that another process reads."""


def replace_file(source: Path | str, target: Path | str, folder: int | None = None) -> None:
    """Give ``source`` the name ``target`` in one step. ``folder``: a descriptor of the folder that
    both are names in. Raises OSError.

    Windows refuses that while another process has the target open, as readers and virus scanners
    do for a moment: it is asked again.
    """
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            os.replace(source, target, src_dir_fd=folder, dst_dir_fd=folder)
            return
        except PermissionError:
            if not is_windows() or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def read_ahead(file: Path) -> None:
    """Have the system read a file into its cache, where it can be told to; returns meanwhile, or
    when the disk has enough to do."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError), file.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


def write_private(file: Path, content: str | bytes) -> None:
    """Have a file hold this, a text as UTF-8, with mode 0600 and never half of it. Its folder is
    made where there is none. Raises OSError; the file is as it was then."""
    data = content.encode() if isinstance(content, str) else content
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(".new", f"{file.name}.", file.parent)
    try:
        with open(descriptor, "wb") as out:
            out.write(data)
            out.flush()
            # A name for what is not on the disk yet would be one for zeros after a power cut.
            os.fsync(descriptor)
        replace_file(unfinished, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def write_checked(file: Path, content: bytes) -> None:
    """Write ``content`` for ``read_checked``, as ``write_private`` does. Raises OSError."""
    write_private(file, hashlib.sha256(content).digest() + content)


def read_checked(file: Path) -> bytes | None:
    """Return what ``write_checked`` wrote; None where it is not whole, or not there."""
    try:
        data = memoryview(file.read_bytes())
    except OSError:
        return None
    digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return bytes(content) if hashlib.sha256(content).digest() == digest else None


def how_to_write(error: Exception, path: Path | str) -> str:
    """Return advice for a file or folder that could not be written."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return f"free some space on the disk of {path}"
    if number == errno.EROFS:
        return f"its disk can only be read; use another than that of {path}"
    return f"make {path} writable"


def file_state(file: Path | str) -> tuple[int, ...] | None:
    """Return inode, nanoseconds and size, one of which differs once a file was written again; None
    if the file cannot be read."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def problem_of_private(folder: Path) -> str:
    """Return why a folder is not this user's alone; empty if it is. On Windows its location
    decides: others have no rights below a user's profile. Raises OSError."""
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is a link or a file; remove it"
    if is_windows():
        return ""
    if status.st_uid != os.getuid():
        return f"{folder} belongs to another user; remove it"
    if status.st_mode & 0o077:
        return f"others may use {folder}; run: chmod 700 {folder}"
    return ""


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk, where the system can say so."""
    if is_windows():
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
