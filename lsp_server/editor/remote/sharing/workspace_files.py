"""Selects the files of a workspace that may be sent: those that this machine indexes, too.

What is ignored and what seems to hold secrets is not among them, neither content nor path.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from lsp_server.team.repositories.paths import path_problem
from repo_index.files import Fingerprint, Limits
from repo_index.reading import Content, read_content
from repo_index.source_tree import IGNORE_FILES, FolderTree

MOST_BYTES = 1 << 20
"""Of one file, as it is sent."""


@dataclass(frozen=True, slots=True)
class _KnownFile:
    """``digest`` is empty for a file that is left out for what it holds."""

    fingerprint: Fingerprint
    digest: str


class WorkspaceFiles:
    """Hashes by path. Blocks; used by one thread at a time."""

    def __init__(self, folder: str, exclude: list[str], max_file_bytes: int) -> None:
        """``exclude`` and ``max_file_bytes``: what the user's settings leave out."""
        limits = Limits(bytes=max_file_bytes)
        self.tree = FolderTree(Path(folder), limits, patterns="\n".join(exclude))
        self._known: dict[str, _KnownFile] = {}

    def hashes(self) -> dict[str, str]:
        """SHA-256 of all files that may be sent, by path."""
        self.tree.forget()
        known = {}
        for path, fingerprint in self.tree.walk():
            if path_problem(path):
                continue
            file = self._known.get(path)
            if file is None or file.fingerprint != fingerprint:
                file = self._looked_at(path)
            if file is not None:
                known[path] = file
        self._known = known
        return {path: file.digest for path, file in known.items() if file.digest}

    def hashes_of(self, paths: list[str]) -> dict[str, str | None] | None:
        """SHA-256 of files that may have changed, None for those that are gone or may not be sent.
        None for all when more may have changed than these: an ignore file, or a whole folder."""
        changed: dict[str, str | None] = {}
        for path in paths:
            if path.rpartition("/")[2] in IGNORE_FILES or self.tree.is_folder(path):
                return None
            before = self._known.pop(path, None)
            if before is None and any(known.startswith(f"{path}/") for known in self._known):
                return None
            left_out = path_problem(path) or self.tree.excluded(path)
            file = None if left_out else self._looked_at(path)
            if file is not None:
                self._known[path] = file
            digest = file.digest if file is not None else ""
            if digest != (before.digest if before is not None else ""):
                changed[path] = digest or None
        return changed

    def text(self, path: str, digest: str) -> str | None:
        """What is sent of a file; None when it holds something else now."""
        content = self._content(path)
        text = _as_sent(path, content) if content is not None else None
        return text if text is not None and _digest(text) == digest else None

    def _looked_at(self, path: str) -> _KnownFile | None:
        content = self._content(path)
        if content is None:
            return None
        text = _as_sent(path, content)
        return _KnownFile(content.fingerprint, "" if text is None else _digest(text))

    def _content(self, path: str) -> Content | None:
        try:
            return read_content(self.tree.root, path, self.tree.rules.limits.bytes, compiled=False)
        except OSError:
            return None


def _as_sent(path: str, content: Content) -> str | None:
    """The text as it is indexed, in a form that is read as this text; None where it may not be sent
    or is too long. A notebook is sent without its outputs: the index does not read them either."""
    if content.reason:
        return None
    text = content.text
    if path.casefold().endswith(".ipynb"):
        text = json.dumps({"cells": [{"source": text}]})
    return text if len(text.encode()) <= MOST_BYTES else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
