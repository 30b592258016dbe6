"""What drafting learnt of acceptance in this process, saved now and then."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel.planning.calibration import Calibration

logger = logging.getLogger(__name__)

SAVE_EVERY = 100
"""Completions between two saves: the process may be killed any time."""


class Learnt:
    """The calibration of one model and tokenizer, and the file that it is kept in."""

    def __init__(self, calibration: Calibration, file: Path) -> None:
        self.calibration = calibration
        self._file = file
        self._unsaved = 0

    @classmethod
    def load(cls, name: str) -> Learnt:
        """What was learnt before under ``name``, or nothing yet."""
        from accel.planning import calibration

        file = calibration.file_of(name)
        return cls(calibration.Calibration.load(file), file)

    def completed(self) -> None:
        """One completion more."""
        self._unsaved += 1
        if self._unsaved >= SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Keep what is new; a full disk costs only that."""
        if not self._unsaved:
            return
        self._unsaved = 0
        try:
            self.calibration.save(self._file)
        except OSError as error:
            logger.warning("what was learnt of drafts cannot be saved: %s", error)
