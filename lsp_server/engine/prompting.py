"""What an engine knows of documents, and their prompts: computed ahead, kept and forgotten."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lsp_server.shared.contract.jobs import (
    AcceptedText,
    AnyJob,
    CompletionJob,
    ContextSnippet,
    EditJob,
    GenerateJob,
    JobResult,
    is_scope_of,
)
from lsp_server.shared.contract.notes import (
    CloseBuffer,
    CloseWorkspace,
    ForgetDocument,
    Note,
    OpenWorkspace,
    ReloadIndex,
    SetBuffer,
)
from lsp_server.tasks.generating import (
    Budget,
    completion_beginning,
    completion_budget,
    completion_prompt,
    edit_prompt,
    generation_prompt,
    replace_surrogates,
    shown_job,
)

if TYPE_CHECKING:
    from accel.draft_tree import TokenArray
    from accel.forwards import Forwards
    from accel.request import GenerationRequest
    from accel.text.prompts import Prompt

from lsp_server.engine.loading import Cancelled, EngineLoading, never


def generate_key(job: GenerateJob, *, drafts_edits: bool) -> tuple[str, ...]:
    """What shares the caches of generations. Those that are drafted as edits are have another
    drafter."""
    return ("predict" if drafts_edits else "generate", job.scope, job.path)


def edit_key(job: EditJob) -> tuple[str, ...]:
    """What shares the caches of edits: all of one owner."""
    return ("edit", job.owner)


class EnginePrompts(EngineLoading):
    """Notes of workspaces and documents, and the caches of prompts."""

    def tell(self, note: Note) -> None:
        """Take a note of the daemon."""
        if isinstance(note, OpenWorkspace):
            self.indexes.open(note.folder, note.store)
        elif isinstance(note, ReloadIndex):
            self.indexes.reload(note.folder, note.store)
        elif isinstance(note, CloseWorkspace):
            self._close_workspace(note.folder)
        elif isinstance(note, SetBuffer):
            self.indexes.set_buffer(note.folder, note.path, replace_surrogates(note.text))
        elif isinstance(note, CloseBuffer):
            self.indexes.close_buffer(note.folder, note.path)
            self._cross_file.forget(note.folder, note.path)
        elif isinstance(note, ForgetDocument):
            self._forget_document(note.folder, note.path)
        else:
            self._remember(note)

    def index_workspace(self, folder: str) -> None:
        """Bring the datastore of a workspace in line in this process, and map it."""
        self.indexes.build(folder)

    def _close_workspace(self, folder: str) -> None:
        self.indexes.forget(folder)
        self._cross_file.forget(folder)
        for pool in (self._sessions, self._drafters):
            pool.forget_where(lambda key: any(is_scope_of(part, folder) for part in key[1:]))

    def _remember(self, taken: AcceptedText) -> None:
        """A user took a suggestion: it counts twice among what was written there."""
        if self._history is not None and taken.scope:
            before, text = self._encode(taken.before), self._encode(taken.text)
            self._history.remember(taken.scope, before, text)

    def _begin(self, job: CompletionJob) -> None:
        """Know of a document what is on disk, when a job of it comes first."""
        if self._kv_store is None:
            return
        document = job.scope, job.path
        self._kv_store.note(document, job.secret)
        if document in self._seen_documents:
            return
        self._seen_documents.add(document)
        file = self._kv_store.load(document)
        if file is None:
            return
        session = self.engine.session()
        try:
            session.restore(file.tokens, file.state)
            self._cross_file.recall(job, file.about)
        except (ValueError, KeyError, TypeError, MemoryError):
            self._kv_store.forget(document)
        else:
            self._sessions.release(("complete", *document), session)

    def save_caches(self, interrupted: Cancelled = never) -> None:
        """Nothing came for a moment: save the caches of documents, until something comes."""
        if self._kv_store is None:
            return
        for document in list(self._seen_documents):
            session = self._sessions.newest(("complete", *document))
            if interrupted():
                return
            if session is not None:
                about = self._cross_file.state_of(document)
                self._kv_store.save(document, session, about, interrupted)

    def _forget_document(self, workspace: str, path: str) -> None:
        """A document is held back now: nothing of it is kept."""
        for document in ((workspace, path), ("", path)):
            self._sessions.forget(("complete", *document))
            if self._kv_store is not None:
                self._kv_store.note(document, secret=True)

    def _completion_prompt(self, job: CompletionJob) -> Prompt:
        """The prompt of a completion, with text of other files where it is wanted."""
        budget = completion_budget(self.engine, job, self._prompt_length)
        return completion_prompt(self.engine, job, self._snippets(job, budget), budget)

    def _snippets(self, job: CompletionJob, budget: Budget) -> list[ContextSnippet]:
        """Text of other files for a completion."""
        if not budget.others:
            return []
        snapshot = self.indexes.snapshot(job.workspace)
        return self._cross_file.snippets(job, snapshot, budget.others)

    def prefill(self, job: AnyJob, cancelled: Cancelled = never) -> int:
        """``prefill_steps``, computed alone."""
        from accel.forwards import alone

        return alone(self.prefill_steps(job, cancelled))

    def prefill_steps(self, job: AnyJob, cancelled: Cancelled = never) -> Forwards[int]:
        """Compute the prompt of a request that may come. Returns the tokens held."""
        if isinstance(job, GenerateJob):
            generated = generation_prompt(self.engine, job, self._prompt_length)
            key = generate_key(job, drafts_edits=bool(job.prediction) and self._drafts_edits())
            return (yield from self._prefill(key, generated.tokens, cancelled))
        if isinstance(job, EditJob):
            prompt = edit_prompt(self.engine, shown_job(self.engine, job)[1])
            return (yield from self._prefill(edit_key(job), prompt.tokens, cancelled))
        self._begin(job)
        if job.opening:
            return (yield from self._read_opened(job, cancelled))
        key = ("complete", job.scope, job.path)
        prompt = self._completion_prompt(job)
        prefilled = yield from self._prefill(key, prompt.tokens, cancelled)
        if prefilled == len(prompt.tokens) - 1:
            yield from self._bring_up_to_date(job, key, cancelled)
        return prefilled

    def _prefill(
        self, key: tuple[str, ...], tokens: TokenArray, cancelled: Cancelled
    ) -> Forwards[int]:
        with self._sessions.acquire(key, self.engine.session) as session:
            yield from self.engine.prefill_steps(tokens, session, cancelled)
            return session.length

    def _read_opened(self, job: CompletionJob, cancelled: Cancelled) -> Forwards[int]:
        """Compute what the prompts of a document begin with that was opened."""
        budget = completion_budget(self.engine, job, self._prompt_length)
        beginning = completion_beginning(self.engine, job, self._snippets(job, budget), budget)
        key = ("complete", job.scope, job.path)
        with self._sessions.acquire(key, self.engine.session) as session:
            # What is held may be of the place where the cursor was when the document was closed.
            if not beginning.others <= session.common(beginning.tokens) < session.length:
                yield from self.engine.prefill_steps(beginning.tokens, session, cancelled)
            return session.length

    def _bring_up_to_date(
        self, job: CompletionJob, key: tuple[str, ...], cancelled: Cancelled
    ) -> Forwards[None]:
        """Have other files in the prompts of a document as they are now. What is in use goes on
        being used until the prompt with the new text is computed."""
        budget = completion_budget(self.engine, job, self._prompt_length)
        snapshot = self.indexes.snapshot(job.workspace)
        chosen = self._cross_file.fresh(job, snapshot, budget.others)
        if chosen is None:
            return
        prompt = completion_prompt(self.engine, job, chosen.snippets, budget)
        beside = ("beside", *key)
        with self._sessions.acquire(beside, self.engine.session) as session:
            if not (yield from self.engine.prefill_steps(prompt.tokens, session, cancelled)):
                return
        self._cross_file.use(job, chosen)
        self._sessions.move(beside, key)

    def _read_prompt(self, key: tuple[str, ...], request: GenerationRequest) -> Forwards[JobResult]:
        """Compute a prompt behind which nothing is written. Raises AccelError."""
        request.check(self.engine.max_positions)
        count = len(request.prompt)
        with self._sessions.acquire(key, self.engine.session) as session:
            reused = min(session.common(request.prompt), count)
            started = time.perf_counter()
            done = yield from self.engine.prefill_steps(request.prompt, session, request.cancelled)
        seconds = time.perf_counter() - started
        end = "length" if done else "cancelled"
        return JobResult(
            "", [], 0, 0, 0.0, seconds, {}, end, prompt_tokens=count, prompt_tokens_reused=reused
        )
