"""Which system this is. Asked whenever it matters, so that tests can be on another one."""

from __future__ import annotations

import os
import sys


def system_name() -> str:
    """``linux``, ``darwin`` or ``win32``, as what is installed is marked."""
    return sys.platform


def is_linux() -> bool:
    """Linux, WSL among it."""
    return sys.platform == "linux"


def is_macos() -> bool:
    """macOS."""
    return sys.platform == "darwin"


def is_macos_on_arm() -> bool:
    """macOS on a processor of Apple's, in a process that is not emulated there."""
    return is_macos() and os.uname().machine == "arm64"


def is_windows() -> bool:
    """Windows itself."""
    return sys.platform == "win32"
