"""Sends an engine the index and open documents of a workspace before it answers.

The ingress keeps it and sends what has changed with the next request; a replica that lacks more,
because the session came from another one, says so and is sent that.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.jobs import AcceptedText
from lsp_server.shared.contract.notes import (
    CloseBuffer,
    CloseWorkspace,
    Note,
    OpenWorkspace,
    ReloadIndex,
    SetBuffer,
)

IDLE_S = 1800.0
"""A replica lets go of a view that no request came for in so long."""
MOST_VIEWS = 1024


class ViewPart(NamedTuple):
    """What travels with a request."""

    opened: OpenWorkspace
    index_state: str
    """Another for every state of the index."""
    buffers: dict[str, str]
    """Hashes of all open documents, by path."""
    texts: dict[str, str]
    """Texts of those that the replica may lack."""


@dataclass(slots=True)
class _CachedView:
    opened: OpenWorkspace
    index: str
    texts: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)


class ViewCache:
    """The views of an ingress."""

    def __init__(self) -> None:
        self._views: dict[str, _CachedView] = {}

    def take(self, note: Note) -> None:
        """A note of a workspace or a document."""
        if isinstance(note, OpenWorkspace):
            self._views[note.folder] = _CachedView(note, secrets.token_hex(8))
            return
        view = None if isinstance(note, AcceptedText) else self._views.get(note.folder)
        if view is None:
            return
        if isinstance(note, ReloadIndex):
            view.index = secrets.token_hex(8)
            view.opened = replace(view.opened, store=note.store)
        elif isinstance(note, CloseWorkspace):
            del self._views[note.folder]
        elif isinstance(note, SetBuffer):
            view.texts[note.path] = note.text
            view.hashes[note.path] = _hash(note.text)
        elif isinstance(note, CloseBuffer):
            view.texts.pop(note.path, None)
            view.hashes.pop(note.path, None)

    def part(self, folder: str, lacking: list[str]) -> ViewPart | None:
        """What a request in a workspace carries. ``lacking``: paths that the replica asked for."""
        view = self._views.get(folder)
        if view is None:
            return None
        changed = [path for path, known in view.hashes.items() if view.sent.get(path) != known]
        view.sent = dict(view.hashes)
        texts = {path: view.texts[path] for path in {*changed, *lacking} if path in view.texts}
        return ViewPart(view.opened, view.index, dict(view.hashes), texts)


@dataclass(slots=True)
class _OpenView:
    index: str
    used: float
    hashes: dict[str, str] = field(default_factory=dict)


class OpenViews:
    """The views that the engine of a replica has open."""

    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine
        self._views: OrderedDict[str, _OpenView] = OrderedDict()

    def take(self, part: ViewPart) -> list[str]:
        """Have the engine know a view; the paths whose texts it lacks."""
        folder = part.opened.folder
        view = self._views.get(folder)
        if view is None:
            self._engine.tell(part.opened)
            view = self._views[folder] = _OpenView(part.index_state, 0.0)
        elif view.index != part.index_state:
            self._engine.tell(ReloadIndex(folder, part.opened.store))
            view.index = part.index_state
        view.used = time.monotonic()
        self._views.move_to_end(folder)
        for path, text in part.texts.items():
            self._engine.tell(SetBuffer(folder, path, text))
            view.hashes[path] = _hash(text)
        for path in view.hashes.keys() - part.buffers.keys():
            del view.hashes[path]
            self._engine.tell(CloseBuffer(folder, path))
        self._let_go()
        return [path for path, known in part.buffers.items() if view.hashes.get(path) != known]

    def forget(self) -> None:
        """The engine process is another one, which knows nothing."""
        self._views.clear()

    def _let_go(self) -> None:
        before = time.monotonic() - IDLE_S
        while self._views:
            folder, view = next(iter(self._views.items()))
            if view.used > before and len(self._views) <= MOST_VIEWS:
                return
            del self._views[folder]
            self._engine.tell(CloseWorkspace(folder))


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
