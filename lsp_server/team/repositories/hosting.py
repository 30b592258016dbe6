"""Registered repositories in a running server: their indexes, and the editors open on them, each by
a *view* of its own. Runs on the event loop."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lsp_server.engine.client import EngineClient
from lsp_server.index.client import IndexerClient, WorkspaceState
from lsp_server.shared.contract.notes import CloseBuffer, CloseWorkspace, OpenWorkspace, ReloadIndex
from lsp_server.shared.processes.background import in_background
from lsp_server.team.repositories.buffers import BufferEdit, SentBuffers
from lsp_server.team.repositories.errors import InvalidUpload, NoSuchRepository, RepositoryError
from lsp_server.team.repositories.store import RepositoryStore
from repo_index.file_layer import FileLayer
from repo_index.store import remove_stores_of

logger = logging.getLogger(__name__)

_SESSION = re.compile(r"[A-Za-z0-9_-]{0,64}")
MOST_VIEWS = 512
KNOWN_S = 2.0
"""Whose a repository is is looked up again after so long."""
CHECK_EVERY_S = 60.0
EXPIRE_EVERY_S = 3600.0
REMOVE_TRIES = 20
REMOVE_AGAIN_S = 0.5


@dataclass(slots=True)
class RepositoryView:
    """One editor that is open on a repository."""

    workspace: str
    """How the engine knows it."""
    buffers: SentBuffers
    used: float


class HostedRepositories:
    """The repositories of one server with one engine."""

    def __init__(
        self,
        store: RepositoryStore,
        engine: EngineClient,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self._engine = engine
        self._now = now
        self._indexer = IndexerClient(self._index_changed)
        self._indexed: dict[str, float] = {}
        """Repositories whose index is kept in line, and when they were used last."""
        self._views: OrderedDict[tuple[str, str, str], RepositoryView] = OrderedDict()
        self._known: dict[tuple[str, str], float] = {}
        """Whose what was found to be, and when."""
        self._leftover: set[str] = set()
        """Deleted repositories whose indexes are still there."""
        self._watching: asyncio.Task[None] | None = None
        engine_on_busy = engine.calls.on_busy

        def on_busy() -> None:
            engine_on_busy()
            self._indexer.set_busy(engine.calls.busy)

        engine.calls.on_busy = on_busy

    def start(self) -> None:
        """Look after the repositories from now on: delete what is old, close what is idle."""
        self._watching = in_background(self._watch())

    async def close(self) -> None:
        """End the indexer."""
        if self._watching is not None:
            self._watching.cancel()
        await self._indexer.close()

    # What jobs need

    def workspace(self, repository: str, holder: str) -> str | None:
        """How the engine knows ``ID`` or ``ID.SESSION``; None where it is not of this key."""
        try:
            return self._view(repository, holder).workspace
        except RepositoryError:
            return None

    def check(self, repository: str, holder: str) -> None:
        """Raises NoSuchRepository where a repository is not of this key."""
        known = self._known.get((repository, holder))
        if known is None or not 0 <= self._now() - known < KNOWN_S:
            try:
                self.store.check(holder, repository)
            except NoSuchRepository:
                self._known.pop((repository, holder), None)
                raise
            self._known[repository, holder] = self._now()

    def _view(self, named: str, holder: str) -> RepositoryView:
        repository, _, session = named.partition(".")
        if not _SESSION.fullmatch(session):
            raise InvalidUpload("a session may have at most 64 letters, digits, - and _")
        self.check(repository, holder)
        self.use(repository)
        key = repository, holder, session
        view = self._views.get(key)
        if view is None:
            owner = hashlib.sha256(holder.encode()).hexdigest()[:16]
            workspace = f"repository:{repository}/{owner}/{session}"
            view = RepositoryView(workspace, SentBuffers(self.store.limits), 0.0)
            self._views[key] = view
            self._engine.tell(OpenWorkspace(workspace, self._place(repository)))
            self._evict(repository, holder)
        view.used = self._now()
        self._views.move_to_end(key)
        return view

    def _evict(self, repository: str, name: str) -> None:
        """Close the editors that were used longest ago where there are too many."""
        own = [key for key in self._views if key[:2] == (repository, name)]
        for key in own[: -self.store.limits.sessions]:
            self._close_view(key)
        while len(self._views) > MOST_VIEWS:
            self._close_view(next(iter(self._views)))

    def _close_view(self, key: tuple[str, str, str]) -> None:
        view = self._views.pop(key)
        for path in view.buffers.texts:
            self._engine.tell(CloseBuffer(view.workspace, path))
        self._engine.tell(CloseWorkspace(view.workspace))

    # Open documents

    def change_buffers(
        self, repository: str, session: str, holder: str, edits: list[BufferEdit], closed: list[str]
    ) -> None:
        """An editor's open documents changed. Raises RepositoryError; what was there before the
        edit that cannot be followed is done."""
        view = self._view(f"{repository}.{session}", holder)
        for path in closed:
            if view.buffers.close(path):
                self._engine.tell(CloseBuffer(view.workspace, path))
        for edit in edits:
            view.buffers.apply(edit)
            read = partial(view.buffers.text, edit.path)
            self._engine.set_buffer(view.workspace, edit.path, read)

    def close_session(self, repository: str, session: str, holder: str) -> None:
        """An editor left. Raises NoSuchRepository."""
        self.check(repository, holder)
        if (repository, holder, session) in self._views:
            self._close_view((repository, holder, session))

    # Indexes

    def use(self, repository: str) -> None:
        """Have the index of a repository kept in line."""
        if repository not in self._indexed:
            options = {
                "exclude": [],
                "max_file_bytes": self.store.limits.file_bytes,
                # What is built of a workspace's packages is read from where the files say.
                "common": "none",
            }
            self._indexer.open_workspace(self._folder(repository), self._model, options)
        self._indexed[repository] = self._now()

    def refresh(self, repository: str, paths: list[str]) -> None:
        """Files of a repository changed."""
        self.use(repository)
        if paths:
            self._indexer.refresh(self._folder(repository), paths)

    def index_state(self, repository: str) -> WorkspaceState | None:
        """How far the index of a repository is."""
        return self._indexer.find(self._folder(repository), self._model)

    def _place(self, repository: str) -> str:
        state = self.index_state(repository)
        if state is not None and state.store:
            return state.store
        # Where nothing is, until the indexer says where the index is.
        return str(self.store.files_folder(repository).with_name(f"{repository} without an index"))

    @property
    def _model(self) -> str:
        return self._engine.options.path

    def _folder(self, repository: str) -> str:
        return str(self.store.files_folder(repository))

    def _index_changed(self, folder: str, what: str) -> None:
        repository = Path(folder).name
        if what != "written" or repository not in self._indexed:
            return
        place = self._place(repository)
        for (of, _, _), view in self._views.items():
            if of == repository:
                self._engine.tell(ReloadIndex(view.workspace, place))

    # The end of repositories

    async def delete(self, repository: str, holder: str) -> None:
        """Delete a repository: its files, its index, what the engine knows of it. Raises
        RepositoryError."""
        await asyncio.to_thread(self.store.delete, holder, repository)
        await self.forget(repository)

    async def forget(self, repository: str) -> None:
        """A repository is gone: let go of it, and remove its index."""
        for key in [key for key in self._views if key[0] == repository]:
            self._close_view(key)
        for known in [known for known in self._known if known[0] == repository]:
            del self._known[known]
        self._indexed.pop(repository, None)
        self._indexer.close_workspace(self._folder(repository))
        self._leftover.add(repository)
        for _ in range(REMOVE_TRIES):
            # The indexer holds a lock until it has let go.
            if await self._remove_indexes():
                return
            await asyncio.sleep(REMOVE_AGAIN_S)
        logger.warning("the index of repository %s is in use; it is removed later", repository)

    async def _remove_indexes(self) -> bool:
        """Remove the indexes of deleted repositories; whether none is left."""
        for repository in list(self._leftover):
            folder = self.store.files_folder(repository)
            if await asyncio.to_thread(remove_stores_of, folder, FileLayer()):
                self._leftover.discard(repository)
        return not self._leftover

    async def _watch(self) -> None:
        next_expiry = 0.0
        while True:
            try:
                if self._now() >= next_expiry:
                    next_expiry = self._now() + EXPIRE_EVERY_S
                    for repository in await asyncio.to_thread(self.store.delete_unused):
                        await self.forget(repository)
                await self.let_go()
            except Exception as error:
                # The message may hold a path.
                logger.error("looking after repositories failed (%s)", type(error).__name__)
            await asyncio.sleep(CHECK_EVERY_S)

    async def let_go(self) -> None:
        """Close what nobody used for a while, and what another process deleted."""
        await self._remove_indexes()
        before = self._now() - self.store.limits.idle_s
        for key in [key for key, view in self._views.items() if view.used < before]:
            self._close_view(key)
        for repository, used in list(self._indexed.items()):
            if not await asyncio.to_thread(self.store.exists, repository):
                await self.forget(repository)
            elif used < before:
                self._indexed.pop(repository, None)
                self._indexer.close_workspace(self._folder(repository))
        old = [known for known, since in self._known.items() if self._now() - since > KNOWN_S]
        for known in old:
            self._known.pop(known, None)
