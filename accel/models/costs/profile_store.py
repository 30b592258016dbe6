"""Measurements of a model on this machine, in the user's cache folder."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import platformdirs


def _folder() -> Path:
    return Path(platformdirs.user_cache_dir("redraft")) / "profiles"


class ProfileStore:
    """One JSON file for a model, replaced as a whole. A missing or damaged file is empty."""

    def __init__(self, fingerprint: str) -> None:
        self._file = _folder() / f"{fingerprint}.json"
        self._data = self._read()

    def get(self, name: str) -> Any:
        """What was put under ``name``, None without."""
        return self._data.get(name)

    def values(self) -> list[Any]:
        """All values."""
        return list(self._data.values())

    def put(self, name: str, value: Any) -> None:
        """Store ``value``; where the disk cannot be written, for this process only."""
        self._data = {**self._read(), name: value}
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self._file.parent)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(self._data, stream)
            os.replace(temporary, self._file)

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}
