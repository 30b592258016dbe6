"""Runs the tasks of jobs on a loaded model and its caches."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lsp_server.engine.caches import Caches
from lsp_server.engine.loaded_model import LoadedModel
from lsp_server.engine.workspaces import WorkspaceIndexes
from lsp_server.shared.contract.jobs import (
    AnyJob,
    CompletionJob,
    ContextSnippet,
    EditJob,
    GenerateJob,
    JobResult,
    Span,
)
from lsp_server.tasks.completion.task import (
    Budget,
    completion_beginning,
    completion_budget,
    completion_key,
    completion_prompt,
    completion_task,
)
from lsp_server.tasks.generation import characters_of, generation_task
from lsp_server.tasks.spans import SpanBuilder
from lsp_server.tasks.steps import Aside, JobSteps, Steps, made_of
from lsp_server.tasks.task import CUT, Cancelled, Task, TaskList

if TYPE_CHECKING:
    from accel.decoding.loop import Generation
    from accel.decoding.request import Chunk, GenerationRequest
    from accel.draft_tree import TokenArray
    from accel.execution.forwards import Forwards
    from accel.execution.session import Session
    from accel.text.prompts import Prompt

Preparation = Generator[Aside, Any, TaskList]
"""Finds out what a job asks for."""


class TaskRunner:
    """A model that writes what jobs ask for, with some caches. Not thread-safe."""

    def __init__(self, model: LoadedModel, caches: Caches, indexes: WorkspaceIndexes) -> None:
        self.model, self.caches = model, caches
        self._indexes = indexes
        self._engine = model.engine
        self._work: dict[type[AnyJob], Callable[[Any, Cancelled], Preparation]] = {
            CompletionJob: self._completion,
            EditJob: self._edit,
            GenerateJob: self._generation,
        }

    def steps(self, job: AnyJob, cancelled: Cancelled) -> JobSteps:
        """Write a job's texts; yields after each forward. Raises AccelError and RedraftError."""
        work = yield from self._work[type(job)](job, cancelled)
        results: list[JobResult] = []
        for task in work.tasks:
            results.append((yield from self.run(task)))
            if results[-1].stopped_by in CUT:
                break
        return work.result(results)

    def run(self, task: Task) -> Steps:
        """Write the text of a task. Raises AccelError."""
        if not task.request.max_tokens:
            result = yield from task.read(self._read_prompt(task))
            yield []
            return result
        return (yield from task.read(self._generate(task)))

    def prefill_steps(self, job: AnyJob, cancelled: Cancelled) -> JobSteps:
        """Compute the prompt of a job that may come; the result says how many tokens are held."""
        if isinstance(job, CompletionJob) and job.opening:
            return (yield from self._read_opened(job, cancelled))
        work = yield from self._work[type(job)](job, cancelled)
        result = yield from self._read_prompt(work.tasks[0])
        if isinstance(job, CompletionJob) and result.stopped_by != "cancelled":
            yield from self._bring_up_to_date(job, cancelled)
        return result

    # What jobs ask for

    def _completion(self, job: CompletionJob, cancelled: Cancelled) -> Preparation:
        # Of its texts no more is read than fits a prompt.
        yield from ()
        self.caches.begin(job)
        prompt = self.completion_prompt(job)
        index = self._indexes.snapshot_for(job, len(job.prefix.replace("\r\n", "\n")))
        return TaskList([completion_task(job, prompt, index, cancelled)])

    def _edit(self, job: EditJob, cancelled: Cancelled) -> Preparation:
        from lsp_server.tasks.editing.task import edit_work

        index = self._indexes.snapshot_for(job)
        length = sum(map(len, (job.instruction, job.selection, job.before, job.after)))
        return (yield from made_of(length, partial(edit_work, self._engine, job, index, cancelled)))

    def _generation(self, job: GenerateJob, cancelled: Cancelled) -> Preparation:
        index = self._indexes.snapshot_for(job)

        def make() -> Task:
            length = self.model.prompt_length
            task = partial(generation_task, self._engine)
            if job.prompt_seconds:
                # What is computed already takes no time.
                full_task = task(replace(job, prompt_seconds=0.0), length, index, cancelled)
                prompt = full_task.request.prompt
                new = len(prompt) - self.caches.held(full_task.key, prompt)
                if length.seconds_of(new) <= job.prompt_seconds:
                    return full_task
            return task(job, length, index, cancelled)

        return TaskList([(yield from made_of(characters_of(job), make))])

    # Prompts

    def completion_prompt(self, job: CompletionJob) -> Prompt:
        """Return the prompt of a completion, with text of other files where it is asked for."""
        budget = completion_budget(self._engine, job, self.model.prompt_length)
        return completion_prompt(self._engine, job, self._snippets(job, budget), budget)

    def _snippets(self, job: CompletionJob, budget: Budget) -> list[ContextSnippet]:
        """Return text of other files for a completion."""
        if not budget.others:
            return []
        snapshot = self._indexes.snapshot_for(job)
        return self.caches.cross_file.snippets(job, snapshot, budget.others)

    def _read_prompt(self, task: Task) -> Steps:
        """Compute a prompt after which nothing is written. Raises AccelError."""
        if not len(task.request.prompt):
            # Texts of other files alone, and the model's prompts hold none.
            return _read(0, 0, 0.0, "length")
        request = replace(task.request, max_tokens=1)
        request.check(self._engine.max_positions)
        with self.caches.session_for(task.key, request.prompt, shares=task.shares) as session:
            reused = min(session.common(request.prompt), len(request.prompt))
            return (yield from self._prefill(request.prompt, session, reused, request.cancelled))

    def _prefill(
        self, tokens: TokenArray, session: Session, reused: int, cancelled: Cancelled
    ) -> Steps:
        started = time.perf_counter()
        done = yield from self._engine.prefill_steps(tokens, session, cancelled)
        seconds = time.perf_counter() - started
        count, end = (len(tokens), "length") if done else (session.length, "cancelled")
        return _read(count, reused, seconds, end)

    def _read_opened(self, job: CompletionJob, cancelled: Cancelled) -> Steps:
        """Compute what the prompts of a document begin with that was opened."""
        self.caches.begin(job)
        budget = completion_budget(self._engine, job, self.model.prompt_length)
        beginning = completion_beginning(self._engine, job, self._snippets(job, budget), budget)
        key = completion_key(job)
        with self.caches.session_for(key, beginning.tokens) as session:
            common = session.common(beginning.tokens)
            # What is held may be of the place where the cursor was when the document was closed.
            if beginning.others <= common < session.length:
                return _read(session.length, session.length, 0.0, "length")
            return (yield from self._prefill(beginning.tokens, session, common, cancelled))

    def _bring_up_to_date(self, job: CompletionJob, cancelled: Cancelled) -> Forwards[None]:
        """Have other files in the prompts of a document as they are now. What is in use goes on
        being used until the prompt with the new text is computed."""
        budget = completion_budget(self._engine, job, self.model.prompt_length)
        snapshot = self._indexes.snapshot_for(job)
        cross_file, sessions = self.caches.cross_file, self.caches.sessions
        chosen = cross_file.fresh(job, snapshot, budget.others)
        if chosen is None:
            return
        prompt = completion_prompt(self._engine, job, chosen.snippets, budget)
        key = completion_key(job)
        beside = ("beside", *key)
        with sessions.acquire(beside, self._engine.session) as session:
            if not (yield from self._engine.prefill_steps(prompt.tokens, session, cancelled)):
                return
        cross_file.use(job, chosen)
        sessions.move(beside, key)

    # Texts

    def _generate(self, task: Task) -> Steps:
        from accel.execution.forwards import relayed

        engine, caches, request = self._engine, self.caches, task.request
        builder = SpanBuilder(engine.tokenizer.bytes_of, len(request.required_prefix))
        if task.copies and not self.model.drafts_edits():
            task.look_up_original()
        new_drafter = self.model.copy_drafter if task.copies else caches.mixture
        drafts = "copies" if task.copies else task.key[0], task.key[1]
        with (
            caches.session_for(task.key, request.prompt, shares=task.shares) as session,
            caches.drafters.acquire(drafts, new_drafter) as drafter,
        ):
            if task.shares:
                caches.copy_prompt(task.key, request.prompt, session)
            request.drafter = None if task.plain else drafter
            # Rules of papers have no calibrated chances: their drafts are verified as they are.
            request.plan = drafter.name == "redraft"
            generation = engine.generate(request, session)
            yield from relayed(generation.steps(), partial(_spans, builder, request))
        return _result_of(generation, builder)


def _read(count: int, reused: int, seconds: float, end: str) -> JobResult:
    """Compute ``tokens`` tokens of a prompt without writing any."""
    return JobResult(
        "", [], 0, 0, 0.0, seconds, {}, end, prompt_tokens=count, prompt_tokens_reused=reused
    )


def _spans(builder: SpanBuilder, request: GenerationRequest, chunk: Chunk) -> list[Span]:
    if request.logprobs is not None:
        return builder.add_one_by_one(chunk.logprobs, chunk.sources)
    if request.confidences:
        return builder.add_likely(chunk.tokens.tolist(), chunk.sources, chunk.confidences)
    return builder.add(chunk.tokens.tolist(), chunk.sources)


def _result_of(generation: Generation, builder: SpanBuilder) -> JobResult:
    """Return a finished generation as a result."""
    statistics = generation.statistics
    return JobResult(
        text=generation.text,
        spans=builder.cut(len(generation.text)),
        tokens=statistics.tokens,
        forwards=statistics.forwards,
        seconds=statistics.decode_s,
        prefill_seconds=statistics.prefill_s,
        sources=dict(statistics.sources),
        stopped_by=generation.stopped_by,
        prompt_tokens=statistics.prompt_tokens,
        prompt_tokens_reused=statistics.prompt_tokens_reused,
    )
