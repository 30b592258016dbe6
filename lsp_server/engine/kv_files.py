"""KV caches as files on disk: private, written as a whole, within a budget, with a checksum. What
is damaged is deleted."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsp_server.engine.kv_folder import ENDING
from operating_system.files import replace_file

logger = logging.getLogger(__name__)

KIND = "redraft kv 1"
LONGEST_HEADER = 1 << 20
ABANDONED_S = 600.0
"""A file that is still being written after so long never will be whole."""
_CHECKSUM_BYTES = 4


@dataclass(frozen=True, slots=True)
class KvFile:
    """The content of a file. tokens: int32 [n]; state: the arrays of
    ``accel.models.base.Cache``."""

    about: dict[str, Any]
    tokens: NDArray[np.int32]
    state: list[NDArray[Any]]


class KvFiles:
    """A folder of such files. Those used longest ago are deleted beyond ``budget`` bytes. No method
    raises OSError: a disk that is full or gone costs only the cached content."""

    def __init__(self, folder: Path, budget: int) -> None:
        self._folder, self.budget = folder, budget

    def load(self, name: str) -> KvFile | None:
        """Return the content saved as ``name``; None without."""
        path = self._path(name)
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        try:
            return _read(data)
        except (ValueError, KeyError, TypeError) as error:
            logger.info("a KV cache on disk is of no use: %s", error)
            self.delete(name)
            return None

    def save(
        self, name: str, file: KvFile, interrupted: Callable[[], bool] = lambda: False
    ) -> bool:
        """Save ``file`` as ``name``; whether that was done and not ``interrupted``."""
        size = file.tokens.nbytes + sum(array.nbytes for array in file.state)
        if size > self.budget:
            return False
        temporary = ""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self._folder, suffix=".part")
            with os.fdopen(descriptor, "wb") as stream:
                checksum = 0
                for piece in _parts(file):
                    if interrupted():
                        return False
                    checksum = zlib.crc32(piece, checksum)
                    stream.write(piece)
                stream.write(checksum.to_bytes(_CHECKSUM_BYTES, "little"))
            replace_file(temporary, self._path(name))
        except OSError as error:
            logger.warning("a KV cache cannot be kept on disk: %s", error)
            return False
        finally:
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
        self.evict()
        return True

    def delete(self, name: str) -> None:
        """Delete what was saved as ``name``, if anything was."""
        with contextlib.suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def evict(self) -> None:
        """Delete the files used longest ago until all fit the budget, and what was abandoned."""
        with contextlib.suppress(OSError):
            for path in self._folder.glob("*.part"):
                if time.time() - path.stat().st_mtime > ABANDONED_S:
                    path.unlink(missing_ok=True)
            files = [(path.stat(), path) for path in self._folder.glob(f"*{ENDING}")]
            total = sum(state.st_size for state, _ in files)
            for state, path in sorted(files, key=lambda entry: entry[0].st_mtime_ns):
                if total <= self.budget:
                    break
                path.unlink(missing_ok=True)
                total -= state.st_size

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{ENDING}"


def _parts(file: KvFile) -> Iterator[bytes | memoryview]:
    arrays = [[array.dtype.str, *array.shape] for array in file.state]
    header = {"kind": KIND, "tokens": len(file.tokens), "arrays": arrays, "about": file.about}
    yield json.dumps(header).encode() + b"\n"
    yield file.tokens.astype("<i4").tobytes()
    for array in file.state:
        for piece in array:
            yield np.ascontiguousarray(piece).data.cast("B")


def _read(data: bytes) -> KvFile:
    end = data.find(b"\n", 0, LONGEST_HEADER)
    if end < 0 or zlib.crc32(memoryview(data)[:-_CHECKSUM_BYTES]) != int.from_bytes(
        data[-_CHECKSUM_BYTES:], "little"
    ):
        raise ValueError("it is damaged")
    header = json.loads(data[:end])
    if header["kind"] != KIND:
        raise ValueError("it is of another version")
    offset = end + 1
    tokens = np.frombuffer(data, "<i4", header["tokens"], offset).astype(np.int32)
    offset += tokens.nbytes
    state = []
    for dtype, *shape in header["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        state.append(np.frombuffer(data, np.dtype(dtype), count, offset).reshape(shape))
        offset += state[-1].nbytes
    return KvFile(header["about"], tokens, state)
