"""How much memory this process may still take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def free_bytes() -> int:
    """Bytes that are free on this machine and, on Linux, within the limits of the control groups
    that this process is in."""
    return min([int(psutil.virtual_memory().available), *_left_in_groups(GROUPS, OWN_GROUPS)])


def _left_in_groups(groups: Path, own: Path) -> Iterator[int]:
    """What each limit leaves. Cached files count as free: the system drops them when needed."""
    try:
        lines = own.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if not controllers:
            root, files = groups, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = groups / "memory"
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        folder = root / name.strip("/")
        # A container sees its own group as the root.
        for group in [folder, *folder.parents]:
            if group != root and root not in group.parents:
                break
            left = _left_in(group, *files)
            if left is not None:
                yield left


def _left_in(group: Path, limit: str, used: str, reclaimed: str) -> int | None:
    """What the limit of a group leaves; None without one."""
    try:
        most = int((group / limit).read_text("ascii"))
        taken = int((group / used).read_text("ascii"))
        statistics = (group / "memory.stat").read_text("ascii").split()
    except (OSError, ValueError):
        # ``max`` is no number: there is no limit.
        return None
    known = dict(zip(statistics[::2], statistics[1::2], strict=False))
    return max(most - taken + int(known.get(reclaimed, 0)), 0)
