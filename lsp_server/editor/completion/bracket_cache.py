"""The brackets of the documents in which the user completes, parsed ahead of the next request."""

from __future__ import annotations

import asyncio

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.text.syntax.incremental_brackets import IncrementalBrackets

DOCUMENTS = 64
"""So many are kept; the one that was seen first goes first."""
PARSED_AT_ONCE = 20_000
"""Characters. A longer document is parsed beside the event loop when it is seen first."""


class DocumentBrackets:
    """Syntax by document and language. The event loop owns it."""

    def __init__(self) -> None:
        self._brackets: dict[tuple[str, str], IncrementalBrackets | None] = {}

    def syntax_of(self, ask: CompletionRequest) -> IncrementalBrackets | None:
        """Return the brackets of a document; None without a grammar, and while a long document is
        parsed for the first time."""
        key = (ask.document, ask.language)
        if key not in self._brackets:
            while len(self._brackets) >= DOCUMENTS:
                del self._brackets[next(iter(self._brackets))]
            self._brackets[key] = None
            self._begin(key, ask)
        return self._brackets[key]

    def forget(self, document: str) -> None:
        """A document was closed."""
        self._brackets = {
            key: brackets for key, brackets in self._brackets.items() if key[0] != document
        }

    def _begin(self, key: tuple[str, str], ask: CompletionRequest) -> None:
        if len(ask.prefix) + len(ask.suffix) > PARSED_AT_ONCE:
            parsing = asyncio.get_running_loop().run_in_executor(None, _parsed, ask)
            parsing.add_done_callback(lambda done: self._arrived(key, done))
        else:
            self._brackets[key] = _parsed(ask)

    def _arrived(
        self, key: tuple[str, str], done: asyncio.Future[IncrementalBrackets | None]
    ) -> None:
        if key in self._brackets and not done.cancelled():
            self._brackets[key] = done.result()


def _parsed(ask: CompletionRequest) -> IncrementalBrackets | None:
    brackets = IncrementalBrackets.of(ask.language, ask.path)
    if brackets is not None:
        brackets.around(ask.prefix + ask.suffix, 0, 0)
    return brackets
