"""Control groups of this machine, made for a test."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from operating_system.machine import GROUPS


@contextmanager
def limited_groups(memory_bytes: int = 0, processors: float = 0) -> Iterator[list[Path]]:
    """Groups with these limits, of which 0 is none, removed at the end: the files that a process
    writes its number to, to join them. The test is passed over where nobody may make any."""
    second = (GROUPS / "cgroup.controllers").is_file()
    name, quota = f"redraft-test-{os.getpid()}", round(processors * 100_000)
    if second:
        limits = {"memory.max": memory_bytes, "cpu.max": quota and f"{quota} 100000"}
    else:
        limits = {"memory.limit_in_bytes": memory_bytes, "cpu.cfs_quota_us": quota}
    made: list[Path] = []
    try:
        for file, limit in limits.items():
            folder = GROUPS / name if second else GROUPS / file.partition(".")[0] / name
            if limit:
                folder.mkdir(exist_ok=True)
                made.append(folder)
                (folder / file).write_text(str(limit))
    except OSError as error:
        for folder in set(made):
            folder.rmdir()
        pytest.skip(f"nobody may make control groups here ({error})")
    try:
        yield [folder / "cgroup.procs" for folder in dict.fromkeys(made)]
    finally:
        deadline = time.monotonic() + 60
        for folder in dict.fromkeys(made):
            # A process that has ended is in its group for a moment more.
            while (folder / "cgroup.procs").read_text() and time.monotonic() < deadline:
                time.sleep(0.05)
            folder.rmdir()
