"""Keeps the copy of one workspace at a server in line with its files, in the background. Open
documents are sent as edits."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lsp_server.editor.remote.connection import ServerConnection
from lsp_server.editor.remote.sharing.workspace_files import WorkspaceFiles
from lsp_server.shared.contract.server_routes import REPOSITORIES
from lsp_server.shared.errors import RedraftError, ServerUnavailable
from lsp_server.shared.processes.back_off import BackOff
from lsp_server.shared.processes.background import in_background
from lsp_server.team.repositories.buffers import BufferEdit, edit_between
from lsp_server.team.repositories.paths import path_problem

if TYPE_CHECKING:
    from repo_index.watcher import Watcher

logger = logging.getLogger(__name__)

GATHER_S = 1.0
"""Changes are sent together that come within so long."""
BATCH_CHARACTERS = 1 << 20
BATCH_FILES = 200
RECHECK_S = 600.0
"""A server that does not take something is asked again after so long."""


class RepositoryGone(RedraftError):
    """The server has no such repository any more."""


class NotTaken(RedraftError):
    """The server does not take something: a quota is used up, or it is another version."""


class WorkspaceSync:
    """The background work for one workspace at one server."""

    def __init__(
        self,
        connection: ServerConnection,
        folder: str,
        files: WorkspaceFiles,
        repository: str,
        registered: Callable[[str], None],
        gone: Callable[[], None],
    ) -> None:
        """``repository``: the id that the server gave before, empty for none; ``registered`` is
        told a new one; ``gone``: that the server knows it no more."""
        self.folder = folder
        self.repository = repository
        self.state = "sending"
        """``sending``, ``ready``, or ``waiting`` for a server that does not answer."""
        self.message = ""
        self._connection = connection
        self._files = files
        self._registered = registered
        self._gone = gone
        self._session = secrets.token_urlsafe(12)
        self._back_off = BackOff()
        self._hashes: dict[str, str] = {}
        """What the server was told of files."""
        self._not_taken: set[str] = set()
        """Hashes of contents that the server does not keep."""
        self._refused_paths: set[str] = set()
        self._open: dict[str, Callable[[], str]] = {}
        self._sent: dict[str, str] = {}
        """Open documents as the server has them."""
        self._dirty: set[str] = set()
        self._closed: set[str] = set()
        self._paths: set[str] | None = set()
        """Files that changed; None for any."""
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._watcher: Watcher | None = None
        self._task = in_background(self._run())

    @property
    def workspace(self) -> str:
        """What jobs name it by; empty where the server has nothing of it yet."""
        known = self.repository and self.state == "ready"
        return f"{self.repository}.{self._session}" if known else ""

    @property
    def file_count(self) -> int:
        """Files that the server was told of."""
        return len(self._hashes)

    # What the editor tells

    def set_buffer(self, path: str, read: Callable[[], str]) -> None:
        """An open document changed."""
        self._open[path] = read
        self._closed.discard(path)
        self._dirty.add(path)
        self._changed.set()

    def close_buffer(self, path: str) -> None:
        """A document was closed."""
        self._open.pop(path, None)
        self._dirty.discard(path)
        if self._sent.pop(path, None) is not None:
            self._closed.add(path)
            self._changed.set()

    # Life

    async def stop(self) -> None:
        """End the work; the repository stays."""
        self._task.cancel()
        if self._watcher is not None:
            await asyncio.to_thread(self._watcher.stop)

    async def delete(self) -> None:
        """End the work and delete the repository. Raises ServerUnavailable, NotTaken."""
        await self.stop()
        if self.repository:
            status, answer = await self._connection.ask(
                "DELETE", f"{REPOSITORIES}/{self.repository}"
            )
            if status not in (204, 404):
                raise NotTaken(_reason(status, answer))

    async def _run(self) -> None:
        self._watch()
        while True:
            try:
                await self._bring_in_line()
                self._back_off.forget()
                await self._follow()
            except RepositoryGone:
                logger.info("the server has the repository of a workspace no more")
                self._gone()
                return
            except NotTaken as error:
                self._wait(str(error))
                await asyncio.sleep(RECHECK_S)
            except ServerUnavailable as error:
                self._wait(str(error))
                await asyncio.sleep(self._back_off.next_s(error.retry_after_s))

    def _wait(self, message: str) -> None:
        self.state, self.message = "waiting", message
        logger.warning("a workspace is not in line with its repository: %s", message)

    def _watch(self) -> None:
        # Loaded where a workspace is sent alone.
        from repo_index.watcher import Watcher

        def changed(paths: list[str] | None) -> None:
            self._loop.call_soon_threadsafe(self._note, paths)

        self._watcher = Watcher(self._files.tree, changed)
        self._watcher.start()

    def _note(self, paths: list[str] | None) -> None:
        if paths is None:
            self._paths = None
        elif self._paths is not None:
            self._paths.update(paths)
        self._changed.set()

    async def _follow(self) -> None:
        """Send what changes, for ever."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(GATHER_S)
            self._changed.clear()
            paths, self._paths = self._paths, set()
            if paths is None:
                await self._send_all()
            elif paths:
                await self._send_changed(sorted(paths))
            await self._send_buffers()

    # Files

    async def _bring_in_line(self) -> None:
        """Have the repository hold what the workspace does."""
        if not self.repository:
            name = "".join(
                letter if letter.isalnum() or letter in " .+@-_" else "_"
                for letter in os.path.basename(self.folder)[:100]
            ).strip(" .")
            answer = await self._ask("POST", REPOSITORIES, {"name": name or "workspace"})
            self.repository = str(answer["id"])
            self._registered(self.repository)
        self._paths = set()
        await self._send_all()
        self.state, self.message = "ready", ""
        self._forget_sent()
        await self._send_buffers()

    async def _send_all(self) -> None:
        files = self._takable(await asyncio.to_thread(self._files.hashes))
        if self.state == "ready" and files == self._hashes:
            return
        self._hashes = files
        answer = await self._ask("PUT", self._at("manifest"), {"files": files})
        await self._send_contents(answer)

    async def _send_changed(self, paths: list[str]) -> None:
        changed = await asyncio.to_thread(self._files.hashes_of, paths)
        if changed is None:
            await self._send_all()
            return
        files: dict[str, str | None] = {
            path: None if digest in self._not_taken else digest
            for path, digest in changed.items()
            if path not in self._refused_paths
        }
        # What the server does not have need not be taken from it: it learns no path by that.
        files = {path: one for path, one in files.items() if one or path in self._hashes}
        if not files:
            return
        for path, digest in files.items():
            if digest is None:
                self._hashes.pop(path, None)
            else:
                self._hashes[path] = digest
        await self._send_contents(await self._ask("PATCH", self._at("manifest"), {"files": files}))

    def _takable(self, files: dict[str, str]) -> dict[str, str]:
        return {
            path: one
            for path, one in files.items()
            if one not in self._not_taken and path not in self._refused_paths
        }

    async def _send_contents(self, answer: dict[str, Any]) -> None:
        """Send the contents that the server lacks, and take back those that it refuses."""
        for path in answer["refused"]:
            self._hashes.pop(path, None)
            self._refused_paths.add(path)
        wanted = frozenset(answer["missing"])
        by_hash = {digest: path for path, digest in self._hashes.items() if digest in wanted}
        refused: set[str] = set()
        batch: dict[str, str] = {}
        size = 0
        for digest, path in by_hash.items():
            text = await asyncio.to_thread(self._files.text, path, digest)
            if text is None:
                # It changed since, which will be told.
                continue
            batch[digest] = text
            size += len(text)
            if size >= BATCH_CHARACTERS or len(batch) >= BATCH_FILES:
                refused |= await self._send_batch(batch)
                batch, size = {}, 0
        if batch:
            refused |= await self._send_batch(batch)
        if refused:
            self._not_taken |= refused
            taken_back = [path for path, digest in self._hashes.items() if digest in refused]
            for path in taken_back:
                del self._hashes[path]
            await self._ask(
                "PATCH", self._at("manifest"), {"files": dict.fromkeys(taken_back, None)}
            )

    async def _send_batch(self, batch: dict[str, str]) -> set[str]:
        answer = await self._ask("POST", self._at("blobs"), {"contents": batch})
        return set(answer["refused"])

    # Open documents

    def _forget_sent(self) -> None:
        """The server may know nothing of open documents."""
        self._sent.clear()
        self._closed.clear()
        self._dirty.update(self._open)

    async def _send_buffers(self) -> None:
        """Send what changed in open documents; all of them whole where the server lost them."""
        if not await self._sent_edits():
            self._forget_sent()
            await self._sent_edits()

    async def _sent_edits(self) -> bool:
        """Whether the server could follow."""
        texts = {path: self._open[path]() for path in sorted(self._dirty) if path in self._open}
        self._dirty.clear()
        closed, self._closed = sorted(self._closed), set()
        edits = [self._edit(path, text) for path, text in texts.items() if self._counts(path, text)]
        if not edits and not closed:
            return True
        path = self._at(f"buffers/{self._session}")
        body = {"edits": [asdict(edit) for edit in edits], "closed": closed}
        status, answer = await self._connection.ask("PATCH", path, body)
        if status == 409:
            return False
        self._sent.update({edit.path: texts[edit.path] for edit in edits})
        self._checked(status, answer)
        return True

    def _counts(self, path: str, text: str) -> bool:
        """Whether the server is told of a text. One that counts for itself alone is empty here: it
        hides a file that the server has, and the path of any other is not told."""
        if text == self._sent.get(path) or path_problem(path):
            return False
        return bool(text) or path in self._sent or path in self._hashes

    def _edit(self, path: str, text: str) -> BufferEdit:
        old = self._sent.get(path)
        return BufferEdit(path, 0, 0, text, "") if old is None else edit_between(path, old, text)

    # The server

    def _at(self, part: str) -> str:
        return f"{REPOSITORIES}/{self.repository}/{part}"

    async def _ask(self, method: str, path: str, body: Any) -> dict[str, Any]:
        """Raises ServerUnavailable, RepositoryGone and NotTaken."""
        status, answer = await self._connection.ask(method, path, body)
        return self._checked(status, answer)

    @staticmethod
    def _checked(status: int, answer: dict[str, Any]) -> dict[str, Any]:
        if status == 404:
            raise RepositoryGone("the server has no such repository any more")
        if not 200 <= status < 300:
            raise NotTaken(_reason(status, answer))
        return answer


def _reason(status: int, answer: dict[str, Any]) -> str:
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return f"the server does not take it ({status}: {message or 'no reason given'})"
