"""Calls that only macOS has. None has run on a Mac: they are written by Apple's documentation, and
played in ``tests/systems``."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from typing import Any

_SYSCTL = "/usr/sbin/sysctl"

_USER_INITIATED_ALLOWING_SLEEP = 0x00FFFFFF & ~(1 << 20)
"""``NSActivityUserInitiatedAllowingIdleSystemSleep``."""
_FOUNDATION = "/System/Library/Frameworks/Foundation.framework/Foundation"


def asked(*names: str) -> dict[str, str]:
    """Return the kernel's values of names, by ``sysctl``. Unknown names are left out."""
    command = [_SYSCTL, *names]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return {}
    lines = (line.split(": ", 1) for line in output.splitlines() if ": " in line)
    return {name: value.strip() for name, value in lines}


def number(answers: dict[str, str], name: str) -> int | None:
    """Return an answer that is a number and not negative; None for every other."""
    text = answers.get(name, "")
    return int(text) if text.isdigit() else None


@cache
def performance_cores() -> int | None:
    """Fast cores, None where the processor has one kind: threads that share a forward wait for the
    slowest."""
    name = "hw.perflevel0.physicalcpu"
    return number(asked(name), name) or None


def unused_bytes() -> int | None:
    """Return bytes that no program would miss: free pages, copies of files, and what programs gave
    up. Where the system is short of memory (``kern.memorystatus_vm_pressure_level``, 1 where it is
    not) it compresses what is not used, so the free pages alone count; none where it is about to
    end programs. None where it does not say so."""
    pressure_name, page_name, *names = (
        *("kern.memorystatus_vm_pressure_level", "hw.pagesize", "vm.page_free_count"),
        *("vm.page_pageable_external_count", "vm.page_purgeable_count"),
    )
    answers = asked(pressure_name, page_name, *names)
    pressure, page = number(answers, pressure_name), number(answers, page_name)
    free, *others = (number(answers, name) for name in names)
    if pressure is None or page is None or free is None:
        return None
    if pressure >= 4:
        return 0
    return page * (free + (sum(filter(None, others)) if pressure == 1 else 0))


def stay_quick(reason: str) -> None:
    """Keep App Nap from slowing this process as long as it lives, in front or not: ``NSProcessInfo
    beginActivityWithOptions:reason:``. The Mac still goes to sleep. Raises OSError or
    AttributeError."""
    ctypes.CDLL(_FOUNDATION)
    objc: Any = ctypes.CDLL("/usr/lib/libobjc.A.dylib")
    pointer = ctypes.c_void_p
    for function in (objc.objc_getClass, objc.sel_registerName):
        function.restype, function.argtypes = pointer, [ctypes.c_char_p]

    def send(receiver: Any, message: bytes, *arguments: Any) -> Any:
        """Call a method, whose arguments are of types of C."""
        call = objc.objc_msgSend
        call.restype, call.argtypes = pointer, [pointer, pointer, *map(type, arguments)]
        return call(receiver, objc.sel_registerName(message), *arguments)

    token = send(
        objc.objc_getClass(b"NSString"), b"stringWithUTF8String:", ctypes.c_char_p(reason.encode())
    )
    activity = send(
        send(objc.objc_getClass(b"NSProcessInfo"), b"processInfo"),
        b"beginActivityWithOptions:reason:",
        ctypes.c_uint64(_USER_INITIATED_ALLOWING_SLEEP),
        pointer(token),
    )
    # Whoever lets it go ends it.
    send(activity, b"retain")
