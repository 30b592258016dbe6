"""Work-done progress of indexing, for one client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsp_server.editor.protocol.jsonrpc import RedraftProtocol
from lsp_server.editor.protocol.progress import Progress
from lsp_server.index.client import WorkspaceState

REPORT_EVERY_S = 0.2


class IndexingProgress:
    """Shows one progress for all folders of the client, from the first file to the last."""

    def __init__(
        self,
        protocol: RedraftProtocol,
        folders: Callable[[], list[WorkspaceState]],
        ended: Callable[[], bool],
        shows_progress: Callable[[], bool],
    ) -> None:
        """``folders``: the datastores and how far they are. ``ended``: whether the client
        left. ``shows_progress``: whether it shows work-done progress."""
        self._protocol = protocol
        self._folders = folders
        self._ended = ended
        self._shown = shows_progress
        self._showing: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """A datastore may be further."""
        self._changed.set()
        if (self._showing is None or self._showing.done()) and self._unfinished():
            self._showing = asyncio.ensure_future(self._show())

    def _unfinished(self) -> bool:
        return any(state.state in ("waiting", "indexing") for state in self._folders())

    async def _show(self) -> None:
        progress = Progress(self._protocol, None, self._shown())
        await progress.begin("Redraft: indexing")
        while self._unfinished() and not self._ended():
            done = sum(state.done for state in self._folders())
            total = sum(state.total for state in self._folders())
            percentage = 100 * done // total if total else 0
            progress.report(f"{done} of {total} files" if total else "looking", percentage)
            self._changed.clear()
            await self._changed.wait()
            await asyncio.sleep(REPORT_EVERY_S)
        if not self._ended():
            progress.end(f"{sum(state.files for state in self._folders())} files")
