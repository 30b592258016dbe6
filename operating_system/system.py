"""Which system this is. Asked whenever it matters, so that tests can be on another one."""

from __future__ import annotations

import os
import sys


def is_linux() -> bool:
    """Linux, WSL among it."""
    return sys.platform == "linux"


def is_linux_on_x86() -> bool:
    """Linux on a processor of 64 bits by Intel, AMD or others like them."""
    return is_linux() and os.uname().machine == "x86_64"


def is_macos() -> bool:
    """macOS."""
    return sys.platform == "darwin"


def is_macos_on_arm() -> bool:
    """macOS on a processor of Apple's, in a process that is not emulated there."""
    return is_macos() and os.uname().machine == "arm64"


def is_windows() -> bool:
    """Windows itself."""
    return sys.platform == "win32"
