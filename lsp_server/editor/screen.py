"""Decides what the user of one client sees at a cursor, so that one key never has two meanings.

What syntax settles comes first where the last change led to it, then ghost text, then a next edit
of a model. What was shown first for a text stays until the text changes. While a chain of next
edits goes on, the key belongs to it.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from lsp_server.shared.settings import ScreenSettings
from lsp_server.text.documents.document import Document, Position

NEXT_EDIT_FIRST = "a next edit comes first here"
ONLY_ASKED = "nothing comes before a key asks for it: the setting redraft.screen.onlyAsked"

ASKED_S = 0.3
"""So long after the last key an editor has asked for ghost text, if it does: Neovim after 0.2 s."""
WHOLE_S = 0.4
"""So long after its last key a name that the text has elsewhere, too, is whole."""
DECIDED_S = 1.0
"""So long what comes behind ghost text waits for an answer at most."""


class SettledEdits(Protocol):
    """The next edits of the client."""

    @property
    def goes_on(self) -> bool:
        """True if the last change took a next edit, or typed the beginning of one."""

    def settled(self) -> Awaitable[bool]:
        """True if the last change led to next edits that need no model and wait for the user."""


class Screen:
    """The suggestions and next edits that one client shows. Not thread-safe: the event loop owns
    it."""

    def __init__(
        self,
        next_edits: SettledEdits,
        settings: Callable[[], ScreenSettings] = ScreenSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._next_edits = next_edits
        self._settings = settings
        self._clock = clock
        self._changed_s = -math.inf
        """When a text was last changed."""
        self.draws_next_edits = False
        """Whether the client asked for any. From one that draws none nothing is held back."""
        self.draws_suggestions = False
        """The client asks for ghost text by itself, so a menu would show the same again."""
        self._suggested: dict[str, Position] = {}
        """Where ghost text was shown for the text of a document as it is."""
        self._proposed: set[str] = set()
        """Documents in which a next edit was shown for the text as it is."""
        self._undecided: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        """Requests for ghost text that are not answered, by document."""

    def changed(self, uri: str) -> None:
        """The text of a document is another one, or it was closed."""
        self._changed_s = self._clock()
        self._suggested.pop(uri, None)
        self._proposed.discard(uri)

    async def is_time(self, *, is_asked_for: bool) -> bool:
        """Return True if the user's settings allow a suggestion now; waits until no key has come
        for as long as they say."""
        settings = self._settings()
        if is_asked_for:
            return True
        if settings.only_asked:
            return False
        while (remaining := self._changed_s + settings.idle_ms / 1000 - self._clock()) > 0:
            await asyncio.sleep(remaining)
        return True

    def held_back(self, uri: str) -> str:
        """Return why unrequested ghost text may not come in a document, as far as that is known at
        once; empty if it may."""
        if self._settings().only_asked:
            return ONLY_ASKED
        is_taken = self._next_edits.goes_on or uri in self._proposed
        return NEXT_EDIT_FIRST if self.draws_next_edits and is_taken else ""

    async def shows_suggestion(
        self, document: Document, position: Position, *, is_asked_for: bool
    ) -> bool:
        """Return True if ghost text may come at a position. If so, it counts as shown there."""
        version = document.version
        if not is_asked_for:
            is_settled = self.draws_next_edits and await self._next_edits.settled()
            is_time = await self.is_time(is_asked_for=False)
            if is_settled or not is_time or self.held_back(document.uri):
                return False
        if document.version != version:
            return False
        self._suggested[document.uri] = position
        return True

    @contextmanager
    def deciding(self, uri: str) -> Iterator[None]:
        """While a request for ghost text is answered."""
        decided = asyncio.get_running_loop().create_future()
        self._undecided[uri].add(decided)
        try:
            yield
        finally:
            self._undecided[uri].discard(decided)
            decided.set_result(None)

    async def suggestion_decided(self, uri: str) -> None:
        """Wait until it is known whether ghost text comes for a text as it is: an editor asks a
        moment after the last key."""
        if (remaining := self._changed_s + ASKED_S - self._clock()) > 0:
            await asyncio.sleep(remaining)
        if undecided := list(self._undecided[uri]):
            await asyncio.wait(undecided, timeout=DECIDED_S)

    async def is_name_whole(self, document: Document, position: Position) -> bool:
        """Return True if a name of which ``document`` has another one ends at ``position``, and no
        key has come for ``WHOLE_S``: a menu of completions would change it."""
        version, line = document.version, document.lines[position.line]
        name = re.search(r"\w+\Z", line[: position.column])
        if not name or len(re.findall(rf"\b{name[0]}\b", document.text)) < 2:
            return False
        await asyncio.sleep(self._changed_s + WHOLE_S - self._clock())
        return document.version == version

    def shows_next_edit(self, document: Document, position: Position) -> bool:
        """Return True if next edits may come while the cursor is at a position. If so, they count
        as shown; else they wait behind ghost text."""
        if self._suggested.get(document.uri) == position:
            return False
        self._proposed.add(document.uri)
        return True
