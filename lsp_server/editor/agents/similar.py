"""Places of a workspace that are like a text, as its index tells: the one that the daemon keeps."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.editor.daemon.control import ask_daemon

if TYPE_CHECKING:
    from lsp_server.engine.workspaces import WorkspaceIndexes

LONGEST_TEXT = 4_000
MOST_PLACES = 8


@dataclass(frozen=True, slots=True)
class SimilarPlace:
    """``text``: whole lines of the file at ``path``, as the index has them."""

    folder: Path
    path: str
    text: str


class SimilarPlaces:
    """Looks in the indexes of some folders. They are mapped when they are asked for first."""

    def __init__(self) -> None:
        self._indexes: dict[str, WorkspaceIndexes] = {}
        self._lock = threading.Lock()

    def find(self, folder: Path, text: str) -> tuple[list[SimilarPlace], str] | None:
        """Return the places of a folder that are most like a text, the best first, and what is to
        be said of the index; None without one. Takes a moment, so not for the event loop."""
        status = ask_daemon("status") or {"workspaces": []}
        own = [state for state in status["workspaces"] if state["folder"] == str(folder)]
        stored = [state for state in own if state["store"]]
        if not stored:
            return None
        with self._lock:
            reason = "" if stored[0]["state"] == "ready" else "the index is not complete yet"
            return self._found(folder, stored[0], text), reason

    def _found(self, folder: Path, stored: dict[str, str], text: str) -> list[SimilarPlace]:
        from lsp_server.engine.workspaces import WorkspaceIndexes
        from lsp_server.tasks.completion.cross_file import whole_lines
        from lsp_server.tasks.completion.similar_places import IndexedFiles, similar_places

        model = stored["model"]
        indexes = self._indexes.setdefault(model, WorkspaceIndexes(model, common=False))
        indexes.reload(str(folder), stored["store"])
        snapshot = indexes.snapshot(str(folder))
        if snapshot is None:
            return []
        tokenizer = indexes.tokenizer
        query = tokenizer.encode([text[:LONGEST_TEXT]])[0]
        similar = similar_places(IndexedFiles(snapshot), query, "", MOST_PLACES)
        return [
            SimilarPlace(folder, path, whole_lines(tokenizer.decode(tokens)))
            for path, tokens in similar
        ]
