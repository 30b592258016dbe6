"""Log files: rotated, private to the user, without source text unless the user asks for it."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import os
from io import TextIOWrapper
from pathlib import Path

from operating_system.folders import log_folder

MAX_BYTES = 2 << 20
BACKUP_FILES = 3


class _PrivateFile(logging.handlers.RotatingFileHandler):
    def _open(self) -> TextIOWrapper:
        opened = open(  # noqa: SIM115 - the handler closes it
            self.baseFilename,
            self.mode,
            encoding=self.encoding,
            errors=self.errors,
            opener=lambda name, flags: os.open(name, flags, 0o600),
        )
        assert isinstance(opened, TextIOWrapper)
        return opened

    def rotate(self, source: str, dest: str) -> None:
        """Windows refuses it while another of our processes has the file open: then it grows on."""
        with contextlib.suppress(PermissionError):
            super().rotate(source, dest)


def start_log(name: str, level: str = "info") -> Path:
    """Send this process's log records to ``NAME.log``; returns its path. Loggers of protocols stay
    silent: they print whole messages, and messages hold source text."""
    # A full disk costs log lines, not the process: nothing is printed for one that is not written.
    logging.raiseExceptions = False
    folder = log_folder()
    path = folder / f"{name}.log"
    handler: logging.Handler
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = _PrivateFile(path, maxBytes=MAX_BYTES, backupCount=BACKUP_FILES, encoding="utf-8")
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s")
    )
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    set_level(level)
    for protocol in ("pygls", "mcp"):
        logging.getLogger(protocol).setLevel(logging.CRITICAL + 1)
    return path


def set_level(level: str) -> None:
    """``error``, ``warning``, ``info`` or ``debug`` for our own loggers."""
    for name in ("lsp_server", "accel", "repo_index", "operating_system"):
        logging.getLogger(name).setLevel(level.upper())


def redacted(text: str, show: bool = False) -> str:
    """``text`` for a log line: itself when the user asked for source text, else only its size."""
    return repr(text) if show else f"<{len(text)} characters>"
