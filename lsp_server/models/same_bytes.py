"""Tells whether two models hold the same bytes. Two fine-tunes of one base may differ in a few
rows.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from accel.errors import ModelError
from accel.files.gguf.file import is_gguf, parts_of

MOST_S = 20.0
"""Seconds for which files are compared for one list of models."""
_PIECE = 1 << 22


class Comparison:
    """Compares models, for so long and no longer."""

    def __init__(self, seconds: float = MOST_S) -> None:
        self._left = seconds

    def same(self, first: Path, second: Path) -> bool | None:
        """Whether the weights of two models are the same bytes; None where the time is over.
        Files that are one on the disk are not read."""
        started = time.monotonic()
        try:
            ours, theirs = weights_of(first), weights_of(second)
            if len(ours) != len(theirs):
                return False
            answers = (self._same_files(*pair) for pair in zip(ours, theirs, strict=True))
            return next((answer for answer in answers if answer is not True), True)
        except (OSError, ModelError):
            return False
        finally:
            self._left -= time.monotonic() - started

    def _same_files(self, first: Path, second: Path) -> bool | None:
        if os.path.samefile(first, second):
            return True
        until = time.monotonic() + self._left
        with first.open("rb") as ours, second.open("rb") as theirs:
            while time.monotonic() < until:
                piece = ours.read(_PIECE)
                if piece != theirs.read(_PIECE):
                    return False
                if not piece:
                    return True
        return None


def weights_of(path: Path) -> list[Path]:
    """The files with the weights of a model: its GGUF file with all parts, or those of a folder.
    Raises ModelError."""
    return parts_of(path) if is_gguf(path) else sorted(path.glob("*.safetensors"))
