"""One memory budget for all engines: it decides which one is unloaded before another loads."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lsp_server.engine.client import EngineClient
from lsp_server.engine.memory import Need, need_of, used_by
from lsp_server.shared.errors import MemoryTaken, ModelUnavailable

logger = logging.getLogger(__name__)

WAIT_S = 20.0
"""An engine that is at work is waited for so long; one that loads for as long as that takes."""
SETTING = "redraft.model.memoryMegabytes"


@dataclass(frozen=True, slots=True)
class MemoryShare:
    """Bytes. most: for all engines together; held: what engines hold of it."""

    most: int
    used: int

    @property
    def left(self) -> int:
        """The bytes that are left."""
        return self.most - self.used


class MemoryBudget:
    """Grants engines their memory, one after another."""

    def __init__(self, engines: Callable[[], Iterable[EngineClient]]) -> None:
        """``engines``: all that there are."""
        self._engines = engines
        self._granting = asyncio.Lock()
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """An engine began or ended to work: it may be possible to unload it."""
        self._changed.set()

    def budget(self, megabytes: int, beside: EngineClient | None = None) -> MemoryShare:
        """``megabytes``: as the setting says; ``beside``: an engine that is not counted."""
        from operating_system.machine import free_bytes

        others = [other for other in list(self._engines()) if other is not beside and _holds(other)]
        measured = {other: used_by(other.pid) for other in others}
        total = free_bytes() + sum(measured.values())
        most = min(megabytes * 1_000_000, total) if megabytes else total // 2
        used = sum(max(other.memory_bytes, measured[other]) for other in others)
        return MemoryShare(most, used)

    async def grant(self, engine: EngineClient, megabytes: int) -> None:
        """Returns once there is room for an engine; those that are idle give way, those that load
        or work are waited for. Raises ModelUnavailable, MemoryTaken where waiting did not help."""
        async with self._granting:
            need = await asyncio.to_thread(need_of, engine.options)
            until = time.monotonic() + WAIT_S
            # Not on this thread: the processes of the whole machine are looked through.
            while (
                budget := await asyncio.to_thread(self.budget, megabytes, engine)
            ).left < need.nbytes:
                if budget.most < need.nbytes:
                    raise _too_large(engine, need, budget, megabytes)
                self._changed.clear()
                if (idle := self._longest_idle(engine)) is not None:
                    logger.info("engine %s gives way to %s", idle.status.model, engine.status.model)
                    await idle.unload_for(engine.status.model)
                elif self._others_load(engine):
                    # Whether it is idle shows afterwards, and a first load compiles for long.
                    await self._changed.wait()
                    until = time.monotonic() + WAIT_S
                elif not await self._change_before(until):
                    raise self._taken(engine, need, budget)
            engine.memory_bytes = need.nbytes

    async def _change_before(self, until: float) -> bool:
        """Wait until an engine begins or ends to load or to work; return if that was in time."""
        try:
            await asyncio.wait_for(self._changed.wait(), until - time.monotonic())
        except asyncio.TimeoutError:
            return False
        return True

    def _others_load(self, engine: EngineClient) -> bool:
        return any(
            other.status.state == "loading" for other in self._engines() if other is not engine
        )

    def _longest_idle(self, engine: EngineClient) -> EngineClient | None:
        idle = [
            other
            for other in self._engines()
            if other is not engine and other.status.state == "ready" and not other.calls.busy
        ]
        return min(idle, key=lambda other: other.calls.last_used, default=None)

    def _taken(self, engine: EngineClient, need: Need, budget: MemoryShare) -> MemoryTaken:
        names = [
            other.status.model for other in self._engines() if other is not engine and _holds(other)
        ]
        return MemoryTaken(
            f"{engine.status.model} needs {need.nbytes / 1e6:,.0f} MB of memory, and "
            f"{max(budget.left, 0) / 1e6:,.0f} MB are left beside {', '.join(names)}, at work",
            f"ask again when that is done, or raise {SETTING}",
        )


def _holds(engine: EngineClient) -> bool:
    return bool(engine.memory_bytes or engine.pid)


def _too_large(
    engine: EngineClient, need: Need, budget: MemoryShare, megabytes: int
) -> ModelUnavailable:
    of_what = f"{SETTING} allows" if megabytes else "half of what is free is"
    return ModelUnavailable(
        f"{engine.status.model} needs {need.nbytes / 1e6:,.0f} MB of memory and {of_what} "
        f"{budget.most / 1e6:,.0f} MB",
        f"{need.advice(budget.most)}, or {'raise' if megabytes else 'set'} {SETTING}",
    )
