"""A model's GGUF file, or its several files: metadata, and the bytes of each tensor."""

from __future__ import annotations

import os
import re
import time
from collections import OrderedDict
from contextlib import ExitStack
from dataclasses import replace
from io import FileIO
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from accel.errors import BrokenModel, ModelNotFound
from accel.files.gguf.header import Tensor, read_header, shown
from accel.files.gguf.metadata import AGAIN, Metadata

MOST_PARTS = 1000
MOST_HEADERS = 2
"""Headers that are kept: a model's, and that of one beside it."""
SETTLED_NS = 1_000_000_000
"""Age in nanoseconds from which a new write of a file changes its times."""

_PART = re.compile(
    r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<ending>\.gguf)", re.IGNORECASE
)


def is_gguf(path: Path) -> bool:
    """Return whether a path, by its name or its first bytes, is a GGUF file. The file may be
    missing."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return path.suffix.lower() == ".gguf" or stream.read(4) == b"GGUF"
    except (OSError, ValueError):
        return False


class GgufFile:
    """An open model. Its tensors are read, not mapped: a copy of one matrix at a time. A mapped
    page that is gone, because the file shrinks, would end the process; a read that comes short
    is an exception."""

    def __init__(self, path: Path) -> None:
        """``path``: the file, or any of the files of a split model (``…-00001-of-00003.gguf``).
        Raises ModelNotFound, BrokenModel or UnsupportedModel."""
        self.path = path
        self._parts: list[FileIO] = []
        self._lock = Lock()
        self.tensors: dict[str, Tensor] = {}
        with ExitStack() as stack:
            stack.callback(self.close)
            self.metadata = self._open_all()
            stack.pop_all()

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files. Tensors that were read stay."""
        for stream in self._parts:
            stream.close()

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def read(self, name: str) -> NDArray[np.uint8]:
        """Return a copy of a tensor's bytes [rows, row_bytes]. KeyError without one of this name.
        Raises BrokenModel when the file has become shorter."""
        tensor = self.tensors[name]
        data = np.empty((tensor.rows, tensor.row_bytes), np.uint8)
        self._read_into(data, tensor.part, tensor.place)
        return data

    def entry(self, key: str) -> bytes:
        """Return a key of the header with its kind and value, as the file has it. KeyError without.
        Raises BrokenModel when the file has become shorter."""
        span = self.metadata.places[key]
        data = np.empty(span.stop - span.start, np.uint8)
        self._read_into(data, 0, span.start)
        return data.tobytes()

    def _read_into(self, data: NDArray[np.uint8], number: int, offset: int) -> None:
        rest = data.data.cast("B")
        stream = self._parts[number]
        with self._lock:
            try:
                stream.seek(offset)
                while rest:
                    count = stream.readinto(rest)
                    if not count:
                        raise BrokenModel(f"{self.path} became shorter", AGAIN)
                    rest = rest[count:]
            except OSError as error:
                raise BrokenModel(f"{self.path} cannot be read ({error})", AGAIN) from (error)

    def _open_all(self) -> Metadata:
        paths = parts_of(self.path)
        first = self._open(paths[0])
        count = first.integer("split.count", 0, MOST_PARTS) or 1
        if count != len(paths):
            raise BrokenModel(
                f"{self.path} is one of {count} files by its header and of {len(paths)} by its "
                "name",
                "give it the name that it had",
            )
        for path in paths[1:]:
            self._open(path)
        listed = first.integer("split.tensors.count", 0, 1 << 31)
        if listed is not None and listed != len(self.tensors):
            raise BrokenModel(
                f"{self.path} and its other parts hold {len(self.tensors)} of {listed} tensors",
                "fetch them again",
            )
        return first

    def _open(self, path: Path) -> Metadata:
        number = len(self._parts)
        try:
            stream = FileIO(path)
            self._parts.append(stream)
            metadata, tensors = _header_of(stream, path)
        except FileNotFoundError:
            raise ModelNotFound(f"no file {path}", "give a GGUF file with all its parts") from None
        except OSError as error:
            raise BrokenModel(f"{path} cannot be read ({error})", AGAIN) from error
        if (metadata.integer("split.no", 0, MOST_PARTS) or 0) != number:
            raise BrokenModel(f"{path} is another part than its name says", AGAIN)
        for tensor in tensors:
            if tensor.name in self.tensors:
                raise BrokenModel(f"{path} has {shown(tensor.name)}, as another part has", AGAIN)
            self.tensors[tensor.name] = replace(tensor, part=number)
        return metadata


_headers: OrderedDict[tuple[Path, tuple[int, ...]], tuple[Metadata, list[Tensor]]] = OrderedDict()
_headers_lock = Lock()


def _header_of(stream: FileIO, path: Path) -> tuple[Metadata, list[Tensor]]:
    """Return the header of an open file; those opened last are at hand until the file changes.
    Raises OSError, BrokenModel or UnsupportedModel."""
    stat = os.fstat(stream.fileno())
    state = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
    with _headers_lock:
        header = _headers.get((path, state))
        if header is not None:
            _headers.move_to_end((path, state))
            return header
    header = read_header(stream, path, stat.st_size)
    if time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) < SETTLED_NS:
        # Two writes of one moment leave the same times.
        return header
    with _headers_lock:
        _headers[path, state] = header
        while len(_headers) > MOST_HEADERS:
            _headers.popitem(last=False)
    return header


def parts_of(path: Path) -> list[Path]:
    """Return all files of a model, in order, by the name of one; they need not be there. Raises
    BrokenModel for a number that cannot be."""
    match = _PART.fullmatch(path.name)
    if match is None:
        return [path]
    count = int(match["count"])
    if not 1 <= int(match["number"]) <= count <= MOST_PARTS:
        raise BrokenModel(f"{path} has the name of a part that cannot be", "give the first part")
    return [
        path.with_name(f"{match['stem']}-{number:05}-of-{count:05}{match['ending']}")
        for number in range(1, count + 1)
    ]
