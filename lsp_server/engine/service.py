"""The one place that joins accel and repo_index: completions and edits on a model and its index.

``EngineService`` is used in process by commands and benches, and by the daemon as a child
process (``engine.process``). Importing this module loads neither torch nor an index.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lsp_server.contract.jobs import (
    AcceptedText,
    AnyJob,
    CompletionJob,
    ContextSnippet,
    EditJob,
    GenerateJob,
    JobResult,
    is_scope_of,
    kept,
)
from lsp_server.contract.notes import (
    CloseBuffer,
    CloseWorkspace,
    ForgetDocument,
    Note,
    OpenWorkspace,
    ReloadIndex,
    SetBuffer,
)
from lsp_server.contract.options import EngineOptions
from lsp_server.contract.prompt_length import PromptLength
from lsp_server.contract.status import EngineStatus
from lsp_server.engine import warming
from lsp_server.engine.compiling import CompileTask, CompilingBehind, compile_at_once
from lsp_server.engine.completion import stopping
from lsp_server.engine.completion.cross_file import CrossFile
from lsp_server.engine.completion.gate import GateWatch
from lsp_server.engine.completion.missing_line import LineFitter
from lsp_server.engine.editing.loop_watch import LoopWatch
from lsp_server.engine.garbage import no_collection, settle
from lsp_server.engine.generating import (
    CUT,
    Budget,
    OnSpans,
    Steps,
    answer,
    answer_tokens,
    completion_beginning,
    completion_budget,
    completion_prompt,
    edit_parts,
    edit_prompt,
    finished,
    generation_end,
    generation_prompt,
    joined,
    prompt_length,
    put_in,
    replace_surrogates,
    result_of,
    shown_job,
)
from lsp_server.engine.kv_store import KvStore, kv_store_of
from lsp_server.engine.next_edits.formats import FORMATS, fits, format_for
from lsp_server.engine.next_edits.model_names import model_names
from lsp_server.engine.pool import Pool
from lsp_server.engine.sampling import sampling_of
from lsp_server.engine.spans import SpanBuilder
from lsp_server.engine.workspaces import WorkspaceIndexes, tokenizer_of

if TYPE_CHECKING:
    from accel.draft_tree import TokenArray
    from accel.drafting.base import Drafter
    from accel.drafting.history import History
    from accel.drafting.retrieval.calibration import Calibration
    from accel.engine import Engine
    from accel.request import GenerationRequest
    from accel.session import Session
    from accel.text.prompts import Prompt
    from accel.text.tokenizer import Tokenizer

__all__ = ["EngineService", "tokenizer_of"]

Cancelled = Callable[[], bool]

COMPLETION_NODES = 64
EDIT_NODES = 128
WINDOW_NODES = 256
"""A window of a file that is rewritten as a whole is verified in one forward, where that pays."""
PIECE_SHARE = 4
"""A selection that takes more than this part of the model's positions is edited piece by piece."""
TYPICAL_CONTEXT = 512
"""Tokens behind which a forward is priced when a drafter is chosen."""
MAX_SESSIONS = 1024
"""A team's documents. The engine has a budget for what their KV caches hold together."""
MAX_DRAFTERS = 64
"""Each knows what its workspace wrote of late."""


def _never() -> bool:
    return False


def generate_key(job: GenerateJob, *, drafts_edits: bool) -> tuple[str, ...]:
    """What shares the caches of generations. Those that are drafted as edits are have another
    drafter."""
    return ("predict" if drafts_edits else "generate", job.scope, job.path)


def edit_key(job: EditJob) -> tuple[str, ...]:
    """What shares the caches of edits: all of one owner."""
    return ("edit", job.owner)


class EngineService:
    """A model, its sessions and drafters, and the indexes of the workspaces that are open.

    Not thread-safe: one thread decodes. Loads at first use.
    """

    def __init__(
        self,
        options: EngineOptions,
        *,
        caches: Path | None = None,
        defer: bool = False,
        measures_later: bool = False,
    ) -> None:
        """``caches``: the folder for KV caches of documents; None: they are not kept.
        ``defer``: at the first start greedy completions do not wait until what drafts edits and
        what samples is compiled, and edits are not drafted until then.
        ``measures_later``: see ``Engine.load``; ``measure`` goes on with it."""
        self.on_change: Callable[[], None] = lambda: None
        """Told by another thread that ``status`` says something else now."""
        self._defers = defer
        self._edits_behind = self._sampling_behind = CompilingBehind([])
        self._options = options
        self._measures_later = measures_later
        self._caches = caches
        self._begun: set[tuple[str, str]] = set()
        """Documents, by workspace and path, whose caches on disk were looked for."""
        self._draft_engine: Engine | None = None
        self._engine: Engine | None = None
        self._sessions: Pool[Session] = Pool(MAX_SESSIONS)
        self._drafters: Pool[Drafter] = Pool(MAX_DRAFTERS)
        self._calibration: Calibration | None = None
        self._history: History | None = None
        self._fitter: LineFitter | None = None
        self._prompt_length = PromptLength(())
        self._kv_store: KvStore | None = None
        self._cold_parts: list[Callable[[Cancelled], object]] = []
        """What is left to warm up."""
        self._is_settled = False
        self._cross_file = CrossFile(self._encode, self._decode)
        self.indexes = WorkspaceIndexes(options.path or None, options.common)

    def _encode(self, text: str) -> TokenArray:
        return self.engine.tokenizer.encode(replace_surrogates(text))

    def _decode(self, tokens: TokenArray) -> str:
        return self.engine.tokenizer.decode(tokens)

    @property
    def engine(self) -> Engine:
        """The loaded engine."""
        self.load()
        assert self._engine is not None
        return self._engine

    def load(self, told: Callable[[str], None] = lambda message: None) -> None:
        """Load the model; ``told`` what takes long. Raises AccelError."""
        if self._engine is None:
            with no_collection():
                self._load(told)

    def _load(self, told: Callable[[str], None]) -> None:
        from accel.engine import Engine

        parts = self._parts_to_compile()
        edits = [part for part in parts if part.name == "edits" and self._defers]
        sampling = [part for part in parts if part.name == "sampling" and self._defers]
        compile_at_once([part for part in parts if part not in edits + sampling], told)
        options = self._options
        self._engine = Engine.open(options, measures_later=self._measures_later)
        self._share_tokenizer(self._engine.tokenizer)
        if options.draft_model:
            draft = replace(options, path=options.draft_model)
            self._draft_engine = Engine.open(draft, measures_later=self._measures_later)
            self._reuse()
        self._fitter = LineFitter(self._engine)
        self._prompt_length = prompt_length(self._engine)
        self._edits_behind = CompilingBehind(edits, self.on_change)
        self._sampling_behind = CompilingBehind(sampling)
        self._open_what_is_learnt()
        self._cold_parts = self._parts_to_warm()

    def _parts_to_compile(self) -> list[CompileTask]:
        return warming.parts_to_compile(self._options, self.indexes.compiled_parts)

    def _share_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Have lookups use the tokenizer of the model's own side."""
        from repo_index.tokens import TextTokenizer

        size = tokenizer.vocabulary_size
        self.indexes.share(TextTokenizer.sharing(tokenizer.fast, tokenizer.sha256, size))

    def _open_what_is_learnt(self) -> None:
        """What earlier processes learnt and kept of this model."""
        from accel.drafting.history import History
        from accel.drafting.retrieval.calibration import Calibration

        name = f"{self.engine.name} {self.engine.tokenizer.sha256}"
        self._calibration = Calibration.of_model(name)
        self._history = History()
        if self._caches is not None:
            megabytes = self._options.disk_cache_megabytes
            self._kv_store = kv_store_of(self.engine, megabytes, self._caches)

    def warm_up(self, interrupted: Cancelled = _never) -> None:
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
        held = {name: getattr(self, name) for name in names}
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
            for name, value in held.items():
                setattr(self, name, value)

    # Workspaces and buffers

    def index_workspace(self, folder: str) -> None:
        """Bring the datastore of a workspace in line in this process, and map it."""
        self.indexes.build(folder)

    def _close_workspace(self, folder: str) -> None:
        self.indexes.forget(folder)
        self._cross_file.forget(folder)
        for pool in (self._sessions, self._drafters):
            pool.forget_where(lambda key: any(is_scope_of(part, folder) for part in key[1:]))

    # Jobs

    def _remember(self, taken: AcceptedText) -> None:
        """A user took a suggestion: it counts twice among what was written there."""
        if self._history is not None and taken.scope:
            before, text = self._encode(taken.before), self._encode(taken.text)
            self._history.remember(taken.scope, before, text)

    def complete(
        self, job: CompletionJob, cancelled: Cancelled = _never, on_spans: OnSpans | None = None
    ) -> JobResult:
        """One completion. ``on_spans`` gets the new spans of every forward."""
        return finished(self.complete_steps(job, cancelled), on_spans)

    def edit(
        self, job: EditJob, cancelled: Cancelled = _never, on_spans: OnSpans | None = None
    ) -> JobResult:
        """One edit; the text is what the selection becomes."""
        return finished(self.edit_steps(job, cancelled), on_spans)

    def generate(
        self, job: GenerateJob, cancelled: Cancelled = _never, on_spans: OnSpans | None = None
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

    def complete_steps(self, job: CompletionJob, cancelled: Cancelled = _never) -> Steps:
        """A completion that yields after every forward, so that others can go between."""
        self._begin(job)
        prompt = self._completion_prompt(job)
        assert self._fitter is not None
        fitted = self._fitter.line(job, prompt, self._sessions, cancelled)
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

    def _begin(self, job: CompletionJob) -> None:
        """Know of a document what is on disk, when a job of it comes first."""
        if self._kv_store is None:
            return
        document = job.scope, job.path
        self._kv_store.note(document, job.secret)
        if document in self._begun:
            return
        self._begun.add(document)
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

    def measure(self, interrupted: Cancelled = _never) -> bool:
        """Nothing came for a moment: measure what was left for later, until something comes.
        Whether the status says something else now."""
        engines = [engine for engine in (self._engine, self._draft_engine) if engine is not None]
        changed = [engine.measure(interrupted) for engine in engines]
        if any(changed):
            self._prompt_length = prompt_length(self.engine)
        return any(changed)

    def save_caches(self, interrupted: Cancelled = _never) -> None:
        """Nothing came for a moment: save the caches of documents, until something comes."""
        if self._kv_store is None:
            return
        for document in list(self._begun):
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

    def edit_steps(self, job: EditJob, cancelled: Cancelled = _never) -> Steps:
        """An edit that yields after every forward, part by part."""
        shown, asked = shown_job(self.engine, job)
        results: list[JobResult] = []
        for text, prompt in edit_parts(self.engine, asked, self._fits):
            if prompt is None:
                results.append(kept(text))
                yield results[-1].spans
                continue
            watch = LoopWatch(text, cancelled)
            request = self._request(job, prompt, EDIT_NODES, watch.cancelled)
            request.max_tokens = answer_tokens(self.engine, job, prompt)
            request.stop_rule = stopping.fence(prompt.fence) if prompt.fence else None
            request.entropy_top_k = job.entropy_top_k
            plain = job.plain or not self._drafts_edits()
            steps = self._generate(edit_key(job), request, plain, self._reuse)
            result = yield from watch.over(steps)
            results.append(answer(result, prompt, asked, text))
            if result.stopped_by in CUT:
                break
        return put_in(shown, job, joined(results))

    def generate_steps(self, job: GenerateJob, cancelled: Cancelled = _never) -> Steps:
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
        room = self.engine.max_positions - len(prompt.tokens) - 1
        request.max_tokens = max(min(job.max_tokens, room), 1)
        request.stop_tokens |= frozenset(job.stop_tokens)
        request.stop_rule = generation_end(job)
        request.logprobs, request.confidences = job.logprobs, job.likely
        if job.rewrites is not None and request.draft_request is not None:
            request.draft_request.rewrites = tuple((old, new) for old, new in job.rewrites)
        key = generate_key(job, drafts_edits=drafts_edits)
        if not job.max_tokens:
            result = self._read_prompt(key, request)
            yield []
        else:
            drafter = self._reuse if drafts_edits else self._mixture
            result = yield from self._generate(key, request, job.plain, drafter)
        if predicted is not None:
            source = "original" if drafts_edits else "suffix"
            accepted = min(result.sources.get(source, 0), len(predicted))
            result = replace(result, prediction_tokens=len(predicted), prediction_accepted=accepted)
        return result

    def _read_prompt(self, key: tuple[str, ...], request: GenerationRequest) -> JobResult:
        """Compute a prompt behind which nothing is written. Raises AccelError."""
        request.check(self.engine.max_positions)
        count = len(request.prompt)
        with self._sessions.acquire(key, self.engine.session) as session:
            reused = min(session.common(request.prompt), count)
            started = time.perf_counter()
            done = self.engine.prefill(request.prompt, session, request.cancelled)
        seconds = time.perf_counter() - started
        end = "length" if done else "cancelled"
        return JobResult(
            "", [], 0, 0, 0.0, seconds, {}, end, prompt_tokens=count, prompt_tokens_reused=reused
        )

    def _drafts_edits(self) -> bool:
        """Whether what drafts edits is compiled."""
        if self._edits_behind.is_over:
            warming.warm_up_edits()
        return self._edits_behind.is_over

    def _fits(self, selection: str) -> bool:
        """Whether a selection is short enough to be rewritten in one piece."""
        tokens = self.engine.tokenizer.encode(replace_surrogates(selection))
        return len(tokens) <= self.engine.max_positions // PIECE_SHARE

    def prefill(self, job: AnyJob, cancelled: Cancelled = _never) -> int:
        """Compute the prompt of a request that may come. Returns the tokens held."""
        if isinstance(job, GenerateJob):
            asked = generation_prompt(self.engine, job, self._prompt_length)
            key = generate_key(job, drafts_edits=bool(job.prediction) and self._drafts_edits())
            return self._prefill(key, asked.tokens, cancelled)
        if isinstance(job, EditJob):
            prompt = edit_prompt(self.engine, shown_job(self.engine, job)[1])
            return self._prefill(edit_key(job), prompt.tokens, cancelled)
        self._begin(job)
        if job.opening:
            return self._read_opened(job, cancelled)
        key = ("complete", job.scope, job.path)
        prompt = self._completion_prompt(job)
        held = self._prefill(key, prompt.tokens, cancelled)
        if held == len(prompt.tokens) - 1:
            self._bring_up_to_date(job, key, cancelled)
        return held

    def _prefill(self, key: tuple[str, ...], tokens: TokenArray, cancelled: Cancelled) -> int:
        with self._sessions.acquire(key, self.engine.session) as session:
            self.engine.prefill(tokens, session, cancelled)
            return session.length

    def _read_opened(self, job: CompletionJob, cancelled: Cancelled) -> int:
        """Compute what the prompts of a document begin with that was opened."""
        budget = completion_budget(self.engine, job, self._prompt_length)
        beginning = completion_beginning(self.engine, job, self._snippets(job, budget), budget)
        key = ("complete", job.scope, job.path)
        with self._sessions.acquire(key, self.engine.session) as session:
            # What is held may be of the place where the cursor was when the document was closed.
            if not beginning.others <= session.common(beginning.tokens) < session.length:
                self.engine.prefill(beginning.tokens, session, cancelled)
            return session.length

    def _bring_up_to_date(
        self, job: CompletionJob, key: tuple[str, ...], cancelled: Cancelled
    ) -> None:
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
            if not self.engine.prefill(prompt.tokens, session, cancelled):
                return
        self._cross_file.use(job, chosen)
        self._sessions.move(beside, key)

    def _request(
        self,
        job: AnyJob,
        prompt: Prompt,
        nodes: int,
        cancelled: Cancelled,
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
        engine = self.engine
        builder = SpanBuilder(engine.tokenizer.bytes_of, len(request.required_prefix))
        kind = key[:2]
        with (
            self._sessions.acquire(key, engine.session) as session,
            self._drafters.acquire(kind, new_drafter) as drafter,
        ):
            request.drafter = None if plain else drafter
            # Rules of papers have no calibrated chances: their drafts are verified as they are.
            request.plan = drafter.name == "redraft"
            generation = engine.generate(request, session)
            for chunk in generation:
                names = [source.name.lower() for source in chunk.sources]
                if request.logprobs is not None:
                    yield builder.add_one_by_one(chunk.logprobs, names)
                elif request.confidences:
                    yield builder.add_likely(chunk.tokens.tolist(), names, chunk.confidences)
                else:
                    yield builder.add(chunk.tokens.tolist(), names)
        return result_of(generation, builder, engine.planner.seconds(1, TYPICAL_CONTEXT))

    def _mixture(self) -> Drafter:
        from accel.drafting import default_drafter

        return default_drafter(
            self.engine.tokenizer, calibration=self._calibration, history=self._history
        )

    def _reuse(self) -> Drafter:
        from accel.drafting.copy.drafter import CopyDrafter

        tokenizer = self.engine.tokenizer
        copies = CopyDrafter(tokenizer, end=tuple(sorted(self.engine.end_tokens))[:1])
        if self._draft_engine is None:
            return copies
        from accel.drafting.draft_model import DraftModelDrafter
        from accel.drafting.reuse_or_generate import ReuseOrGenerateDrafter

        model = DraftModelDrafter(self._draft_engine, tokenizer.sha256)
        return ReuseOrGenerateDrafter(copies, model)

    # As a child process

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

    def status(self) -> EngineStatus:
        """What is known of the engine now."""
        if (engine := self._engine) is None:
            return EngineStatus(model=self._options.path, dtype=self._options.dtype)
        return EngineStatus(
            state="ready",
            model=engine.name,
            dtype=engine.formats,
            kv_bytes=sum(session.nbytes for session in self._sessions),
            tokenizer=engine.tokenizer.sha256,
            fills=engine.fim_order is not None,
            max_tokens=engine.max_positions,
            notice=self._notice(engine),
            **self._next_edits(engine),
            compiling="" if self._edits_behind.is_over else "what drafts edits",
            computed_by=engine.model.computed_by,
            prompt_seconds=tuple(self._prompt_length.seconds),
            workspaces=tuple(self.indexes.folders),
        )

    def _next_edits(self, engine: Engine) -> dict[str, Any]:
        """In which format the model is asked for next edits, empty for none, and those whose tokens
        its vocabulary has."""

        def has_token(name: str) -> bool:
            return engine.tokenizer.special(name) is not None

        # Only adapters of `redraft train` say how many lines around an edit they were shown.
        is_ours = engine.tokenizer.edit_lines is not None
        known = format_for(model_names(self._options.path), has_token, is_ours=is_ours)
        return {
            "next_edit_format": known.name if known is not None else "",
            "next_edit_formats": tuple(
                one.name for one in FORMATS.values() if fits(one, has_token)
            ),
        }

    def _notice(self, engine: Engine) -> str:
        """What is wrong with the model's prompt formats, and what to know of how it is computed;
        empty where nothing is."""
        from accel.text.families import Order
        from accel.text.format_check import format_problems

        problems = format_problems(engine.tokenizer)
        if engine.fim_order is Order.PREFIX_ALONE:
            problems.append("in a trial the text after the cursor did not help it: it is left out")
        return "; ".join([*problems, *filter(None, [engine.notice])])

    def interrupt(self) -> None:
        """Have the job that is decoded now ask whether it goes on. For other threads."""
        if (engine := self._engine) is not None:
            engine.interrupt()

    def rest(self) -> None:
        """Nothing came for a while: pages of mapped indexes go back to the system."""
        for folder in self.indexes.folders:
            self.indexes.datastore(folder).release()

    def close(self) -> None:
        """Let go of the model and the indexes."""
        if self._calibration is not None:
            self._calibration.save_new()
        self._edits_behind.close()
        self._sampling_behind.close()
        self._sessions.clear()
        self._drafters.clear()
        self.indexes.clear()
        self._engine = self._draft_engine = None
