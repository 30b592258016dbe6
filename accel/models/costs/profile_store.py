"""Measurements of a model on this machine, in the user's cache folder."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from operating_system.files import read_checked, write_checked
from operating_system.folders import cache_folder


def _folder() -> Path:
    return cache_folder() / "profiles"


class ProfileStore:
    """One JSON file for a model, replaced as a whole. A missing or damaged file is empty."""

    def __init__(self, fingerprint: str) -> None:
        self._file = _folder() / f"{fingerprint}.json"
        self._data = self._read()

    def get(self, name: str) -> Any:
        """Return the value put under ``name``, None without."""
        return self._data.get(name)

    def values(self) -> list[Any]:
        """Return all values."""
        return list(self._data.values())

    def put(self, name: str, value: Any) -> None:
        """Store ``value``; where the disk cannot be written, for this process only."""
        self._data = {**self._read(), name: value}
        with contextlib.suppress(OSError):
            write_checked(self._file, json.dumps(self._data).encode())

    def _read(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(read_checked(self._file) or "{}")
        return data
