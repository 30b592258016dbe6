"""The system that this is. Asked each time, so that tests can be on another one."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

TRANSLATED = (
    "this Python is for x86, and an Arm processor translates it, which takes several times as "
    "long; install Redraft with a Python for arm64"
)
"""What to say where ``is_translated``."""

HOST_NAMES = ("host.docker.internal", "host.containers.internal")
"""What Docker and Podman call it."""
MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that they put into every container."""
KNOWN_HOSTS = Path("/etc/hosts")


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


@cache
def is_translated() -> bool:
    """Return True if this Python runs x86 instructions that an Arm processor translates: by Rosetta
    on a Mac, or by Windows."""
    if is_macos():
        from operating_system.macos import asked

        name = "sysctl.proc_translated"
        return not is_macos_on_arm() and asked(name).get(name) == "1"
    if not is_windows():
        return False
    import platform
    import sysconfig

    return platform.machine() == "ARM64" and sysconfig.get_platform() != "win-arm64"


def is_container_host(name: str) -> bool:
    """Return True if a name stands for the machine around this container, so that nothing sent
    there enters a network. The container's own table of hosts must say so, which no network can
    forge."""
    if name not in HOST_NAMES or not any(mark.exists() for mark in MARKS):
        return False
    try:
        lines = KNOWN_HOSTS.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    return any(name in line.partition("#")[0].split()[1:] for line in lines)


def yielding_function() -> str:
    """Return the name of a function without arguments, as compiled code finds it, that lets another
    thread that waits for a processor have this one's."""
    if not is_windows():
        return "sched_yield"
    import llvmlite.binding as llvm

    kernel: Any = ctypes.__dict__["windll"].kernel32
    address = ctypes.cast(kernel.SwitchToThread, ctypes.c_void_p).value
    # Not among the symbols of Python, where those of the C library are found.
    llvm.add_symbol("SwitchToThread", address)
    return "SwitchToThread"
