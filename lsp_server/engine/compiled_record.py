"""Records that everything a model calls was compiled, for one state of our source, the processor
and the model's files, so that a start need not import all of it to check."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from accel.models.fingerprint import version_of
from accel.native.machine_code import code_folder
from accel.native.processor import compiled_for
from operating_system.files import read_checked, write_checked

_MOST = 40
_SOURCES = [Path(__file__).parents[2] / package for package in ("accel", "repo_index")]


class CompiledRecord:
    """The record of compiled code for a model that is opened in some way, ``subject``. A disk that
    is full or gone costs only time."""

    def __init__(self, subject: object) -> None:
        identity: list[object] = [subject, compiled_for()]
        identity += [version_of("numba"), version_of("llvmlite"), list(_sources())]
        name = hashlib.sha256(repr(identity).encode()).hexdigest()[:32]
        self._file = code_folder() / "records" / f"{name}.json"

    @property
    def is_complete(self) -> bool:
        """True if nothing is left to compile."""
        indexes = json.loads(read_checked(self._file) or "[]")
        return bool(indexes) and all(map(os.path.isfile, indexes))

    def write(self, indexes: list[str]) -> None:
        """Nothing is left to compile, and these are the files of some of it."""
        folder = self._file.parent
        with contextlib.suppress(OSError):
            write_checked(self._file, json.dumps(indexes).encode())
            newest = sorted(folder.iterdir(), key=lambda file: -file.stat().st_mtime)
            for old in newest[_MOST:]:
                old.unlink(missing_ok=True)


def _sources() -> Iterator[tuple[str, int, int]]:
    """Our own source that may be compiled: path, size and time of each file."""
    waiting = [str(folder) for folder in _SOURCES]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            if entry.is_dir():
                waiting.append(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
