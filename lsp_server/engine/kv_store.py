"""Stores the KV caches of recent documents on disk, but for those that may hold secrets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.engine.kv_files import KvFile, KvFiles
from lsp_server.engine.kv_folder import kv_name
from lsp_server.shared.version import VERSION

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.execution.session import Session

Document = tuple[str, str]
"""Workspace and path."""

FEWEST_TOKENS = 256
"""What is shorter is computed as soon as it is read."""
COVERED = 0.75
"""A file that holds so much of a cache is as good as a new one."""


class KvStore:
    """The stored KV caches of one model's documents."""

    def __init__(self, files: KvFiles, model: str, decode: Callable[[Any], str]) -> None:
        """``model``: names the model and the format of its caches."""
        self._files, self._model, self._decode = files, model, decode
        self._written: dict[Document, Any] = {}
        """Tokens that are on disk, by document."""
        self._secret: set[Document] = set()

    def note(self, document: Document, secret: bool) -> None:
        """A job of a document begins; ``secret``: whether it may hold secrets."""
        if secret:
            self.forget(document)
            self._secret.add(document)
        else:
            self._secret.discard(document)

    def forget(self, document: Document) -> None:
        """Delete what is stored of a document."""
        self._written.pop(document, None)
        self._files.delete(self._name(document))

    def load(self, document: Document) -> KvFile | None:
        """Return the stored cache of a document; None where there is none or must be none."""
        if document in self._secret:
            return None
        file = self._files.load(self._name(document))
        if file is not None:
            self._written[document] = file.tokens
        return file

    def save(
        self,
        document: Document,
        session: Session,
        snippets: dict[str, Any],
        interrupted: Callable[[], bool],
    ) -> None:
        """Store the cache of a document unless what is on disk is as good."""
        if document in self._secret or session.length < FEWEST_TOKENS:
            return
        written = self._written.get(document)
        if written is not None and session.common(written) >= COVERED * session.length:
            return
        # What finds secrets takes a while to import.
        from lsp_server.text.documents.secret_documents import may_hold_secrets

        state = session.cache.state()
        if state is None or may_hold_secrets(document[1], self._decode(session.tokens)):
            return
        file = KvFile(snippets, session.tokens, state)
        if self._files.save(self._name(document), file, interrupted):
            self._written[document] = session.tokens

    def _name(self, document: Document) -> str:
        return kv_name(*document, self._model)


def kv_store_of(engine: Engine, megabytes: int, folder: Path) -> KvStore | None:
    """Return the store of a model in a folder; None where nothing is to be stored."""
    files = KvFiles(folder, megabytes << 20)
    files.evict()
    if not megabytes or not engine.model.fingerprint:
        return None
    model = (
        f"{engine.model.fingerprint} {engine.execution_path} {engine.dtype} "
        f"{engine.model.kv_type} {VERSION}"
    )
    return KvStore(files, model, engine.tokenizer.decode)
