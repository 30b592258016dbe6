"""Looks up, in a process of the daemon, what is sent to a server of the client's own datastore."""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.shared.contract.jobs import ContextSnippet
from lsp_server.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from repo_index.datastore import Datastore
    from repo_index.tokens import TextTokenizer

BEFORE_CHARACTERS, AFTER_CHARACTERS = 4000, 1000
_lock = threading.Lock()


def similar_text(
    store: str, model: str, path: str, before: str, after: str
) -> tuple[ContextSnippet, list[ContextSnippet]]:
    """Return continuations of the text ``before`` the cursor and the places most like the text
    around it, from the datastore ``store`` for the tokenizer of ``model``. Raises
    ModelUnavailable."""
    # Imported here: the daemon, which names this function, loads no arrays.
    from lsp_server.tasks.completion.sent_text import continuations_to_send, places_to_send
    from lsp_server.tasks.completion.similar_places import IndexedFiles

    with _lock:
        datastore, tokenizer = _opened(store, model)
        datastore.reload_if_changed()
        files = IndexedFiles(datastore.snapshot())
    head, tail = tokenizer.encode(
        [
            replace_surrogates(before[-BEFORE_CHARACTERS:]),
            replace_surrogates(after[:AFTER_CHARACTERS]),
        ]
    )
    snippets = places_to_send(files, head, tail, path, tokenizer.decode)
    return continuations_to_send(files, head, tokenizer.decode), snippets


@cache
def _opened(store: str, model: str) -> tuple[Datastore, TextTokenizer]:
    from lsp_server.engine.workspaces import text_tokenizer
    from repo_index.datastore import Datastore

    tokenizer = text_tokenizer(model)
    return Datastore(Path(store), tokenizer.sha256), tokenizer
