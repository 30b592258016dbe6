"""Cores and memory that this process may use, within its container's limits, and power."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import psutil

from operating_system import macos
from operating_system.control_groups import memory_limits, processor_quotas
from operating_system.system import is_linux, is_macos

SUPPLIES = Path("/sys/class/power_supply")


def cores() -> int:
    """Processors that this process may use, on a Mac the fast ones; fewer where OMP_NUM_THREADS
    says so.

    A quota of 2.5 processors counts as two: the system stops a third thread in the middle of a
    forward, and the others wait for it.
    """
    return min([most_cores(), *(max(int(quota), 1) for quota in processor_quotas())])


def most_cores() -> int:
    """Return ``cores()`` of a container that gets a larger quota while this process runs."""
    requested = os.environ.get("OMP_NUM_THREADS", "")
    limits = [int(requested)] if requested.isdigit() and int(requested) else []
    return min([_allowed(), *limits])


def _allowed() -> int:
    """Return the cores that the process may run on, by cpusets and ``taskset``."""
    try:
        return len(psutil.Process().cpu_affinity())
    except (AttributeError, OSError, psutil.Error):
        # macOS knows no such thing.
        return (macos.performance_cores() if is_macos() else None) or os.cpu_count() or 1


def free_bytes() -> int:
    """Return bytes that are free on this machine and within the container's limits."""
    if is_macos() and (unused := macos.unused_bytes()) is not None:
        return unused
    lefts = (limit.left for limit in memory_limits())
    return min([int(psutil.virtual_memory().available), *lefts])


def give_back_memory() -> None:
    """Have the C library give the system what this process has freed, where it keeps that."""
    if is_linux():
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def total_bytes() -> int:
    """Return bytes of memory that the machine has, or those that the container may hold."""
    mosts = (limit.most for limit in memory_limits())
    return min([int(psutil.virtual_memory().total), *mosts])


def on_battery(supplies: Path = SUPPLIES) -> bool:
    """Return whether a battery alone feeds the machine; on Linux by what ``supplies`` lists."""
    if not is_linux():
        battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
        return battery is not None and battery.power_plugged is False
    discharging = False
    for supply in supplies.glob("*"):
        # The battery of a mouse or a keyboard has the scope of a device.
        if _read(supply / "scope") == "Device":
            continue
        if _read(supply / "type") != "Battery" and _read(supply / "online") == "1":
            return False
        discharging |= _read(supply / "status") == "Discharging"
    return discharging


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""
