"""Packed weights of models in the user's cache folder: later starts map them in a moment instead of
packing for seconds.

A file is a line of JSON preceded by its hash, and from the next page on the matrices, each aligned
to a cache line. Its name depends on the model's file, the processor, and the source that packs, and
on nothing else: it is never written again, as Windows replaces no file that is mapped. Pages are
those of the system's cache, shared by all processes, and a page that is written becomes a process's
own. A wrong length is seen at once; damage inside is looked for once, while requests are answered
already, and packed anew.

The folder is private to its user. Shortening a file in it ends the processes that map it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shutil import disk_usage
from threading import Thread
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.errors import AccelError
from accel.models.cpu.quantised.instruction_sets import layout_of
from accel.models.cpu.quantised.matrix import QuantisedMatrix, packed_shape
from accel.models.cpu.quantised.packed_layouts import LAYOUTS
from accel.models.fingerprint import fingerprint
from operating_system.file_systems import remote_file_system
from operating_system.files import file_state, read_ahead, replace_file, sync_folder, write_private
from operating_system.folders import cache_folder
from operating_system.processes import lower_thread_priority

LEAST_BYTES = 32 << 20
"""Less is packed in a moment."""
MOST_BYTES = 3 << 30
"""Of all models together, the least recently used go."""
LEAST_FREE = 4
"""Free space of a disk, as a multiple of a file's size, below which nothing is written."""
CHECK_AFTER_S = 3.0
"""Seconds before files are checked, so that the request that a model is loaded for comes first."""
UNFINISHED_S = 120.0
"""Seconds without a write after which an unfinished file's writer counts as dead."""

_VERSION = 2
_ENDING, _CHECKED = ".weights", ".checked"
_LINE, _PAGE = 128, 1 << 14
"""The largest of any system."""
_LONGEST_LINE = 1 << 22
_DAMAGED = OSError, ValueError, TypeError, LookupError, AssertionError, MemoryError, OverflowError
_SOURCE = Path(__file__).parent / "quantised"

_log = logging.getLogger(__name__)


class _Place(NamedTuple):
    """Position of a matrix in a file, and the sum of its bytes as numbers of 64 bits."""

    layout: int
    """The number of that one of ``LAYOUTS`` that is its own on this processor."""
    out: int
    in_features: int
    first: int
    total: int


class KeptWeights:
    """The packed matrices of one model's file."""

    def __init__(self, model: Path) -> None:
        digest = hashlib.sha256(f"{_VERSION} {fingerprint(model, 'packed')}".encode())
        for file in sorted(_SOURCE.glob("*.py")):
            digest.update(file.read_bytes())
        self._folder = cache_folder() / "packed"
        self._name = digest.hexdigest()[:32]

    def read(
        self, names: Iterable[str], pack: Callable[[str], QuantisedMatrix]
    ) -> dict[str, QuantisedMatrix] | None:
        """Return the matrices of these names; None where they are not there, or not in whole. Those
        that are not as they were, as is seen later, are made what ``pack`` makes of their names."""
        names = list(names)
        for file in self._files():
            try:
                entry = _read(file, names)
            except _DAMAGED:
                continue
            state = file_state(file)
            with contextlib.suppress(OSError):
                # When it was used last. Its other time says whether it was written.
                os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))
            if not _is_checked(file, state):
                _do_behind(partial(_check, file, state, *entry, pack))
            return entry[1]
        return None

    def write_later(self, matrices: Mapping[str, QuantisedMatrix]) -> None:
        """Write ``matrices`` in the background, if the disk has room."""
        size = sum(matrix.packed.nbytes for matrix in matrices.values())
        if LEAST_BYTES <= size <= MOST_BYTES and all(each.is_finite for each in matrices.values()):
            Thread(target=self._write, args=(matrices, size), daemon=True).start()

    def _files(self) -> list[Path]:
        """Written for this model, the newest first."""
        files = ((_times(file)[1], file) for file in self._folder.glob(f"{self._name}.*{_ENDING}"))
        return [file for _, file in sorted(files, reverse=True)]

    def _write(self, matrices: Mapping[str, QuantisedMatrix], size: int) -> None:
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if disk_usage(self._folder).free < LEAST_FREE * size:
                return
            self._make_room(size)
            descriptor, unfinished = tempfile.mkstemp(".new", f"{self._name}.", self._folder)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    _write_all(stream, matrices)
                    stream.flush()
                    # A name for what is not on the disk yet would be one for zeros.
                    os.fsync(descriptor)
                written = Path(unfinished).with_suffix(_ENDING)
                replace_file(unfinished, written)
                sync_folder(self._folder)
            except BaseException:
                os.unlink(unfinished)
                raise
            # Who wrote at the same time and was later keeps its own.
            newest_first = [*self._files(), written]
            for file in newest_first[newest_first.index(written) + 1 : -1]:
                _remove(file)

    def _make_room(self, size: int) -> None:
        """Remove what was not finished, and the least recently used."""
        newest = []
        for file in self._folder.iterdir():
            used, written = _times(file)
            if file.suffix == _ENDING:
                if not file.name.startswith(self._name):
                    newest.append((used, file.stat().st_size, file))
            elif file.suffix == _CHECKED and file.with_suffix(_ENDING).exists():
                continue
            elif written < time.time() - UNFINISHED_S:
                file.unlink(missing_ok=True)
        for _, nbytes, file in sorted(newest, reverse=True):
            size += nbytes
            if size > MOST_BYTES:
                _remove(file)


def _read(file: Path, names: Sequence[str]) -> tuple[dict[str, _Place], dict[str, QuantisedMatrix]]:
    """Return the matrices of a file, and where they are. Raises ``_DAMAGED``."""
    with file.open("rb") as stream:
        records, begin = _header(stream)
        if list(records) != names:
            raise ValueError("other matrices than are asked for")
        data = _contents(stream, file)[begin:]
    return records, {name: _matrix(record, data) for name, record in records.items()}


def _header(stream: BinaryIO) -> tuple[dict[str, _Place], int]:
    """Return the places of a file's matrices, and where the first of them begins. Raises
    ``_DAMAGED`` where it is not as it was written, or not as long."""
    digest, _, line = stream.readline(_LONGEST_LINE).partition(b" ")
    if hashlib.sha256(line).hexdigest().encode() != digest:
        raise ValueError("another header than was written")
    records = {name: _Place(*record) for name, record in json.loads(line).items()}
    begin = -(-stream.tell() // _PAGE) * _PAGE
    last = list(records.values())[-1]
    if os.fstat(stream.fileno()).st_size != begin + last.first + _nbytes(last):
        raise ValueError("another length than was written")
    return records, begin


def _contents(stream: BinaryIO, file: Path) -> NDArray[np.uint8]:
    """Return the contents of a file, its pages shared until they are written."""
    if remote_file_system(file.parent) is not None:
        # Another machine may remove it, and with it what is mapped.
        return np.fromfile(file, np.uint8)
    Thread(target=read_ahead, args=(file,), daemon=True).start()
    return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)


def _matrix(record: _Place, data: NDArray[np.uint8]) -> QuantisedMatrix:
    packed = data[record.first : record.first + _nbytes(record)]
    return QuantisedMatrix(LAYOUTS[record.layout], record.out, record.in_features, None, packed)


def _nbytes(record: _Place) -> int:
    layout = layout_of(LAYOUTS[record.layout])
    groups, group_bytes = packed_shape(layout, record.out, record.in_features)
    return groups * group_bytes


def _write_all(stream: BinaryIO, matrices: Mapping[str, QuantisedMatrix]) -> None:
    records = _places(matrices)
    line = json.dumps(records).encode() + b"\n"
    stream.write(hashlib.sha256(line).hexdigest().encode() + b" " + line)
    begin = -(-stream.tell() // _PAGE) * _PAGE
    for matrix, record in zip(matrices.values(), records.values(), strict=True):
        stream.write(bytes(begin + record.first - stream.tell()))
        stream.write(matrix.packed.data.cast("B"))


def _places(matrices: Mapping[str, QuantisedMatrix]) -> dict[str, _Place]:
    records, first = {}, 0
    numbers = {layout_of(layout): layout.number for layout in LAYOUTS}
    for name, matrix in matrices.items():
        sizes = numbers[matrix.layout], matrix.out, matrix.in_features
        records[name] = _Place(*sizes, first, _sum(matrix))
        first += -(-matrix.packed.nbytes // _LINE) * _LINE
    return records


def _sum(matrix: QuantisedMatrix) -> int:
    return int(matrix.packed.reshape(-1).view(np.uint64).sum(dtype=np.uint64))


def _check(
    file: Path,
    state: tuple[int, ...] | None,
    records: Mapping[str, _Place],
    matrices: Mapping[str, QuantisedMatrix],
    pack: Callable[[str], QuantisedMatrix],
) -> None:
    """Look at all that is mapped of a file. What is damaged is packed anew, into pages of this
    process, and the file goes; otherwise the next start need not look."""
    damaged = [name for name, record in records.items() if _sum(matrices[name]) != record.total]
    if not damaged:
        with contextlib.suppress(OSError):
            write_private(file.with_suffix(_CHECKED), json.dumps(state))
        return
    _log.warning("%s is damaged and goes: %s", file, ", ".join(damaged))
    _remove(file)
    try:
        for name in damaged:
            matrices[name].packed[...] = pack(name).packed
    except AccelError as error:
        _log.error("the model's file cannot be read again (%s): start again", error)


def _is_checked(file: Path, state: tuple[int, ...] | None) -> bool:
    try:
        return tuple(json.loads(file.with_suffix(_CHECKED).read_bytes())) == state
    except (OSError, ValueError, TypeError):
        return False


def _remove(file: Path) -> None:
    """Remove a file if the system allows it: Windows keeps a file that is mapped."""
    for each in (file, file.with_suffix(_CHECKED)):
        with contextlib.suppress(OSError):
            each.unlink(missing_ok=True)


def _times(file: Path) -> tuple[float, float]:
    """Return the times of a file's last use and last write; 0 if it is missing."""
    try:
        status = file.stat()
    except OSError:
        return 0.0, 0.0
    return status.st_atime, status.st_mtime


def _do_behind(work: Callable[[], None]) -> None:
    def later() -> None:
        time.sleep(CHECK_AFTER_S)
        lower_thread_priority(19)
        work()

    Thread(target=later, daemon=True).start()
