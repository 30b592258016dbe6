"""The daemon's side of the indexer process: which workspaces it indexes, and their progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lsp_server.shared.processes.background import in_background
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
    ``on_change(folder, what)`` is told ``progress``, ``state`` and ``written``.

    While nothing changes the indexer is away, and a small process watches in its place. It watches
    before the indexer looks at everything for the last time, so that one of both finds a change.
    Any change, and whatever is asked, brings the indexer back, which looks at everything.
    """

    def __init__(self, on_change: Callable[[str, str], None]) -> None:
        self.workspaces: dict[tuple[str, str], WorkspaceState] = {}
        self._on_change = on_change
        self._child = Child("lsp_server.index.process", [], self._receive, self._died)
        self._closing = False
        self._starting: asyncio.Task[None] | None = None
        self._busy = False
        self._watching: Child | None = None
        """What watches in place of the indexer, or is about to."""
        self._unwatched: set[str] = set()
        self._has_left = self._is_away = False
        """Whether the indexer says that it ends, and whether it has ended."""
        self._is_missed = False
        """Whether the indexer is asked for since it was let go."""
        self._missed: list[Frame] = []
        """What it is told once it is back."""
        self._returning: set[tuple[str, str]] = set()
        """Workspaces that it looks at again, of which nobody need be told."""

    @property
    def pid(self) -> int | None:
        """Process id of the indexer, or of what watches in its place."""
        for child in (self._child, self._watching):
            if child is not None and child.alive:
                return child.pid
        return None

    def find(self, folder: str, model: str) -> WorkspaceState | None:
        """Return the progress of the datastore of a workspace is."""
        return self.workspaces.get((folder, model))

    def open_workspace(self, folder: str, model: str, options: dict[str, Any]) -> None:
        """Build and keep the datastore of a workspace, or update it for other options."""
        workspace = self.workspaces.get((folder, model))
        if workspace is not None and workspace.options == options:
            return
        state = WorkspaceState(folder, model, options=options)
        self.workspaces[folder, model] = state
        self._send(self._opening(state))

    def close_workspace(self, folder: str) -> None:
        """Forget a workspace that no editor has open any more."""
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
        if self._watching is not None:
            await self._watching.close()

    def _send(self, frame: Frame) -> None:
        if self._watching is not None:
            if frame["op"] == "close":
                self._watching.send(frame)
            else:
                self._ask_back([frame] if frame["op"] == "reindex" else [])
        is_gone = self._is_away or self._has_left
        if not self._child.send(frame) and frame["op"] == "open" and not is_gone:
            self._restart()

    # While the indexer is away

    async def _watch(self) -> None:
        """Have another process watch, and let the indexer go once it does."""
        if self._watching is not None or self._closing:
            return
        folders = {folder: state.options for (folder, _), state in self.workspaces.items()}
        self._unwatched, self._is_missed, self._missed = set(folders), False, []
        watching = Child(
            "lsp_server.index.watching", [], self._noticed, lambda: self._watching_died(watching)
        )
        self._watching = watching
        try:
            await watching.start()
        except OSError as error:
            logger.warning("nothing can watch in place of the indexer: %s", error)
            self._watching = None
        if self._closing or self._watching is not watching:
            watching.kill()
            return
        for folder, options in folders.items():
            watching.send({"op": "watch", "folder": folder, **options})
        self._let_go()

    def _noticed(self, frame: Frame) -> None:
        if frame["event"] == "changed":
            self._ask_back([])
        elif frame["problem"]:
            self._stop_watching()
        else:
            self._unwatched.discard(frame["folder"])
            self._let_go()

    def _let_go(self) -> None:
        if not self._unwatched:
            self._child.send({"op": "leave"})

    def _ask_back(self, missed: list[Frame]) -> None:
        """The indexer is needed: now if it is away, else once it has left."""
        self._is_missed = True
        self._missed += missed
        if self._is_away:
            self._come_back()

    def _come_back(self) -> None:
        self._stop_watching()
        self._is_away = False
        self._returning = {
            key for key, workspace in self.workspaces.items() if workspace.state == "ready"
        }
        self._restart()

    def _stop_watching(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.kill()

    def _watching_died(self, watching: Child) -> None:
        if watching is self._watching and not self._closing:
            logger.warning("what watches in place of the indexer died")
            self._watching = None
            self._ask_back([])

    def _restart(self) -> None:
        if self._starting is None or self._starting.done():
            self._starting = asyncio.ensure_future(self._start())

    async def _start(self) -> None:
        await asyncio.sleep(self._child.back_off_s)
        if self._closing or self._child.alive:
            return
        await self._child.start()
        self._busy = False
        missed, self._missed = self._missed, []
        for frame in [*map(self._opening, self.workspaces.values()), *missed]:
            self._child.send(frame)

    def _opening(self, state: WorkspaceState) -> Frame:
        return {"op": "open", "folder": state.folder, "model": state.model, **state.options}

    def _died(self) -> None:
        if self._closing:
            return
        if self._has_left:
            self._has_left, self._is_away = False, True
            if self._is_missed or self._watching is None:
                self._come_back()
            return
        self._stop_watching()
        self._returning.clear()
        logger.warning("the indexer process died")
        for state in self.workspaces.values():
            state.state, state.message = "waiting", "the indexer starts again"
            self._on_change(state.folder, "state")
        if self.workspaces:
            self._restart()

    def _receive(self, frame: Frame) -> None:
        if frame["event"] == "idle":
            in_background(self._watch())
        elif frame["event"] == "stays":
            self._missed.clear()
            self._stop_watching()
        elif frame["event"] == "left":
            self._has_left = True
        else:
            self._receive_of_workspace(frame)

    def _receive_of_workspace(self, frame: Frame) -> None:
        state = self.workspaces.get((frame.get("folder", ""), frame.get("model", "")))
        if state is None:
            return
        if (key := (state.folder, state.model)) in self._returning:
            if frame["event"] == "progress" or frame.get("state") == "indexing":
                return
            if frame["event"] == "state":
                self._returning.discard(key)
        for name in _STATE_FIELDS:
            if name in frame:
                setattr(state, name, frame[name])
        if frame["event"] == "state" and state.state == "ready":
            self._child.forgive()
        self._on_change(state.folder, frame["event"])
