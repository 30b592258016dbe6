"""Completions, edits and generations on a model and its index. Importing this module loads neither
torch nor an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lsp_server.engine import warming
from lsp_server.engine.garbage import settle
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    EDIT,
    AnyJob,
    CompletionJob,
    EditJob,
    GenerateJob,
    JobResult,
    Span,
    unchanged,
)
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.completion.gate import GateWatch
from lsp_server.tasks.editing.loop_watch import LoopWatch
from lsp_server.tasks.generating import (
    CUT,
    OnSpans,
    answer,
    answer_tokens,
    edit_parts,
    finished,
    generation_end,
    generation_prompt,
    joined,
    put_in,
    replace_surrogates,
    result_of,
    shown_job,
)
from lsp_server.tasks.pool import Pool
from lsp_server.tasks.sampling import sampling_of
from lsp_server.tasks.spans import SpanBuilder
from lsp_server.tasks.steps import Steps

if TYPE_CHECKING:
    from accel.draft_tree import TokenArray
    from accel.drafting.base import Drafter
    from accel.forwards import Forward
    from accel.models.base import Logits
    from accel.request import Chunk, GenerationRequest
    from accel.session import Session
    from accel.text.prompts import Prompt

from lsp_server.engine.loading import MAX_DRAFTERS, MAX_SESSIONS, Cancelled, never
from lsp_server.engine.prompting import EnginePrompts, edit_key, generate_key

COMPLETION_NODES = 64
EDIT_NODES = 128
WINDOW_NODES = 256
"""A window of a file that is rewritten as a whole is verified in one forward, where that pays."""
PIECE_SHARE = 4
"""A selection that takes more than this part of the model's positions is edited piece by piece."""


class EngineService(EnginePrompts):
    """Completions, edits and generations. Not thread-safe: one thread decodes."""

    def _load(self, report: Callable[[str], None]) -> None:
        super()._load(report)
        self._cold_parts = self._parts_to_warm()

    def warm_up(self, interrupted: Cancelled = never) -> None:
        """Nothing came for a moment: load what requests call, part by part, until something comes.
        A request that comes first loads what it needs itself."""
        while self._cold_parts and not interrupted():
            self._cold_parts.pop(0)(interrupted)
        if not self._cold_parts and not self._is_settled:
            self._is_settled = True
            settle()

    def _parts_to_warm(self) -> list[Callable[[Cancelled], object]]:
        """What ``warm_up`` does, a second each at most."""
        return [
            lambda _: self.engine.preload(),
            lambda _: warming.warm_up_drafting(),
            lambda _: self.indexes.warm_up(),
            *(partial(self._try, job) for job in warming.jobs()),
            # The next start need not look again where nothing is left.
            lambda _: self._parts_to_compile(),
        ]

    def _try(self, job: CompletionJob | EditJob, interrupted: Cancelled) -> None:
        """A request that leaves nothing behind; no edit where there is nothing to edit with yet."""
        from accel.errors import AccelError

        if isinstance(job, EditJob) and not self._edits_behind.is_over:
            return
        names = ("_calibration", "_history", "_kv_store", "_sessions", "_drafters")
        saved = {name: getattr(self, name) for name in names}
        self._calibration = self._history = self._kv_store = None
        self._sessions, self._drafters = Pool(MAX_SESSIONS), Pool(MAX_DRAFTERS)
        try:
            if isinstance(job, EditJob):
                self.edit(job, interrupted)
            else:
                self.complete(job, interrupted)
        except AccelError:
            # A model without the special tokens of this job says so when it is asked for it.
            return
        finally:
            for name, value in saved.items():
                setattr(self, name, value)

    def complete(
        self, job: CompletionJob, cancelled: Cancelled = never, on_spans: OnSpans | None = None
    ) -> JobResult:
        """One completion. ``on_spans`` gets the new spans of every forward."""
        return finished(self.complete_steps(job, cancelled), on_spans)

    def edit(
        self, job: EditJob, cancelled: Cancelled = never, on_spans: OnSpans | None = None
    ) -> JobResult:
        """One edit; the text is what the selection becomes."""
        return finished(self.edit_steps(job, cancelled), on_spans)

    def generate(
        self, job: GenerateJob, cancelled: Cancelled = never, on_spans: OnSpans | None = None
    ) -> JobResult:
        """Go on from a prompt as it is given."""
        return finished(self.generate_steps(job, cancelled), on_spans)

    def steps(self, job: AnyJob, cancelled: Cancelled) -> Steps:
        """What is written for a job; yields after every forward."""
        if isinstance(job, CompletionJob):
            return self.complete_steps(job, cancelled)
        if isinstance(job, EditJob):
            return self.edit_steps(job, cancelled)
        return self.generate_steps(job, cancelled)

    @property
    def places(self) -> int:
        """How many requests share a forward."""
        return self.engine.model.capability.requests

    def planned(self, asked: Sequence[tuple[int, Forward]]) -> list[list[Forward]]:
        """Of forwards with their urgency, in the order of their turns, those that are computed
        next: of each model some together, with as many rows as pay."""
        from accel.planning.sharing import Urgent, plan_step

        most_urgent = min(urgency for urgency, _ in asked)
        # What may never be wanted lengthens no forward that somebody waits for.
        asked = [each for each in asked if each[0] in (most_urgent, COMPLETION, EDIT)]
        engines = [engine for engine in (self._engine, self._draft_engine) if engine is not None]
        planned = []
        for engine in engines:
            group = [Urgent(*each) for each in asked if each[1].model is engine.model]
            if group and min(each.urgency for each in group) == most_urgent:
                planned.append(plan_step(group, engine.planner))
        return planned

    def compute(self, forwards: Sequence[Forward]) -> Iterator[tuple[Forward, Logits | Exception]]:
        """Compute forwards of one model together."""
        from accel.forwards import compute_all

        return compute_all(forwards)

    def complete_steps(self, job: CompletionJob, cancelled: Cancelled = never) -> Steps:
        """A completion that yields after every forward, so that others can go between."""
        self._begin(job)
        prompt = self._completion_prompt(job)
        assert self._fitter is not None
        fitted = yield from self._fitter.line(job, prompt, self._sessions, cancelled)
        if fitted is not None:
            yield [fitted.likely] if job.gate > 0 else fitted.result.spans
            return fitted.result
        key = ("complete", job.scope, job.path)
        request = self._request(job, prompt, COMPLETION_NODES, cancelled)
        rule = stopping.completion(job.prefix, one_line=job.single_line, gated=job.gate > 0)
        request.stop_rule = stopping.before_other_files(rule, prompt.stop_texts)
        if job.gate > 0:
            watch = GateWatch(job.gate, cancelled)
            request.confidences, request.cancelled = True, watch.cancelled
            steps = watch.over(self._generate(key, request, job.plain, self._mixture))
        else:
            steps = self._generate(key, request, job.plain, self._mixture)
        result = yield from steps
        if self._calibration is not None:
            self._calibration.note_completion()
        return result

    def edit_steps(self, job: EditJob, cancelled: Cancelled = never) -> Steps:
        """An edit that yields after every forward, part by part."""
        from accel.verification.entropy import entropy_tokens

        shown, shown_edit = shown_job(self.engine, job)
        results: list[JobResult] = []
        for text, prompt in edit_parts(self.engine, shown_edit, self._fits):
            if prompt is None:
                results.append(unchanged(text))
                yield results[-1].spans
                continue
            watch = LoopWatch(text, cancelled)
            request = self._request(job, prompt, EDIT_NODES, watch.cancelled)
            request.max_tokens = answer_tokens(self.engine, job, prompt)
            request.stop_rule = stopping.fence(prompt.fence) if prompt.fence else None
            if job.entropy_k > 1:
                request.relaxed = partial(entropy_tokens, top_k=job.entropy_k)
            plain = job.plain or not self._drafts_edits()
            steps = self._generate(edit_key(job), request, plain, self._reuse)
            result = yield from watch.over(steps)
            results.append(answer(result, prompt, shown_edit, text))
            if result.stopped_by in CUT:
                break
        return put_in(shown, job, joined(results))

    def generate_steps(self, job: GenerateJob, cancelled: Cancelled = never) -> Steps:
        """A generation that yields after every forward."""
        prompt = generation_prompt(self.engine, job, self._prompt_length)
        predicted = prompt.original_tokens
        # Until what drafts edits is compiled, a prediction is one more text to look things up in.
        drafts_edits = bool(job.prediction) and self._drafts_edits()
        if predicted is not None and not drafts_edits:
            prompt.original_tokens = None
            prompt.suffix_tokens = np.concatenate([predicted, prompt.suffix_tokens])
        nodes = EDIT_NODES if drafts_edits else COMPLETION_NODES
        if drafts_edits and job.rewrites is not None:
            nodes = WINDOW_NODES
        request = self._request(job, prompt, nodes, cancelled)
        left = self.engine.max_positions - len(prompt.tokens) - 1
        request.max_tokens = max(min(job.max_tokens, left), 1)
        request.stop_tokens |= frozenset(job.stop_tokens)
        request.stop_rule = generation_end(job)
        request.logprobs, request.confidences = job.logprobs, job.likely
        if job.rewrites is not None and request.draft_request is not None:
            request.draft_request.rewrites = tuple((old, new) for old, new in job.rewrites)
        key = generate_key(job, drafts_edits=drafts_edits)
        if not job.max_tokens:
            result = yield from self._read_prompt(key, request)
            yield []
        else:
            drafter = self._reuse if drafts_edits else self._mixture
            result = yield from self._generate(key, request, job.plain, drafter)
        if predicted is not None:
            source = "original" if drafts_edits else "suffix"
            accepted = min(result.sources.get(source, 0), len(predicted))
            result = replace(result, prediction_tokens=len(predicted), prediction_accepted=accepted)
        return result

    def _fits(self, selection: str) -> bool:
        """Whether a selection is short enough to be rewritten in one piece."""
        tokens = self.engine.tokenizer.encode(replace_surrogates(selection))
        return len(tokens) <= self.engine.max_positions // PIECE_SHARE

    def _request(
        self, job: AnyJob, prompt: Prompt, nodes: int, cancelled: Cancelled
    ) -> GenerationRequest:
        from accel.drafting.base import DraftRequest
        from accel.request import GenerationRequest

        cursor = None
        if isinstance(job, CompletionJob):
            cursor = job.path, len(job.prefix.replace("\r\n", "\n"))
        sampling = sampling_of(self.engine, job, prompt)
        index: Any = self.indexes.snapshot(job.workspace, cursor)
        return GenerationRequest(
            prompt=prompt.tokens,
            max_tokens=job.max_tokens,
            draft_request=DraftRequest(
                prompt.text,
                sampling=sampling,
                suffix=prompt.suffix_tokens,
                original=prompt.original_tokens,
                closing=prompt.closing_tokens,
                index=index,
                workspace=job.scope,
                model_prompt=prompt.tokens,
            ),
            sampling=sampling,
            stop_tokens=prompt.stop_tokens,
            required_prefix=prompt.required_prefix,
            max_nodes=nodes,
            cancelled=cancelled,
        )

    def _generate(
        self,
        key: tuple[str, ...],
        request: GenerationRequest,
        plain: bool,
        new_drafter: Callable[[], Drafter],
    ) -> Steps:
        from accel.forwards import relayed

        engine = self.engine
        builder = SpanBuilder(engine.tokenizer.bytes_of, len(request.required_prefix))
        kind = key[:2]
        # Generations that name no document share a key: each takes the prompt most like its own.
        shares = key[0] in ("generate", "predict") and not key[-1]
        fits = partial(_in_common, request.prompt) if shares else None

        def spans_of(chunk: Chunk) -> list[Span]:
            names = [source.name.lower() for source in chunk.sources]
            if request.logprobs is not None:
                return builder.add_one_by_one(chunk.logprobs, names)
            if request.confidences:
                return builder.add_likely(chunk.tokens.tolist(), names, chunk.confidences)
            return builder.add(chunk.tokens.tolist(), names)

        with (
            self._sessions.acquire(key, engine.session, fits) as session,
            self._drafters.acquire(kind, new_drafter) as drafter,
        ):
            if shares:
                self._copy_prompt(key, request.prompt, session)
            request.drafter = None if plain else drafter
            # Rules of papers have no calibrated chances: their drafts are verified as they are.
            request.plan = drafter.name == "redraft"
            generation = engine.generate(request, session)
            yield from relayed(generation.steps(), spans_of)
        return result_of(generation, builder)

    def _copy_prompt(self, key: tuple[str, ...], prompt: TokenArray, session: Session) -> None:
        """Take over what a generation under way has computed of a prompt, where that is most of
        it and more than is held."""
        other = max(self._sessions.used(key), key=lambda used: used.common(prompt))
        common = other.common(prompt)
        if 2 * common >= len(prompt) and common > session.common(prompt):
            with suppress(MemoryError):
                # The prompt is computed then, or that says what there is no room for.
                session.copy(other)


def _in_common(prompt: TokenArray, session: Session) -> int:
    """Tokens that a session saves a prompt, where they are half of either at least, and one."""
    common = session.common(prompt)
    return common + 1 if 2 * common >= min(session.length, len(prompt)) else 0
