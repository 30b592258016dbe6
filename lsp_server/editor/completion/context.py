"""Open documents as context for another: their definitions, in a stable order."""

from __future__ import annotations

from collections.abc import Callable

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.contract.jobs import ContextSnippet
from lsp_server.shared.settings import ContextSettings
from lsp_server.text.documents.document import Document, Documents
from lsp_server.text.documents.workspace_folders import Folders
from lsp_server.text.syntax.outline import outline

MOST_FILES = 6
CHARACTERS = 1_600
"""Of one open document."""


class OpenFiles:
    """Outlines of one client's open documents, made once for each version."""

    def __init__(
        self, documents: Documents, folders: Folders, counts_elsewhere: Callable[[Document], bool]
    ) -> None:
        """``counts_elsewhere``: whether a document's text may be in another's prompt."""
        self._documents = documents
        self._folders = folders
        self._counts_elsewhere = counts_elsewhere
        self._known: dict[str, tuple[Document, int, str]] = {}

    def snippets(self, ask: CompletionRequest, settings: ContextSettings) -> list[ContextSnippet]:
        """Return other open documents of the language, by name, of those that count elsewhere."""
        if not settings.cross_file:
            return []
        self._forget_closed()
        snippets: list[ContextSnippet] = []
        for document in sorted(self._documents, key=lambda document: document.uri):
            if document.uri == ask.document or document.language != ask.language:
                continue
            if self._documents.notebook_of(document.uri) is not None:
                continue
            if self._counts_elsewhere(document) and (text := self._outline(document)):
                snippets.append(ContextSnippet(self._folders.place(document.uri).path, text))
            if len(snippets) == MOST_FILES:
                break
        return snippets

    def _outline(self, document: Document) -> str:
        kept_outline = self._known.get(document.uri)
        if (
            kept_outline is not None
            and kept_outline[0] is document
            and kept_outline[1] == document.version
        ):
            return kept_outline[2]
        text = outline(document.text.replace("\r\n", "\n"), CHARACTERS)
        self._known[document.uri] = document, document.version, text
        return text

    def _forget_closed(self) -> None:
        for uri in [uri for uri in self._known if self._documents.find(uri) is None]:
            del self._known[uri]
