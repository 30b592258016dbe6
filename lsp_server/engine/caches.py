"""Caches of a model for documents and for texts that it wrote, in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.engine.kv_store import Document, KvStore, kv_store_of
from lsp_server.shared.contract.jobs import AcceptedText, CompletionJob, is_scope_of
from lsp_server.tasks.completion.cross_file import CrossFile
from lsp_server.tasks.pool import Key, Pool
from lsp_server.tasks.task import Cancelled
from lsp_server.text.surrogates import replace_surrogates

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.draft_tree import TokenArray
    from accel.drafting.base import Drafter
    from accel.drafting.history import History
    from accel.execution.session import Session

MAX_SESSIONS = 1024
"""Of idle documents, where a cache cannot be cut into stretches."""
READY_SESSIONS = 16
"""Of idle documents and prompts whose caches can be used as they are; the engine keeps what others
held in stretches, within its budget."""
LOST = 0.25
"""Share of a session's text from which on it is kept before another text takes its place."""
MAX_DRAFTERS = 64
"""Each knows what its workspace wrote of late."""


class Caches:
    """KV caches, drafters and what is in prompts, by document. Made new they know nothing, and
    nothing of them outlives them."""

    def __init__(self, engine: Engine) -> None:
        is_cut = engine.session().cache.is_cut
        self.sessions: Pool[Session] = Pool(READY_SESSIONS if is_cut else MAX_SESSIONS, engine.keep)
        self.drafters: Pool[Drafter] = Pool(MAX_DRAFTERS)
        self.cross_file = CrossFile(self._encode, engine.tokenizer.decode)
        self.history: History | None = None
        self.kv_store: KvStore | None = None
        self.seen_documents: set[Document] = set()
        """Whose caches on disk were looked for."""
        self._engine = engine

    @classmethod
    def kept(cls, engine: Engine, megabytes: int, folder: Path | None) -> Caches:
        """Return those of a model that goes on where it was: ``folder`` has KV caches of documents;
        None: they are not kept."""
        from accel.drafting.history import History

        caches = cls(engine)
        caches.history = History()
        if folder is not None:
            caches.kv_store = kv_store_of(engine, megabytes, folder)
        return caches

    def mixture(self) -> Drafter:
        """Return a drafter over all sources."""
        from accel.decoding.completion_drafter import drafter_of

        return drafter_of(self._engine, history=self.history)

    def _encode(self, text: str) -> TokenArray:
        return self._engine.tokenizer.encode(replace_surrogates(text))

    def begin(self, job: CompletionJob) -> None:
        """Know of a document what is on disk, when a job of it comes first."""
        if self.kv_store is None:
            return
        document = job.scope, job.path
        self.kv_store.note(document, job.secret)
        if document in self.seen_documents:
            return
        self.seen_documents.add(document)
        file = self.kv_store.load(document)
        if file is None:
            return
        session = self._engine.session()
        try:
            session.restore(file.tokens, file.state)
            self.cross_file.recall(job, file.about)
        except (ValueError, KeyError, TypeError, MemoryError):
            self.kv_store.forget(document)
        else:
            self.sessions.release(("complete", *document), session)

    def save(self, interrupted: Cancelled) -> None:
        """Save the KV caches of documents to the disk, until something comes."""
        if self.kv_store is None:
            return
        for document in list(self.seen_documents):
            sessions = self.sessions.idle(("complete", *document))
            if interrupted():
                return
            if sessions:
                snippets = self.cross_file.state_of(document)
                self.kv_store.save(document, sessions[-1], snippets, interrupted)

    def remember(self, accepted: AcceptedText) -> None:
        """A user took a suggestion: it counts twice among what was written there."""
        if self.history is not None and accepted.scope:
            before, text = self._encode(accepted.before), self._encode(accepted.text)
            self.history.remember(accepted.scope, before, text)

    def forget_document(self, workspace: str, path: str) -> None:
        """A document is held back now: nothing of it is kept."""
        for document in ((workspace, path), ("", path)):
            self._forget(("complete", *document).__eq__)
            if self.kv_store is not None:
                self.kv_store.note(document, secret=True)

    def close_workspace(self, folder: str) -> None:
        """Forget a workspace that no client has open any more."""
        self.cross_file.forget(folder)

        def is_of_workspace(key: Key) -> bool:
            return any(is_scope_of(scope, folder) for scope in key[1:])

        self._forget(is_of_workspace)
        self.drafters.forget(is_of_workspace)

    def _forget(self, matches: Callable[[Key], bool]) -> None:
        self.sessions.forget(matches)
        self._engine.prefixes.forget(matches)

    def close(self) -> None:
        """Let go of all."""
        self.sessions.clear()
        self.drafters.clear()

    @contextmanager
    def session_for(
        self, key: Key, prompt: TokenArray, *, shares: bool = False
    ) -> Iterator[Session]:
        """Lend a session of ``key`` that holds what is kept of ``prompt``. Where texts share the
        key, it is one that held a like text, and what it held of that is kept."""
        fits = partial(_in_common, prompt) if shares else None
        with self.sessions.acquire(key, self._engine.session, fits) as session:
            if shares and session.length - session.common(prompt) > LOST * session.length:
                self._engine.keep(key, session)
            self._engine.restore(key, prompt, session)
            yield session

    def held(self, key: Key, prompt: TokenArray) -> int:
        """Return how many tokens of ``prompt`` an idle session of ``key`` holds."""
        return max((session.common(prompt) for session in self.sessions.idle(key)), default=0)

    def copy_prompt(self, key: tuple[str, ...], prompt: TokenArray, session: Session) -> None:
        """Take over what a generation under way has computed of a prompt, where that is most of
        it and more than is held."""
        other = max(self.sessions.used(key), key=lambda used: used.common(prompt))
        common = other.common(prompt)
        if 2 * common >= len(prompt) and common > session.common(prompt):
            with suppress(MemoryError):
                # The prompt is computed then, or that says what there is no room for.
                session.copy(other)


def _in_common(prompt: TokenArray, session: Session) -> int:
    """Return the tokens of ``prompt`` that ``session`` saves, where they are half of either."""
    common = session.common(prompt)
    return common + 1 if 2 * common >= min(session.length, len(prompt)) else 0
