"""System calls of compiled code that yield the processor to other threads."""

from __future__ import annotations

import ctypes
from typing import Any

from operating_system.system import is_windows


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
