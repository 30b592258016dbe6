"""Work-done progress of indexing, for one client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lsp_server.progress import Progress

if TYPE_CHECKING:
    from lsp_server.server import RedraftServer

REPORT_EVERY_S = 0.2


class IndexingProgress:
    """Shows one progress for all folders of the client, from the first file to the last."""

    def __init__(self, server: RedraftServer) -> None:
        self._server = server
        self._showing: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """A datastore may be further."""
        self._changed.set()
        if (self._showing is None or self._showing.done()) and self._unfinished():
            self._showing = asyncio.ensure_future(self._show())

    def _states(self) -> list[tuple[str, int, int, int]]:
        return [
            (state.state, state.done, state.total, state.files)
            for state in self._server.condition().workspaces
        ]

    def _unfinished(self) -> bool:
        return any(state in ("waiting", "indexing") for state, *_ in self._states())

    async def _show(self) -> None:
        features = self._server.features
        progress = Progress(self._server.protocol, None, features.work_done_progress)
        await progress.begin("Redraft: indexing")
        while self._unfinished() and not self._server.ended:
            done = sum(one[1] for one in self._states())
            total = sum(one[2] for one in self._states())
            percentage = 100 * done // total if total else 0
            progress.report(f"{done} of {total} files" if total else "looking", percentage)
            self._changed.clear()
            await self._changed.wait()
            await asyncio.sleep(REPORT_EVERY_S)
        if not self._server.ended:
            progress.end(f"{sum(one[3] for one in self._states())} files")
