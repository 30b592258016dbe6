"""Text of other files that goes along with requests to a server, which drafts from it."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from lsp_server.engine.similar_text import similar_text
from lsp_server.shared.contract.jobs import CompletionJob, ContextSnippet, EditJob
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.processes.background import in_background
from lsp_server.shared.processes.function_process import FunctionProcess
from lsp_server.text.byte_budget import fitting_snippets

logger = logging.getLogger(__name__)

DOCUMENTS = 64
COMPILED_S = 300.0
"""Seconds that a lookup may take: the first one compiles its code, and no request waits for it."""
STAY_LINES = 40
"""Places stay the same until the cursor has moved this far: the server has read them."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Text for a document: continuations with the cursor in ``line``, places in ``places_line``."""

    line: int
    continuations: ContextSnippet
    places_line: int
    places: list[ContextSnippet]


class SimilarText:
    """Text for documents, looked up in another process. No request waits for that: each takes what
    was found when the cursor last came to another line."""

    def __init__(self, find_store: Callable[[str], tuple[str, str] | None]) -> None:
        """``find_store``: the datastore of a workspace and the model that it is for."""
        self._find_store = find_store
        self._lookups = FunctionProcess(COMPILED_S)
        self._chosen: OrderedDict[tuple[str, str], _Chosen] = OrderedDict()
        self._choosing: set[tuple[str, str]] = set()
        self._forgotten = 0
        """Counts ``forget``: a lookup that began before is out of date."""

    def for_job(self, job: CompletionJob | EditJob, most_bytes: int) -> list[ContextSnippet]:
        """Return what goes along with ``job``, at most ``most_bytes`` of UTF-8."""
        document, (before, after) = (job.workspace, job.path), job.similar_to
        line, chosen = before.count("\n"), self._chosen.get(document)
        is_fresh = chosen is not None and chosen.line == line
        if job.workspace and not is_fresh and document not in self._choosing:
            self._choosing.add(document)
            in_background(self._choose(document, before, after, line))
        if chosen is None:
            return []
        return fitting_snippets(most_bytes, [chosen.continuations, *chosen.places])

    async def _choose(self, document: tuple[str, str], before: str, after: str, line: int) -> None:
        folder, path = document
        forgotten = self._forgotten
        try:
            store = self._find_store(folder)
            if store is None:
                return
            continuations, similar = await self._lookups.call(
                similar_text, *store, path, before, after
            )
        except (RedraftError, RuntimeError) as error:
            logger.info("nothing goes along with requests: %s", error)
            return
        finally:
            self._choosing.discard(document)
        if forgotten != self._forgotten:
            return
        earlier, places_line = self._chosen.pop(document, None), line
        if earlier is not None and abs(line - earlier.places_line) <= STAY_LINES:
            places_line, similar = earlier.places_line, earlier.places
        self._chosen[document] = _Chosen(line, continuations, places_line, similar)
        if len(self._chosen) > DOCUMENTS:
            self._chosen.popitem(last=False)

    def forget(self, folder: str) -> None:
        """Choose anew for the documents of ``folder``: it is closed, or its files changed."""
        self._forgotten += 1
        for document in [document for document in self._chosen if document[0] == folder]:
            del self._chosen[document]

    async def close(self) -> None:
        """End the process."""
        await self._lookups.close()
