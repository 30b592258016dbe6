"""Files that the user allows although they seem to hold secrets. They are listed in the state
folder.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from pygls.uris import to_fs_path

from operating_system.files import write_private
from operating_system.folders import state_folder

logger = logging.getLogger(__name__)


def allowed_file() -> Path:
    """Return where their names are kept."""
    return state_folder() / "allowed-files.json"


class AllowedFiles:
    """The files that one user allows, shared by all clients. Nothing but the user adds to them."""

    def __init__(self, file: Path | None = None) -> None:
        """``file``: where they are kept; without one they are forgotten."""
        self._file = file
        self._names = set() if file is None else _read(file)

    def __contains__(self, uri: str) -> bool:
        return bool(self._names) and _name(uri) in self._names

    def allow(self, uri: str) -> None:
        """The user allows a file. Raises OSError where that cannot be kept."""
        self._names.add(_name(uri))
        self._save()

    def hold_back(self, uri: str) -> None:
        """The user takes that back. Raises OSError where that cannot be kept."""
        self._names.discard(_name(uri))
        self._save()

    def _save(self) -> None:
        if self._file is None:
            return
        write_private(self._file, json.dumps(sorted(self._names)))


def _name(uri: str) -> str:
    """Return a file by its path; what is no file on this disk by its URI."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return os.path.normpath(path) if path else uri


def _read(file: Path) -> set[str]:
    try:
        names = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, RecursionError) as error:
        logger.warning("no file is allowed: %s cannot be read (%s)", file, error)
        return set()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
