"""What an engine must know of a workspace before it answers: its index and its open documents.

The ingress keeps it and sends what has changed with the next request; a replica that lacks more,
because the session came from another one, says so and is sent that.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lsp_server.engine.client import EngineClient
from lsp_server.protocol.framing import Frame

IDLE_S = 1800.0
"""A replica lets go of a view that no request came for in so long."""
MOST_VIEWS = 1024
OPERATIONS = ("open_workspace", "reload_index", "close_workspace", "set_buffer", "close_buffer")


class ViewPart(NamedTuple):
    """What travels with a request."""

    opened: dict[str, Any]
    """The frame that opened the workspace."""
    index_state: str
    """Another for every state of the index."""
    buffers: dict[str, str]
    """Hashes of all open documents, by path."""
    texts: dict[str, str]
    """Texts of those that the replica may lack."""


@dataclass(slots=True)
class _KeptView:
    opened: Frame
    index: str
    texts: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)


class KeptViews:
    """The views of an ingress."""

    def __init__(self) -> None:
        self._views: dict[str, _KeptView] = {}

    def take(self, frame: Frame) -> None:
        """A frame of :data:`OPERATIONS` for the engine."""
        folder, operation = frame["folder"], frame["op"]
        if operation == "open_workspace":
            self._views[folder] = _KeptView(frame, secrets.token_hex(8))
            return
        view = self._views.get(folder)
        if view is None:
            return
        if operation == "reload_index":
            view.index = secrets.token_hex(8)
            if "store" in view.opened:
                view.opened = {**view.opened, "store": frame["store"]}
        elif operation == "close_workspace":
            del self._views[folder]
        elif operation == "set_buffer":
            view.texts[frame["path"]] = frame["text"]
            view.hashes[frame["path"]] = _hash(frame["text"])
        else:
            view.texts.pop(frame["path"], None)
            view.hashes.pop(frame["path"], None)

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
        folder = part.opened["folder"]
        view = self._views.get(folder)
        if view is None:
            self._engine.pass_on(part.opened)
            view = self._views[folder] = _OpenView(part.index_state, 0.0)
        elif view.index != part.index_state:
            store = part.opened.get("store", "")
            self._engine.pass_on({"op": "reload_index", "folder": folder, "store": store})
            view.index = part.index_state
        view.used = time.monotonic()
        self._views.move_to_end(folder)
        for path, text in part.texts.items():
            self._engine.pass_on({"op": "set_buffer", "folder": folder, "path": path, "text": text})
            view.hashes[path] = _hash(text)
        for path in view.hashes.keys() - part.buffers.keys():
            del view.hashes[path]
            self._engine.pass_on({"op": "close_buffer", "folder": folder, "path": path})
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
            self._engine.pass_on({"op": "close_workspace", "folder": folder})


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
