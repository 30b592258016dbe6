"""The daemon's side of the indexer process: which workspaces it indexes, and their progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lsp_server.shared.processes.child import Child
from lsp_server.shared.processes.framing import Frame

logger = logging.getLogger(__name__)

_STATE_FIELDS = (
    *("state", "message", "files", "tokens", "done", "total"),
    *("store", "bytes", "common", "common_bytes"),
)


@dataclass(slots=True)
class WorkspaceState:
    """The datastore of one workspace for one model. ``state``: waiting, indexing, ready, failed."""

    folder: str
    model: str
    state: str = "waiting"
    message: str = ""
    files: int = 0
    tokens: int = 0
    done: int = 0
    total: int = 0
    store: str = ""
    bytes: int = 0
    common: str = ""
    """Where the store of common code is, and how large."""
    common_bytes: int = 0
    options: dict[str, Any] = field(default_factory=dict)


class IndexerClient:
    """One indexer process for all workspaces; started with the first, restarted after a death.
    ``on_change(folder, what)`` is told ``progress``, ``state`` and ``written``."""

    def __init__(self, on_change: Callable[[str, str], None]) -> None:
        self.workspaces: dict[tuple[str, str], WorkspaceState] = {}
        self._on_change = on_change
        self._child = Child("lsp_server.index.process", [], self._receive, self._died)
        self._closing = False
        self._starting: asyncio.Task[None] | None = None
        self._busy = False

    @property
    def pid(self) -> int | None:
        """Process id of the indexer."""
        return self._child.pid if self._child.alive else None

    def find(self, folder: str, model: str) -> WorkspaceState | None:
        """How far the datastore of a workspace is."""
        return self.workspaces.get((folder, model))

    def open_workspace(self, folder: str, model: str, options: dict[str, Any]) -> None:
        """Build and keep the datastore of a workspace. Again with other options: bring it up to
        date."""
        known = self.workspaces.get((folder, model))
        if known is not None and known.options == options:
            return
        state = WorkspaceState(folder, model, options=options)
        self.workspaces[folder, model] = state
        self._send(self._opening(state))

    def close_workspace(self, folder: str) -> None:
        """Nobody has the workspace open any more."""
        for key in [key for key in self.workspaces if key[0] == folder]:
            del self.workspaces[key]
        self._send({"op": "close", "folder": folder})

    def refresh(self, folder: str, paths: list[str]) -> None:
        """These files changed, as an editor says."""
        self._send({"op": "refresh", "folder": folder, "paths": paths})

    def reindex(self, folder: str) -> None:
        """Build the datastore anew."""
        self._send({"op": "reindex", "folder": folder})

    def retry(self, model: str) -> None:
        """The model can be loaded now: open what could not be indexed without it."""
        for state in self.workspaces.values():
            if state.model == model and state.state == "failed":
                state.state, state.message = "waiting", ""
                self._send(self._opening(state))

    def set_busy(self, busy: bool) -> None:
        """A request decodes: the indexer leaves the processor to it."""
        if busy != self._busy and self._child.alive:
            self._busy = busy
            self._child.send({"op": "busy", "busy": busy})

    async def close(self) -> None:
        """End the process."""
        self._closing = True
        await self._child.close()

    def _send(self, frame: Frame) -> None:
        if not self._child.send(frame) and frame["op"] == "open":
            self._restart()

    def _restart(self) -> None:
        if self._starting is None or self._starting.done():
            self._starting = asyncio.ensure_future(self._start())

    async def _start(self) -> None:
        await asyncio.sleep(self._child.back_off_s)
        if self._closing or self._child.alive:
            return
        await self._child.start()
        self._busy = False
        for state in self.workspaces.values():
            self._child.send(self._opening(state))

    def _opening(self, state: WorkspaceState) -> Frame:
        return {"op": "open", "folder": state.folder, "model": state.model, **state.options}

    def _died(self) -> None:
        if self._closing:
            return
        logger.warning("the indexer process died")
        for state in self.workspaces.values():
            state.state, state.message = "waiting", "the indexer starts again"
            self._on_change(state.folder, "state")
        if self.workspaces:
            self._restart()

    def _receive(self, frame: Frame) -> None:
        state = self.workspaces.get((frame.get("folder", ""), frame.get("model", "")))
        if state is None:
            return
        for name in _STATE_FIELDS:
            if name in frame:
                setattr(state, name, frame[name])
        if frame["event"] == "state" and state.state == "ready":
            self._child.forgive()
        self._on_change(state.folder, frame["event"])
