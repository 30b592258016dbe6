"""The open documents of one editor, rebuilt from the edits it sends. They stay in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from lsp_server.team.repositories.errors import BufferMismatch, InvalidUpload, QuotaExceeded
from lsp_server.team.repositories.limits import RepositoryLimits
from lsp_server.team.repositories.paths import path_problem
from repo_index.common_ends import common_ends
from repo_index.secret_paths import secret_path


@dataclass(frozen=True, slots=True)
class BufferEdit:
    """What changed in a text: ``text`` is where ``start`` to ``stop`` was (characters).
    ``start`` and ``stop`` are both 0 and ``base`` is empty for a text that is sent whole."""

    path: str
    start: int
    stop: int
    text: str
    base: str
    """``text_hash`` of the text before."""


def text_hash(text: str) -> str:
    """Tells two texts apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def edit_between(path: str, old: str, new: str) -> BufferEdit:
    """The smallest edit in one piece that makes ``new`` of ``old``."""
    start, after = common_ends(old, new)
    return BufferEdit(path, start, len(old) - after, new[start : len(new) - after], text_hash(old))


class SentBuffers:
    """The texts of one editor's open documents, by path."""

    def __init__(self, limits: RepositoryLimits) -> None:
        self.texts: dict[str, str] = {}
        self._limits = limits

    def apply(self, edit: BufferEdit) -> str:
        """Follow an edit; the text as it is then. Raises RepositoryError."""
        if problem := path_problem(edit.path) or secret_path(edit.path):
            raise InvalidUpload(f"the path of a buffer cannot be used: {problem}")
        if edit.path not in self.texts and len(self.texts) >= self._limits.buffers:
            raise QuotaExceeded(f"at most {self._limits.buffers} buffers are open at a time")
        old = self.texts.get(edit.path, "")
        if edit.base and text_hash(old) != edit.base:
            raise BufferMismatch
        if not edit.base:
            old = ""
        if not 0 <= edit.start <= edit.stop <= len(old):
            raise BufferMismatch
        new = old[: edit.start] + edit.text + old[edit.stop :]
        if len(new) > self._limits.buffer_characters:
            raise QuotaExceeded(
                f"a buffer may have at most {self._limits.buffer_characters} characters"
            )
        self.texts[edit.path] = new
        return new

    def text(self, path: str) -> str:
        """The text of a document as it is now; empty when it is not open."""
        return self.texts.get(path, "")

    def close(self, path: str) -> bool:
        """A document was closed; whether it was open."""
        return self.texts.pop(path, None) is not None
