"""The syntax of the documents in which completions are asked for."""

from __future__ import annotations

import asyncio

from lsp_server.completion.request import CompletionRequest
from lsp_server.syntax.kept import KeptSyntax

DOCUMENTS = 64
"""So many are kept; the one that was seen first goes first."""
PARSED_AT_ONCE = 20_000
"""Characters. A longer document is parsed beside the event loop when it is seen first."""


class KeptDocuments:
    """Syntax by document and language. The event loop owns it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], KeptSyntax | None] = {}

    def syntax_of(self, ask: CompletionRequest) -> KeptSyntax | None:
        """What is known of a document; None where its language has no grammar, and while a long
        document is parsed for the first time."""
        key = (ask.document, ask.language)
        if key not in self._kept:
            while len(self._kept) >= DOCUMENTS:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = None
            self._begin(key, ask)
        return self._kept[key]

    def forget(self, document: str) -> None:
        """A document was closed."""
        self._kept = {key: kept for key, kept in self._kept.items() if key[0] != document}

    def _begin(self, key: tuple[str, str], ask: CompletionRequest) -> None:
        if len(ask.prefix) + len(ask.suffix) <= PARSED_AT_ONCE:
            self._kept[key] = _parsed(ask)
            return
        parsing = asyncio.get_running_loop().run_in_executor(None, _parsed, ask)
        parsing.add_done_callback(lambda done: self._arrived(key, done))

    def _arrived(self, key: tuple[str, str], done: asyncio.Future[KeptSyntax | None]) -> None:
        if key in self._kept and not done.cancelled():
            self._kept[key] = done.result()


def _parsed(ask: CompletionRequest) -> KeptSyntax | None:
    """The syntax of a document that is new here."""
    kept = KeptSyntax.of(ask.language, ask.path)
    if kept is not None:
        kept.around(ask.prefix + ask.suffix, 0, 0)
    return kept
