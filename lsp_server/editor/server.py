"""The server object of one editor: its documents, its settings, and what serves it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Callable
from typing import Any

from cattrs import Converter
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from lsp_server.editor.completion.context import OpenFiles
from lsp_server.editor.completion.offers import Offers
from lsp_server.editor.completion.provider import CompletionProvider
from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.editor.editing.provider import EditProvider
from lsp_server.editor.hub.hub import Hub
from lsp_server.editor.next_edits.finding import renamed_elsewhere
from lsp_server.editor.next_edits.model import NextEditModel
from lsp_server.editor.next_edits.provider import NextEditProvider
from lsp_server.editor.notices.first_start import EditHelp, offer_models, tell_once
from lsp_server.editor.notices.indexing_progress import IndexingProgress
from lsp_server.editor.notices.reasons import ModelNotice, Reasons
from lsp_server.editor.notices.status import Condition, Performance, StatusReporter
from lsp_server.editor.protocol.client_features import ClientFeatures
from lsp_server.editor.protocol.jsonrpc import RedraftProtocol
from lsp_server.editor.protocol.progress import Progress
from lsp_server.editor.screen import Screen
from lsp_server.engine.client import EngineClient
from lsp_server.engine.key import Purpose
from lsp_server.index.client import WorkspaceState
from lsp_server.models.choices import Choices, read_choices
from lsp_server.models.used import NOTHING, used_models
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import ContextSnippet
from lsp_server.shared.contract.notes import CloseBuffer, ForgetDocument
from lsp_server.shared.errors import ModelUnavailable
from lsp_server.shared.power import saving_reason
from lsp_server.shared.processes.background import in_background
from lsp_server.shared.processes.log import set_level
from lsp_server.shared.settings import (
    ADDRESS_OF_WORKSPACE,
    Settings,
    read_settings,
    with_own_server,
)
from lsp_server.shared.version import VERSION
from lsp_server.text.documents.document import Document, Documents, with_line_feeds
from lsp_server.text.documents.ignored_paths import IgnoredPaths
from lsp_server.text.documents.secret_documents import SecretDocuments
from lsp_server.text.documents.workspace_folders import Folders

logger = logging.getLogger(__name__)

_numbers = itertools.count(1)


class RedraftServer(LanguageServer):
    """One client of the daemon."""

    protocol: RedraftProtocol

    def __init__(self, hub: Hub, converter: Callable[[], Converter]) -> None:
        super().__init__(
            "redraft", VERSION, protocol_cls=RedraftProtocol, converter_factory=converter
        )
        self.hub = hub
        self.client_name = f"client {next(_numbers)}"
        self.features = ClientFeatures()
        self.documents = Documents()
        self.folders = Folders()
        self.settings = Settings()
        self._engines: dict[Purpose, EngineInterface] = {}
        """What the settings ask for, found once for each of them."""
        self.used = used_models(self.settings, Choices())
        """Which models serve the client, and who decided."""
        self._shown_problems: set[str] = set()
        """What was wrong with the settings, and was told."""
        self._sent: Any = None
        """The settings as the client sent them."""
        self.environment: dict[str, str] = {}
        """What the environment of the client's front says of a server, see ``with_own_server``."""
        self.paused = ""
        """Until when the user wants nothing, as one says it; empty where he wants suggestions."""
        self.snooze: asyncio.TimerHandle | None = None
        self.ended = False
        self.performance = Performance()
        self.last_reason = ""
        self.progresses: dict[str | int, Progress] = {}
        self.secrets = SecretDocuments(hub.allowed)
        self.ignored = IgnoredPaths()
        self._open_files = OpenFiles(self.documents, self.folders, self.counts_elsewhere)
        self.completion = CompletionProvider(
            self.client_name,
            lambda: self.settings,
            self.engine,
            self._snippets,
            self.performance.add,
            hub.acceptance,
        )
        self.offers = Offers(hub.acceptance)
        self.editing = EditProvider(
            *(self.client_name, lambda: self.settings, self.edit_engine, hub.functions),
            what_helps=EditHelp(self),
            elsewhere=renamed_elsewhere,
            opened=lambda uri: self.next_edits.opened_in(self.folders.place(uri)),
        )
        self.next_edits = NextEditProvider(
            self.documents,
            self.folders,
            self.counts_elsewhere,
            NextEditModel(
                self.client_name, lambda: self.settings.next_edits, self.next_edit_engine
            ),
            self._tell_next_edits,
            hub.functions,
            lambda: not self.saves_power,
        )
        self.screen = Screen(self.next_edits, lambda: self.settings.screen)
        self.indexing = IndexingProgress(
            self.protocol,
            self._indexed_folders,
            lambda: self.ended,
            lambda: self.features.work_done_progress,
        )
        self.model_notice = ModelNotice(self.protocol)
        self.reasons = Reasons(self.protocol, lambda: self.features)
        self.status = StatusReporter(self._tell_status, self.condition)

    # Life

    def join(self) -> None:
        """``initialized`` came: load the model, index the folders, tell how far it is."""
        self.hub.clients.add(self)
        for folder in self.folders.paths:
            self.hub.open_workspace(folder, self.settings)
        if self.settings.enabled:
            in_background(self._load_engine())
        unchosen = self.used.completion.because == NOTHING and not self.settings.server.url
        if self.settings.enabled and unchosen and self.features.message_buttons:
            in_background(offer_models(self))
        elif self.settings.enabled and unchosen:
            tell_once(self)
        self.indexing.changed()
        self.status.changed()

    async def _load_engine(self) -> None:
        try:
            await self.engine().start()
            next_edits = self.next_edit_engine()
            if next_edits is not None and self.settings.next_edits.enabled:
                await next_edits.start()
        except ModelUnavailable:
            self.status.changed()
        except OSError:
            logger.exception("the engine cannot be started")

    def leave(self) -> None:
        """The client has gone."""
        self.ended = True
        self.protocol.cancel_all()
        self.release()

    def release(self) -> None:
        """Stop the client's work and let go of what it had open."""
        if self.snooze is not None:
            self.snooze.cancel()
        self.completion.close_all()
        self.status.stop()
        self.secrets.close()
        if self not in self.hub.clients:
            return
        self.hub.clients.discard(self)
        for document in self.documents:
            self.drop_buffer(document.uri)
        for folder in self.folders.paths:
            self.hub.close_workspace(folder)

    # Settings

    def apply_settings(self, values: Any) -> None:
        """Use a client's settings; what cannot be used is told to the user once."""
        self._sent = values
        started_with = self.features.options.get("settings")
        read = read_settings(with_own_server(values, started_with, self.environment))
        if read_settings(values).settings.server.url not in ("", read.settings.server.url):
            read.problems.append(ADDRESS_OF_WORKSPACE)
        used = used_models(read.settings, read_choices())
        settings = used.put_into(read.settings)
        for problem in read.problems:
            logger.warning("%s", problem)
        problems = [problem for problem in read.problems if problem not in self._shown_problems]
        self._shown_problems.update(problems)
        if problems:
            self.show_warning("Redraft settings: " + "; ".join(problems[:5]))
        changed = (settings, used) != (self.settings, self.used)
        if _models(settings) != _models(self.settings):
            self.model_notice.forget()
        self.settings, self.used, self._engines = settings, used, {}
        set_level(settings.log.level)
        if changed and self in self.hub.clients:
            for folder in self.folders.paths:
                self.hub.use_workspace(folder, self.settings)
            self.completion.close_all()
            self.feed_buffers()
            if self.settings.enabled:
                in_background(self._load_engine())
            self.status.changed()

    def choices_changed(self) -> None:
        """The user chose another model, see ``models.choices``."""
        self.apply_settings(self._sent)

    def show_warning(self, message: str) -> None:
        """Tell the user something, and the log."""
        self.protocol.tell(
            types.WINDOW_SHOW_MESSAGE, {"type": types.MessageType.Warning.value, "message": message}
        )

    # What serves the client

    def engine(self) -> EngineInterface:
        """Return the engine of suggestions that the client's settings ask for."""
        return self._engine_for("completion")

    def edit_engine(self) -> EngineInterface:
        """Return the engine of edits; that of suggestions where both have one model."""
        return self._engine_for("edits")

    def _engine_for(self, purpose: Purpose) -> EngineInterface:
        if purpose not in self._engines:
            self._engines[purpose] = self.hub.engine(self.settings, purpose)
        return self._engines[purpose]

    def next_edit_engine(self) -> EngineClient | None:
        """Return the engine of next edits, on this machine; None where no model makes them."""
        return self.hub.next_edit_engine(self.settings)

    def engines(self) -> set[EngineInterface]:
        """Return all of them; often they are one."""
        engines: set[EngineInterface] = {self.engine(), self.edit_engine()}
        next_edits = self.next_edit_engine() if self.settings.next_edits.enabled else None
        return engines if next_edits is None else engines | {next_edits}

    def _tell_status(self, status: dict[str, Any]) -> None:
        self.protocol.tell("redraft/status", status)
        self.reasons.tell(status)

    def _tell_next_edits(self, uri: str) -> None:
        """More next edits are known of a document than the last answer had."""
        self.protocol.tell("redraft/nextEditsChanged", {"uri": uri})

    def _snippets(self, ask: CompletionRequest) -> list[ContextSnippet]:
        return self._open_files.snippets(ask, self.settings.context)

    def engine_changed(self, engine: EngineInterface) -> None:
        """The hub tells that an engine's state changed."""
        if engine in self.engines():
            self.model_notice.engine_changed(engine, self.features)
            self.status.changed()

    def allowance_changed(self, uri: str) -> None:
        """The hub tells that the user allows a file, or does not any more."""
        self.completion.close(uri)
        self.feed_buffer(uri)
        if (document := self.documents.find(uri)) is not None:
            self.forget_if_withheld(document)
        self.status.changed()

    def fetching_changed(self) -> None:
        """The hub tells how far the model that is being fetched is."""
        self.status.changed()

    def index_changed(self, folder: str, what: str) -> None:
        """The hub tells that a datastore is further."""
        if folder in self.folders.paths:
            self.indexing.changed()
            if what != "written":
                self.status.changed()

    @property
    def saves_power(self) -> str:
        """Return why nothing runs ahead of a pause; empty if it may."""
        return saving_reason(self.settings.power)

    def withheld_documents(self) -> dict[str, str]:
        """Open documents that are held back, by URI, each with the reason."""
        reasons = {
            document.uri: self.secrets.withheld_reason(document) for document in self.documents
        }
        return {uri: reason for uri, reason in reasons.items() if reason}

    def has_unsaved(self, path: str, text: str) -> bool:
        """Return True if a file that holds ``text`` is open here with another text. ``path``:
        without links, as the operating system has it."""

        def is_here(uri: str) -> bool:
            return os.path.realpath(self.folders.place(uri).absolute) == path

        # What the file of an open notebook would hold is not known.
        return any(map(is_here, self.documents.notebooks)) or any(
            is_here(document.uri) and with_line_feeds(document.text) != with_line_feeds(text)
            for document in self.documents
            if _is_file(document.uri)
        )

    def _indexed_folders(self) -> list[WorkspaceState]:
        """Return the progress of the datastores of the client's folders."""
        model = self.settings.completion_model
        states = [self.hub.indexer.find(folder, model) for folder in self.folders.paths]
        return [state for state in states if state is not None]

    def condition(self, inactive: str = "", document: str = "") -> Condition:
        """Return the state that the status is made from; ``document``: the URI that it is about."""
        return Condition(
            enabled=self.settings.enabled,
            paused=self.paused,
            engine=self.engine(),
            edit_engine=self.edit_engine(),
            used=self.used,
            workspaces=self._indexed_folders(),
            performance=self.performance,
            prompt_seconds=self.settings.context.prompt_seconds,
            acceptance=self.hub.acceptance.by_language(),
            reason=self.last_reason,
            inactive=inactive,
            withheld=self.withheld_documents(),
            document=document,
            next_edits=self.next_edits.condition(self.settings.next_edits),
            fetching=self.hub.fetching,
            saves_power=self.saves_power,
        )

    # Open documents, as the index sees them

    def feed_buffers(self) -> None:
        """Send all open documents to the index again after a change of what is excluded."""
        for document in self.documents:
            self.feed_buffer(document.uri)

    def feed_buffer(self, uri: str, opened: bool = False) -> None:
        """An open document changed; lookups see its text with the next request."""
        location = self.folders.place(uri)
        document = self.documents.find(uri)
        if not self.settings.index.enabled or document is None or not _is_file(uri):
            return
        if location.folder:
            # A text that is held back, or counts for itself alone, hides what is on the disk.
            for engine in self.engines():
                engine.set_buffer(
                    location.folder,
                    location.path,
                    lambda: document.text if self.counts_elsewhere(document) else "",
                    opened,
                )

    def forget_if_withheld(self, document: Document) -> None:
        """Have the model forget its caches of a document that is withheld now."""
        if self.secrets.withheld_reason(document):
            self.next_edits.forget(document.uri)
            location = self.folders.place(document.uri)
            for engine in self.engines():
                engine.tell(ForgetDocument(location.folder, location.path))

    def drop_buffer(self, uri: str) -> None:
        """A document was closed; its file counts again."""
        location = self.folders.place(uri)
        if location.folder and _is_file(uri):
            for engine in self.engines():
                engine.tell(CloseBuffer(location.folder, location.path))

    def counts_elsewhere(self, document: Document) -> bool:
        """Return True if other documents may be completed from this one's text: not if it seems to
        hold secrets, allowed or not, or is ignored, unless the user asks for it."""
        if self.secrets.secret_reason(document):
            return False
        index = self.settings.index
        location = self.folders.place(document.uri)
        return index.ignored_open_files or not self.ignored.reason(location, index.exclude)


def _models(settings: Settings) -> tuple[object, ...]:
    """Return the settings that decide which models are loaded, and how."""
    edit = settings.edit
    return settings.model, settings.completion_model, settings.edit_model, edit.draft_model


def _is_file(uri: str) -> bool:
    """Return True if a document is a file's content: no old version, no notebook's cell."""
    return uri.startswith("file:") and "#" not in uri
