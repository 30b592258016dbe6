"""The limits of the container that this process is in: control groups of Linux, versions 1 and 2.

A limit of any group around the process holds. Source: ``cgroup-v2.rst``, ``cgroup-v1/memory.rst``
and ``scheduler/sched-bwc.rst`` of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


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
