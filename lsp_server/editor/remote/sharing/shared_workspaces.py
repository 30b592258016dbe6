"""The workspaces of this machine that the user lets a server copy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lsp_server.editor.remote.address import ServerAddress
from lsp_server.editor.remote.connection import ServerConnection
from lsp_server.editor.remote.sharing.sharing_answers import SharingAnswers
from lsp_server.editor.remote.sharing.workspace_files import WorkspaceFiles
from lsp_server.editor.remote.sharing.workspace_sync import WorkspaceSync
from lsp_server.shared.contract.server_routes import REPOSITORIES
from lsp_server.shared.errors import ModelUnavailable
from lsp_server.shared.processes.background import in_background
from lsp_server.shared.settings import ServerSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SharingOptions:
    """What the user's settings leave out of a workspace."""

    exclude: tuple[str, ...]
    max_file_bytes: int


class SharedWorkspaces:
    """The workspaces of one server and key. Nothing is sent of one before the user allowed it."""

    def __init__(self, server: ServerSettings, answers: SharingAnswers) -> None:
        self._server = server
        self._answers = answers
        self._address: ServerAddress | None = None
        try:
            self._address = ServerAddress.of(server.url)
        except ModelUnavailable as error:
            logger.warning("nothing is sent to a server: %s", error)
        self._connection: ServerConnection | None = None
        self._used: dict[str, SharingOptions] = {}
        """Folders that are open."""
        self._syncs: dict[str, WorkspaceSync] = {}
        self._buffers: dict[tuple[str, str], Callable[[], str]] = {}
        self._questions_sent: set[str] = set()

    @property
    def host(self) -> str:
        """The server, as the user is told of it."""
        return self._address.url if self._address is not None else self._server.url

    @property
    def _origin(self) -> str:
        assert self._address is not None
        return self._address.url

    def use(self, folder: str, options: SharingOptions) -> None:
        """A folder is open, with these settings."""
        if self._address is None or self._used.get(folder) == options:
            return
        self._used[folder] = options
        if self._answers.may(self._origin, folder):
            self._begin(folder)

    def close_workspace(self, folder: str) -> None:
        """Nobody has a folder open, or it is for another server now."""
        self._used.pop(folder, None)
        for key in [key for key in self._buffers if key[0] == folder]:
            del self._buffers[key]
        self._end(folder)

    def workspace(self, folder: str) -> str:
        """What jobs name the repository of a folder by; empty for none."""
        sync = self._syncs.get(folder)
        return "" if sync is None else sync.workspace

    def lost(self, folder: str) -> None:
        """The server does not know the repository of a folder any more."""
        if (sync := self._syncs.get(folder)) is not None:
            self._answers.ended(self._origin, folder, sync.repository)
            # Asked again in this session, too.
            self._questions_sent.discard(folder)
            self._end(folder)

    # The user's answers

    def to_ask(self, folder: str) -> bool:
        """Whether the user is to be asked about a folder: once, and from now on no more."""
        if self._address is None or folder not in self._used or folder in self._questions_sent:
            return False
        if self._answers.may(self._origin, folder) is not None:
            return False
        self._questions_sent.add(folder)
        return True

    def allow(self, folder: str) -> None:
        """The user allows that a folder is sent."""
        if self._address is not None:
            self._answers.allow(self._origin, folder)
            if folder in self._used:
                self._begin(folder)

    def refuse(self, folder: str) -> None:
        """The user does not, now and later."""
        if self._address is not None:
            self._answers.refuse(self._origin, folder)

    async def unregister(self, folder: str) -> bool:
        """Delete the repository of a folder at the server, and send nothing of it any more. Whether
        there was one. Raises RedraftError."""
        if self._address is None:
            return False
        repository = self._answers.repository(self._origin, folder)
        self._answers.refuse(self._origin, folder)
        sync = self._syncs.pop(folder, None)
        if sync is not None:
            await sync.delete()
        elif repository:
            await self._connected().ask("DELETE", f"{REPOSITORIES}/{repository}")
        return bool(repository)

    # Open documents

    def set_buffer(self, folder: str, path: str, read: Callable[[], str]) -> None:
        """An open document changed; ``read`` gives its text."""
        self._buffers[folder, path] = read
        if (sync := self._syncs.get(folder)) is not None:
            sync.set_buffer(path, read)

    def close_buffer(self, folder: str, path: str) -> None:
        """A document was closed."""
        self._buffers.pop((folder, path), None)
        if (sync := self._syncs.get(folder)) is not None:
            sync.close_buffer(path)

    # The work

    def _begin(self, folder: str) -> None:
        self._end(folder)
        options = self._used[folder]

        def registered(repository: str) -> None:
            self._answers.allow(self._origin, folder, repository)

        def gone() -> None:
            self.lost(folder)

        self._syncs[folder] = WorkspaceSync(
            self._connected(),
            folder,
            WorkspaceFiles(folder, list(options.exclude), options.max_file_bytes),
            self._answers.repository(self._origin, folder),
            registered,
            gone,
        )
        for (of, path), read in self._buffers.items():
            if of == folder:
                self._syncs[folder].set_buffer(path, read)

    def _end(self, folder: str) -> None:
        if (sync := self._syncs.pop(folder, None)) is not None:
            in_background(sync.stop())

    def _connected(self) -> ServerConnection:
        if self._connection is None:
            assert self._address is not None
            self._connection = ServerConnection(self._address, self._server.key)
        return self._connection

    async def close(self) -> None:
        """End all work."""
        syncs, self._syncs = list(self._syncs.values()), {}
        await asyncio.gather(*(sync.stop() for sync in syncs))
        if self._connection is not None:
            await self._connection.close()

    def status(self) -> list[dict[str, Any]]:
        """What ``redraft status`` shows of each workspace that is sent."""
        return [
            {
                "folder": folder,
                "server": self.host,
                "repository": sync.repository,
                "state": sync.state,
                "message": sync.message,
                "files": sync.file_count,
            }
            for folder, sync in self._syncs.items()
        ]
