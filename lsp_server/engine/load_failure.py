"""The failure of a model to load, and the moment of the next attempt."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from lsp_server.engine.model_paths import files_state
from lsp_server.shared.errors import ModelUnavailable

RETRY_S = 60.0
"""What may pass by itself, as a lack of memory, is tried again after so long."""


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """A model that could not be loaded."""

    models: list[str]
    cause: str
    remedy: str
    files: tuple[object, ...]
    """The models' files when it was tried."""
    lasting: bool = True
    """It cannot pass by itself: the files are wrong."""
    since: float = field(default_factory=time.monotonic)

    @property
    def error(self) -> ModelUnavailable:
        """Return the error that answers requests."""
        return ModelUnavailable(self.cause, self.remedy)

    @property
    def holds(self) -> bool:
        """Return True if another attempt is useless: no file changed, and no time passed."""
        wait_s = math.inf if self.lasting else RETRY_S
        return time.monotonic() - self.since < wait_s and files_state(*self.models) == self.files
