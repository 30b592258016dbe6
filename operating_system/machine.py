"""Cores and memory that this process may use, and power.

The limits of its container are control groups of Linux, versions 1 and 2; a limit of any group
around the process holds. Source: ``cgroup-v2.rst``, ``cgroup-v1/memory.rst`` and
``scheduler/sched-bwc.rst`` of the kernel.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from operating_system import macos
from operating_system.system import is_linux, is_macos

SUPPLIES = Path("/sys/class/power_supply")

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


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


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Bytes that a group may hold, and that are left of them."""

    most: int
    left: int


def memory_limits() -> Iterator[MemoryLimit]:
    """Of the groups around this process. Files that the system may drop count as left."""
    for group, is_second in _groups_around("memory"):
        if is_second:
            names = ["memory.max", "memory.high"]
            used, droppable = "memory.current", "inactive_file"
        else:
            names = ["memory.limit_in_bytes"]
            used, droppable = "memory.usage_in_bytes", "total_inactive_file"
        limits = [limit for name in names if (limit := _number(group / name)) is not None]
        used_share = _number(group / used)
        if limits and used_share is not None:
            files = _statistics(group / "memory.stat").get(droppable, 0)
            yield MemoryLimit(min(limits), max(min(limits) - used_share + files, 0))


def processor_quotas() -> Iterator[float]:
    """Processors' time for each second, of the groups around this process that limit it."""
    for group, is_second in _groups_around("cpu"):
        if is_second:
            # "max 100000" without a limit.
            quota, period = (*_words(group / "cpu.max"), "", "")[:2]
        else:
            quota = "".join(_words(group / "cpu.cfs_quota_us"))
            period = "".join(_words(group / "cpu.cfs_period_us"))
        # -1 stands for no limit.
        if quota.isdigit() and period.isdigit() and int(quota) and int(period):
            yield int(quota) / int(period)


def _groups_around(controller: str) -> Iterator[tuple[Path, bool]]:
    """Yield the folders of the groups that this process is in, the innermost first, and whether
    they are of version 2."""
    try:
        lines = OWN_GROUPS.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        controllers, _, name = line.partition(":")[2].partition(":")
        if not controllers:
            root = GROUPS
        elif controller in controllers.split(","):
            root = GROUPS / (controllers if (GROUPS / controllers).is_dir() else controller)
        else:
            continue
        folder = root / name.strip("/")
        # A container sees its own group as the root.
        for group in [folder, *folder.parents]:
            if group != root and root not in group.parents:
                break
            yield group, not controllers


def _words(file: Path) -> list[str]:
    try:
        return file.read_text("ascii").split()
    except (OSError, ValueError):
        return []


def _number(file: Path) -> int | None:
    """None where there is no such file, or ``max``, in it."""
    text = "".join(_words(file))
    return int(text) if text.isdigit() else None


def _statistics(file: Path) -> dict[str, int]:
    words = _words(file)
    return {
        name: int(value)
        for name, value in zip(words[::2], words[1::2], strict=False)
        if value.isdigit()
    }
