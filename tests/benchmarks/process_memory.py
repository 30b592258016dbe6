"""Memory of a server's processes while it is under load."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import psutil

EVERY_S = 5.0
WARM = 0.1
"""So much of the beginning is left out: caches fill."""
ENGINE = "lsp_server.engine.process"


@dataclass(slots=True)
class MemoryWatch:
    """Bytes that would be free if the processes ended, by the kind of process."""

    pids: list[int]
    """Processes whose descendants count, too."""
    samples: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    async def watch(self) -> None:
        """Look every few seconds, until cancelled."""
        while self.pids:
            for kind, size in (await asyncio.to_thread(self._sizes)).items():
                self.samples[kind].append(size)
            await asyncio.sleep(EVERY_S)

    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = defaultdict(int)
        for pid in self.pids:
            for process in _tree(pid):
                try:
                    kind = "engines" if ENGINE in process.cmdline() else _name(process)
                    size = process.memory_full_info().uss
                except psutil.Error:
                    continue
                sizes[kind] += size
                sizes["all"] += size
        return dict(sizes)

    @property
    def figures(self) -> dict[str, Any]:
        """Mebibytes after the warm-up and at the end, and the growth in percent."""
        return {kind: _growth(sizes) for kind, sizes in sorted(self.samples.items())}


def _growth(sizes: list[int]) -> dict[str, float]:
    warm = sizes[int(len(sizes) * WARM) :]
    part = max(1, len(warm) // 10)
    first = sum(warm[:part]) / part
    last = sum(warm[-part:]) / part
    return {
        "first_mb": round(first / (1 << 20), 1),
        "last_mb": round(last / (1 << 20), 1),
        "growth_percent": round(100 * (last / first - 1), 2) if first else 0.0,
    }


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _name(process: psutil.Process) -> str:
    """What a process is: Ray names its workers by what they run."""
    title = process.cmdline()[:1] or [process.name()]
    return title[0].rpartition("/")[2].split(" ")[0].split(".")[0]
