"""The hub shares engines, one indexer and workspaces among all clients of a daemon."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from lsp_server.editor.completion.acceptance_rates import AcceptanceRates
from lsp_server.editor.hub.memory_budget import MemoryBudget
from lsp_server.editor.remote.engine import RemoteEngine
from lsp_server.editor.remote.similar import SimilarText
from lsp_server.engine.client import EngineClient
from lsp_server.engine.key import EngineKey, Purpose
from lsp_server.index.client import IndexerClient
from lsp_server.models.setup_question import SetupQuestion
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.notes import CloseWorkspace, OpenWorkspace, ReloadIndex
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.processes.function_process import FunctionProcess
from lsp_server.shared.settings import Settings
from lsp_server.text.documents.allowed_files import AllowedFiles, allowed_file
from operating_system.folders import log_folder

logger = logging.getLogger(__name__)

BUSY_POLL_S = 0.5
UNWANTED_S = 60.0
"""An engine that no client's settings ask for any more is kept so long."""
_SHOWN_OF_WORKSPACE = (
    *("folder", "model", "state", "message", "files", "tokens"),
    *("store", "bytes", "common", "common_bytes"),
)


class Client(Protocol):
    """A connected editor, as the hub sees it."""

    def engines(self) -> set[EngineInterface]: ...
    def engine_changed(self, engine: EngineInterface) -> None: ...
    def index_changed(self, folder: str, what: str) -> None: ...
    def withheld_documents(self) -> dict[str, str]: ...

    @property
    def saves_power(self) -> str: ...
    def allowance_changed(self, uri: str) -> None: ...
    def choices_changed(self) -> None: ...
    def fetching_changed(self) -> None: ...
    def has_unsaved(self, path: str, text: str) -> bool: ...


class Hub:
    """Engines and indexes, shared. Windows that ask for different models get different engines."""

    def __init__(
        self,
        acceptance: AcceptanceRates | None = None,
        allowed: AllowedFiles | None = None,
        question: SetupQuestion | None = None,
    ) -> None:
        """``acceptance``: as it was learnt before; ``allowed``:
        the files that the user allowed before; ``question``: whether a model may be offered."""
        self.acceptance = acceptance or AcceptanceRates()
        self.allowed = allowed or AllowedFiles()
        self.question = question or SetupQuestion()
        self.fetching = ""
        """Which model is being fetched, and how far that is."""
        self.clients: set[Client] = set()
        self.started = time.monotonic()
        self._engines: dict[EngineKey, EngineInterface] = {}
        self._unload_after_s: dict[EngineKey, float] = {}
        self._memory_megabytes: dict[EngineOptions, int] = {}
        self._memory = MemoryBudget(self._local_engines)
        self._folders: Counter[str] = Counter()
        self.indexer = IndexerClient(self._index_changed)
        self.functions = FunctionProcess()
        self.similar = SimilarText(self._store_of)

    def engine(self, settings: Settings, purpose: Purpose = "completion") -> EngineInterface:
        """Return the engine of these settings; its process starts with the first request."""
        key = EngineKey.of(settings, purpose)
        for candidate in (key, key.local):
            if candidate is not None:
                self._unload_after_s[candidate] = settings.model.unload_after_minutes * 60
        self._allow_memory(key.options, settings.model.memory_megabytes)
        return self._engine(key)

    def next_edit_engine(self, settings: Settings) -> EngineClient | None:
        """Return the engine of next edits; None without a model, and where a server answers and no
        model was chosen for next edits alone."""
        model = settings.next_edit_model
        if not model or (settings.server.url and model == settings.completion_model):
            return None
        engine = self.engine(settings, "next edits")
        assert isinstance(engine, EngineClient)
        return engine

    def _allow_memory(self, options: EngineOptions, megabytes: int) -> None:
        before = self._memory_megabytes.get(options)
        self._memory_megabytes[options] = megabytes
        engine = self._engines.get(EngineKey(options))
        if before != megabytes and isinstance(engine, EngineClient):
            engine.try_again()

    def _engine(self, key: EngineKey) -> EngineInterface:
        if key not in self._engines:
            self._engines[key] = self._made(key, lambda: self._engine_changed(key))
            # At once: most requests are over before anybody could look whether one is under way.
            self._engines[key].calls.on_busy = self._tell_busy
        return self._engines[key]

    def _made(self, key: EngineKey, on_change: Callable[[], None]) -> EngineInterface:
        if not key.server.url:
            engine = EngineClient(key.options, on_change)
            engine.grant_memory = lambda: self._memory.grant(
                engine, self._memory_megabytes[engine.options]
            )
            return engine
        local = key.local
        remote = RemoteEngine(key.server, on_change, None if local is None else self._engine(local))
        if key.server.sharing:
            remote.similar = self.similar
        return remote

    def _store_of(self, folder: str) -> tuple[str, str] | None:
        """Return the datastore of a workspace and the model that it is for."""
        states = self.indexer.workspaces.values()
        ready = [state for state in states if state.folder == folder and state.state == "ready"]
        return (ready[0].store, ready[0].model) if ready else None

    def _local_engines(self) -> list[EngineClient]:
        return [engine for engine in self._engines.values() if isinstance(engine, EngineClient)]

    def open_workspace(self, folder: str, settings: Settings) -> None:
        """A client opened a folder: index it and look things up in it."""
        self._folders[folder] += 1
        self.use_workspace(folder, settings)

    def use_workspace(self, folder: str, settings: Settings) -> None:
        """The settings of a client that has the folder open are these now."""
        if not (settings.enabled and settings.index.enabled):
            return
        options = {
            "exclude": settings.index.exclude,
            "max_file_bytes": settings.index.max_file_kilobytes << 10,
            "common": settings.index.common,
        }
        for engine in dict.fromkeys((self.engine(settings), self.engine(settings, "edits"))):
            engine.tell(OpenWorkspace(folder))
        keys = EngineKey.of(settings), EngineKey.of(settings, "edits")
        # Datastores serve models of this machine, and drafts of a server.
        here = [key.options.path for key in keys if key.local or not key.server.url]
        if settings.server.url and settings.server.sharing and not any(here):
            here = [settings.completion_model or settings.next_edit_model]
        for model in dict.fromkeys(filter(None, here)):
            self.indexer.open_workspace(folder, model, options)

    def close_workspace(self, folder: str) -> None:
        """A client closed a folder; with the last one the folder is let go."""
        self._folders[folder] -= 1
        if self._folders[folder] <= 0:
            del self._folders[folder]
            self.indexer.close_workspace(folder)
            for engine in self._engines.values():
                engine.tell(CloseWorkspace(folder))
            self.similar.forget(folder)

    def allow(self, uri: str, allowed: bool) -> None:
        """The user allows a file that is held back, or takes that back. Raises RedraftError."""
        try:
            (self.allowed.allow if allowed else self.allowed.hold_back)(uri)
        except OSError as error:
            raise RedraftError(
                f"{allowed_file()} cannot be written ({error.strerror}); the choice holds until "
                "the server ends"
            ) from error
        finally:
            for client in list(self.clients):
                client.allowance_changed(uri)

    def set_fetching(self, what: str) -> None:
        """A model is being fetched, or no more (empty)."""
        self.fetching = what
        for client in list(self.clients):
            client.fetching_changed()

    def choices_changed(self) -> None:
        """The user chose another model."""
        for client in list(self.clients):
            client.choices_changed()

    def _tell_busy(self) -> None:
        """Keep the indexer out of the way of requests."""
        self._memory.changed()
        self.indexer.set_busy(any(engine.calls.busy for engine in self._engines.values()))

    async def watch(self) -> None:
        """Unload engines that no client uses, and end those that hang."""
        while True:
            await asyncio.sleep(BUSY_POLL_S)
            self._tell_busy()
            used = {engine for client in self.clients for engine in client.engines()}
            self._let_servers_be(used)
            # What answers in place of servers.
            used |= {other.here for other in used if isinstance(other, RemoteEngine) and other.here}
            for key, engine in self._engines.items():
                if not isinstance(engine, EngineClient):
                    continue
                limit = self._unload_after_s[key] if engine in used else UNWANTED_S
                idle = time.monotonic() - engine.calls.last_used
                if engine.hung:
                    engine.restart()
                if limit and engine.pid and not engine.calls.busy and idle > limit:
                    logger.info("engine %s unloaded after %.0f s", engine.status.model, idle)
                    engine.unload()

    def _let_servers_be(self, used: set[EngineInterface]) -> None:
        """Servers that no client's settings name any more are not asked again."""
        for engine in self._engines.values():
            if isinstance(engine, RemoteEngine) and engine not in used:
                engine.rest()

    async def close(self) -> None:
        """End all processes."""
        self.acceptance.save()
        await asyncio.gather(
            self.indexer.close(),
            self.functions.close(),
            *(engine.close() for engine in self._engines.values()),
            self.similar.close(),
        )

    def status(self) -> dict[str, Any]:
        """Return the facts that ``redraft status`` shows."""
        return {
            "running": True,
            "pid": os.getpid(),
            "clients": len(self.clients),
            "uptime_s": time.monotonic() - self.started,
            "log": str(log_folder()),
            "memory": self._memory_status(),
            "engines": [
                asdict(engine.status) | engine.calls.counts for engine in self._engines.values()
            ],
            "workspaces": [
                {name: getattr(state, name) for name in _SHOWN_OF_WORKSPACE}
                for state in self.indexer.workspaces.values()
            ],
            "indexer_pid": self.indexer.pid,
            "functions_pid": self.functions.pid,
            "acceptance": self.acceptance.by_language(),
            "saves_power": next(filter(None, (client.saves_power for client in self.clients)), ""),
            "held_back": {
                uri: reason
                for client in self.clients
                for uri, reason in client.withheld_documents().items()
            },
        }

    def _memory_status(self) -> dict[str, int]:
        megabytes = max(self._memory_megabytes.values(), default=0)
        budget = self._memory.budget(megabytes)
        return {"held_bytes": budget.used, "budget_bytes": budget.most}

    def _engine_changed(self, key: EngineKey) -> None:
        self._memory.changed()
        if self._engines[key].status.state == "ready":
            self.indexer.retry(key.options.path)
        changed = {self._engines[key]}
        changed |= {engine for other, engine in self._engines.items() if other.local == key}
        for client in list(self.clients):
            for engine in changed:
                client.engine_changed(engine)

    def _index_changed(self, folder: str, what: str) -> None:
        if what == "written":
            self.similar.forget(folder)
            for key, engine in self._engines.items():
                if (state := self.indexer.find(folder, key.options.path)) is not None:
                    engine.tell(ReloadIndex(folder, state.store))
        for client in list(self.clients):
            client.index_changed(folder, what)
