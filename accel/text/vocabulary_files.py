"""Results that are slow to derive from a vocabulary, in the user's cache folder by a hash of their
inputs. A damaged file is made again; the files hold data alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from operating_system.files import replace_file
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
        path = self.folder / f"{name}.npz"
        try:
            with np.load(path, allow_pickle=False) as kept:
                found = {key: kept[key] for key in kept.files}
            os.utime(self.folder)
            return found
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            made = make()
        with contextlib.suppress(OSError):
            self._write(path.name, lambda file: np.savez(file, allow_pickle=False, **made))
        return made

    def write(self, name: str, text: str) -> None:
        """Write a file of text. Raises OSError."""
        self._write(name, lambda file: file.write(text.encode()))

    def _write(self, name: str, fill: Callable[[Any], object]) -> None:
        """Put a file in place as a whole: other processes read it meanwhile. Raises OSError."""
        if not self.folder.is_dir():
            self._make_place()
        descriptor, temporary = tempfile.mkstemp(dir=self.folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                fill(stream)
            replace_file(temporary, self.folder / name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _make_place(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        others = [one for one in self._above.iterdir() if one != self.folder]
        used = sorted((one.stat().st_mtime, one) for one in others)
        for when, folder in used[: max(len(used) + 1 - MOST_FOLDERS, 0)]:
            if time.time() - when > UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)
