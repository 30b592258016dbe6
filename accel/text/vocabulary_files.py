"""Results that are slow to derive from a vocabulary, in the user's cache folder by a hash of their
inputs. A damaged file is made again; the files hold data alone."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from operating_system.files import read_checked, write_checked, write_private
from operating_system.folders import cache_folder

VERSION = 1
"""Counts changes of what is derived."""
MOST_FOLDERS = 12
"""Of others, those go that were not used for a day."""
UNUSED_S = 24 * 3600.0
LEAST_TOKENS = 4096
"""Smaller vocabularies are not cached: their tables are derived at once."""

Arrays = dict[str, NDArray[Any]]


class VocabularyFiles:
    """The files of one vocabulary. A disk that is full or gone costs time, ``write`` raises."""

    def __init__(self, name: str) -> None:
        """``name``: a hash of the vocabulary."""
        self._above = cache_folder() / "vocabularies"
        self.folder = self._above / f"{name}-{VERSION}"

    def arrays(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Arrays that were kept under ``name``, or those that ``make`` makes, which are kept."""
        file = self.folder / f"{name}.npz"
        if (content := read_checked(file)) is not None:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                arrays = {key: stored[key] for key in stored.files}
            with contextlib.suppress(OSError):
                os.utime(self.folder)
            return arrays
        derived, stream = make(), io.BytesIO()
        np.savez(stream, allow_pickle=False, **derived)
        with contextlib.suppress(OSError):
            self._make_place()
            write_checked(file, stream.getvalue())
        return derived

    def write(self, name: str, text: str) -> None:
        """Write a file of text as a whole: other processes read it meanwhile. Raises OSError."""
        self._make_place()
        write_private(self.folder / name, text)

    def _make_place(self) -> None:
        if self.folder.is_dir():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        others = [each for each in self._above.iterdir() if each != self.folder]
        used = sorted((each.stat().st_mtime, each) for each in others)
        for when, folder in used[: max(len(used) + 1 - MOST_FOLDERS, 0)]:
            if time.time() - when > UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)
