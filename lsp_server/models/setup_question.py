"""Remembers in the state folder that the user was offered a model, once for all editors."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from operating_system.files import write_private
from operating_system.folders import state_folder

TOLD_EVERY_S = 24 * 3600.0


def answer_file() -> Path:
    """Return the file that records the user's answer."""
    return state_folder() / "setup.json"


class SetupQuestion:
    """The offer to choose a model. After any answer it is never made again."""

    def __init__(self, file: Path | None = None) -> None:
        """``file``: where the answer is kept; without one nothing is ever asked."""
        self._file = file
        self._asking = self._answered = False

    @property
    def is_open(self) -> bool:
        """Return True if the user may be asked: no other server is asking, and no answer came."""
        if self._file is None or self._asking or self._answered:
            return False
        return not self._file.exists()

    def begin(self) -> None:
        """One editor asks."""
        self._asking = True

    def end(self) -> None:
        """It asks no longer. Without an answer another editor may ask."""
        self._asking = False

    def answer(self, answer: str) -> None:
        """The user answered. Where that cannot be kept, it holds until the server ends."""
        self._answered = True
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            write_private(self._file, json.dumps({"answer": answer}) + "\n")

    def is_told(self) -> bool:
        """Return True if the user was told today that there is no model; record that he is now."""
        if self._file is None:
            return False
        marker = self._file.with_name("no-model-told")
        now_s = time.time()
        try:
            if 0 <= now_s - marker.stat().st_mtime < TOLD_EVERY_S:
                return True
        except OSError:
            pass
        with contextlib.suppress(OSError):
            write_private(marker, "")
        return False
