"""Text of other files that helps: what the document imports, then what else is open.

Order and cuts depend on little that changes while one types, so that the prompt's start, and with
it the KV cache, stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsp_server.completion.request import Ask
from lsp_server.documents import Document, Documents
from lsp_server.folders import Folders
from lsp_server.jobs import Snippet
from lsp_server.settings import ContextSettings

CHARACTERS_PER_TOKEN = 3
MAX_SNIPPETS = 4
MIN_CHARACTERS = 200
SCANNED_CHARACTERS = 20_000

_IMPORT = re.compile(
    r"^\s*(?:from\s+([.\w]+)\s+import|import\s+([.\w]+)"
    r"|(?:import|export)\b.*?from\s+['\"]([^'\"]+)['\"]|#include\s+\"([^\"]+)\")",
    re.MULTILINE,
)
_HEADING = re.compile(r"^(?:\s*(?:async\s+def|def|class|function|export|func|fn|pub|impl|type|interface|struct)\b.*|[A-Z_][A-Z0-9_]* *[:=].*)$", re.MULTILINE)  # fmt: skip  # noqa: E501


def snippets_for(
    ask: Ask, documents: Documents, folders: Folders, settings: ContextSettings
) -> list[Snippet]:
    """Snippets within the token budget, the most helpful last, next to the text itself."""
    if not settings.cross_file or settings.tokens <= 0:
        return []
    room = settings.tokens * CHARACTERS_PER_TOKEN
    snippets: list[Snippet] = []
    for document in _helpful(ask, documents):
        share = room // 2 if len(snippets) + 1 < MAX_SNIPPETS else room
        if share < MIN_CHARACTERS or len(snippets) == MAX_SNIPPETS:
            break
        text = outline(document, share)
        if text:
            snippets.append(Snippet(folders.place(document.uri).path, text))
            room -= len(text)
    return snippets[::-1]


def _helpful(ask: Ask, documents: Documents) -> Iterator[Document]:
    """Other open documents of the language: imported ones first, each group by name."""
    others = sorted(
        (
            document
            for document in documents
            if document.uri != ask.document
            and document.language == ask.language
            and documents.notebook_of(document.uri) is None
        ),
        key=lambda document: document.uri,
    )
    imported = imported_names(ask.prefix[:SCANNED_CHARACTERS])
    yield from (document for document in others if _stem(document.uri) in imported)
    yield from (document for document in others if _stem(document.uri) not in imported)


def imported_names(text: str) -> set[str]:
    """Last parts of the names of the modules that a text imports."""
    names = (next(filter(None, found.groups())) for found in _IMPORT.finditer(text))
    return {re.split(r"[./]", name.removesuffix(".h"))[-1] for name in names if name}


def _stem(uri: str) -> str:
    return uri.rsplit("/", 1)[-1].split(".", 1)[0]


def outline(document: Document, room: int) -> str:
    """What the document defines, one line each; the whole text when it is short."""
    text = document.text
    if len(text) <= room:
        return text
    kept: list[str] = []
    for found in _HEADING.finditer(text):
        room -= len(found.group()) + 1
        if room < 0:
            break
        kept.append(found.group())
    return "\n".join(kept)
