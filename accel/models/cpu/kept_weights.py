"""Packed weights of models, kept between starts in the user's cache folder: to read them takes a
fraction of the time to pack them. A damaged file is made again.

A file is a line of JSON, and then the matrices one after another. It is named for the model's file,
the processor, and the source that packs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import disk_usage
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from accel.models.cpu.quantised.instruction_sets import layout_of
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.quantised.packed_layouts import LAYOUTS
from accel.models.fingerprint import fingerprint
from operating_system.files import replace_file
from operating_system.folders import cache_folder
from operating_system.machine import cores

LEAST_BYTES = 32 << 20
"""Less is packed in a moment."""
MOST_BYTES = 3 << 30
"""Of all models together, the least recently used go."""
LEAST_FREE = 4
"""A disk has to have room for so many times as much."""

_LONGEST_LINE = 1 << 22
_DAMAGED = OSError, ValueError, TypeError, LookupError, AssertionError, MemoryError, OverflowError
_SOURCE = Path(__file__).parent / "quantised"


class _Place(NamedTuple):
    """Where a matrix is in a file, and the sum of its bytes as numbers of 64 bits."""

    layout: int
    """The number of that one of ``LAYOUTS`` that is its own on this processor."""
    out: int
    in_features: int
    first: int
    total: int


class KeptWeights:
    """The packed matrices of one model's file."""

    def __init__(self, model: Path) -> None:
        digest = hashlib.sha256(fingerprint(model, "packed").encode())
        for file in sorted(_SOURCE.glob("*.py")):
            digest.update(file.read_bytes())
        self._folder = cache_folder() / "packed"
        self._file = self._folder / f"{digest.hexdigest()[:32]}.weights"

    def read(self, names: Iterable[str]) -> dict[str, QuantisedMatrix] | None:
        """The matrices of these names; None where they are not there, or not as they were."""
        try:
            with self._file.open("rb") as stream:
                places: dict[str, Any] = json.loads(stream.readline(_LONGEST_LINE))
                begin = stream.tell()
            if list(places) != list(names):
                return None
            with ThreadPoolExecutor(cores()) as pool:
                found = pool.map(lambda place: self._matrix(_Place(*place), begin), places.values())
                matrices = dict(zip(places, found, strict=True))
            os.utime(self._file)
            return matrices
        except _DAMAGED:
            return None

    def _matrix(self, place: _Place, begin: int) -> QuantisedMatrix:
        matrix = QuantisedMatrix(LAYOUTS[place.layout], place.out, place.in_features, None)
        with self._file.open("rb", buffering=0) as stream:
            stream.seek(begin + place.first)
            view, done = matrix.packed.data.cast("B"), 0
            while count := stream.readinto(view[done:]):
                done += count
        if done < len(view) or _sum(matrix) != place.total:
            raise ValueError("another matrix than was written")
        return matrix

    def write_later(self, matrices: Mapping[str, QuantisedMatrix]) -> None:
        """Keep matrices that are whole, beside whatever is done now, where the disk has room."""
        size = sum(matrix.packed.nbytes for matrix in matrices.values())
        if LEAST_BYTES <= size <= MOST_BYTES and all(one.is_finite for one in matrices.values()):
            Thread(target=self._write, args=(matrices, size), daemon=True).start()

    def _write(self, matrices: Mapping[str, QuantisedMatrix], size: int) -> None:
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if disk_usage(self._folder).free < LEAST_FREE * size:
                return
            self._make_room(size)
            descriptor, unfinished = tempfile.mkstemp(".new", dir=self._folder)
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(json.dumps(_places(matrices)).encode() + b"\n")
                    for matrix in matrices.values():
                        stream.write(matrix.packed.data.cast("B"))
                replace_file(unfinished, self._file)
            except BaseException:
                os.unlink(unfinished)
                raise

    def _make_room(self, size: int) -> None:
        """Remove what was not finished, and the least recently used."""
        kept = []
        for file in self._folder.iterdir():
            if file.suffix != ".weights":
                file.unlink(missing_ok=True)
            elif file != self._file:
                status = file.stat()
                kept.append((status.st_mtime, status.st_size, file))
        for _, nbytes, file in sorted(kept, reverse=True):
            size += nbytes
            if size > MOST_BYTES:
                file.unlink(missing_ok=True)


def _places(matrices: Mapping[str, QuantisedMatrix]) -> dict[str, _Place]:
    places, first = {}, 0
    numbers = {layout_of(layout): layout.number for layout in LAYOUTS}
    for name, matrix in matrices.items():
        about = numbers[matrix.layout], matrix.out, matrix.in_features
        places[name] = _Place(*about, first, _sum(matrix))
        first += matrix.packed.nbytes
    return places


def _sum(matrix: QuantisedMatrix) -> int:
    words = matrix.packed.reshape(-1).view(np.uint64)
    return int(words.sum(dtype=np.uint64))
