"""Open documents that hold secrets, by path or content. Their text is withheld, and the user learns
why."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lsp_server.shared.processes.background import in_background
from lsp_server.text.documents.allowed_files import AllowedFiles, allowed_file
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.documents.uri_paths import paths_in
from lsp_server.text.text_edit import TextEdit
from repo_index.secret_paths import secret_path
from repo_index.secrets import secret_content, secret_content_by_parts

LONG_TEXT = 100_000
"""Characters. A longer text is looked at in parts, and others have their turn meanwhile."""
NOT_KNOWN = "it is being found out whether there are secrets in it"
AROUND_CHARACTERS = 1_500
"""A secret that is typed ends at most so far from where the text changes."""


@dataclass(slots=True)
class _Verdict:
    """The findings about one document; a text's reason is None until the text is searched."""

    document: Document
    path_reason: str
    text_reason: str | None = None
    search: asyncio.Task[None] | None = None
    """Finds the text's reason."""
    is_doubtful: bool = False
    """A secret may have been typed since the search began."""


class SecretDocuments:
    """Judges the open documents of one client."""

    def __init__(self, allowed: AllowedFiles) -> None:
        self.on_known: Callable[[Document], None] | None = None
        """Told of a long text once it is known, which is held back until then. Without it any text
        is looked at when that is asked."""
        self._allowed = allowed
        self._verdicts: dict[str, _Verdict] = {}

    def withheld_reason(self, document: Document) -> str:
        """Return why a document is held back; empty when it is not, or when the user allows it."""
        reason = self.secret_reason(document)
        return "" if reason and document.uri in self._allowed else reason

    def secret_reason(self, document: Document) -> str:
        """Return why a document seems to hold secrets, allowed or not; empty when it does not."""
        verdict = self._verdict_of(document)
        if verdict.path_reason:
            return verdict.path_reason
        if verdict.text_reason is None and not self._is_searched(verdict):
            verdict.text_reason = secret_content(document.text)
        return NOT_KNOWN if verdict.text_reason is None else verdict.text_reason

    def _is_searched(self, verdict: _Verdict) -> bool:
        if verdict.search is None and self.on_known and len(verdict.document.text) > LONG_TEXT:
            verdict.search = in_background(self._search(verdict, self.on_known))
        return verdict.search is not None

    async def _search(self, verdict: _Verdict, on_known: Callable[[Document], None]) -> None:
        document, reason = verdict.document, ""
        text: str | None = None
        # What was found may be gone by now, and what was typed may be a secret.
        while text is None or ((reason or verdict.is_doubtful) and text != document.text):
            text, reason, verdict.is_doubtful = document.text, "", False
            for secret in secret_content_by_parts(text):
                reason = secret
                await asyncio.sleep(0)
        verdict.text_reason, verdict.search = reason, None
        on_known(document)

    def is_known(self, document: Document) -> bool:
        """Return whether a document was looked at."""
        return self.secret_reason(document) != NOT_KNOWN

    def changed(self, document: Document, edit: TextEdit[Position]) -> None:
        """``edit`` was made in a document, which reads as it does after it."""
        verdict = self._verdict_of(document)
        if verdict.path_reason or (verdict.text_reason is None and verdict.search is None):
            return
        if verdict.text_reason or len(edit.text) > LONG_TEXT:
            # What was found may be gone, or may be elsewhere now.
            verdict.text_reason, verdict.is_doubtful = None, True
        elif secret_content(_text_around(document, edit)):
            verdict.text_reason, verdict.is_doubtful = None, True

    def closed(self, uri: str) -> None:
        """A document was closed."""
        if (verdict := self._verdicts.pop(uri, None)) is not None and verdict.search is not None:
            verdict.search.cancel()

    def close(self) -> None:
        """The client has gone."""
        for uri in list(self._verdicts):
            self.closed(uri)

    def _verdict_of(self, document: Document) -> _Verdict:
        verdict = self._verdicts.get(document.uri)
        if verdict is None or verdict.document is not document:
            self.closed(document.uri)
            verdict = _Verdict(document, path_reason(document.uri))
            self._verdicts[document.uri] = verdict
        return verdict


def file_reason(path: Path, text: str) -> str:
    """Return why a file is held back; empty when it is not, or when the user allows it."""
    document = Document(path.absolute().as_uri(), "", 0, text)
    return SecretDocuments(AllowedFiles(allowed_file())).withheld_reason(document)


def may_hold_secrets(path: str, text: str) -> bool:
    """Return whether a text of a file seems to hold secrets, allowed or not."""
    return bool(secret_path(path) or secret_content(text))


def withheld_warning(reason: str) -> str:
    """Return the warning for an edit in a withheld document."""
    return f"the file is held back ({reason}); the model on this machine read the selection"


def path_reason(uri: str) -> str:
    """Return why a URI's paths, or what they lead to on this disk, may hold secrets."""
    paths = paths_in(uri)
    for path in paths:
        if reason := secret_path(path):
            return reason
    for path in paths:
        if os.path.isabs(path) and (reason := secret_path(_target(path))):
            return reason
    return ""


def _target(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def _text_around(document: Document, edit: TextEdit[Position]) -> str:
    lines = document.lines
    first = min(edit.start.line, len(lines) - 1)
    last = min(first + edit.text.count("\n") + edit.text.count("\r") + 1, len(lines) - 1)
    before, after = lines[first][: edit.start.column], "".join(lines[first : last + 1])
    offset = len(before)
    while first > 0 and offset < AROUND_CHARACTERS:
        first -= 1
        after = lines[first] + after
        offset += len(lines[first])
    end = offset + len(edit.text)
    while last < len(lines) - 1 and len(after) - end < AROUND_CHARACTERS:
        last += 1
        after += lines[last]
    return after[max(0, offset - 2 * AROUND_CHARACTERS) : end + 2 * AROUND_CHARACTERS]
