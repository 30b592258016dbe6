"""The audit log: who registered, shared and deleted which repository. One JSON object a line.

Names and ids alone: no content, no paths, no hashes.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path


class AuditLog:
    """Appends to one file, which several processes may share."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, now: float, event: str, key: str, repository: str, **more: object) -> None:
        """``key``: the name of the key that did it; empty for the server itself. Raises OSError."""
        time = datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="seconds")
        line = {"time": time, "event": event, "key": key, "repository": repository, **more}
        data = (json.dumps(line) + "\n").encode()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        # One write for one line: lines of several processes do not mix.
        descriptor = os.open(self._file, flags, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
