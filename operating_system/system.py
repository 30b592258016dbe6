"""Which system this is. Asked whenever it matters, so that tests can be on another one."""

from __future__ import annotations

import sys


def is_linux() -> bool:
    """Linux, WSL among it."""
    return sys.platform == "linux"


def is_macos() -> bool:
    """macOS."""
    return sys.platform == "darwin"


def is_windows() -> bool:
    """Windows itself."""
    return sys.platform == "win32"
