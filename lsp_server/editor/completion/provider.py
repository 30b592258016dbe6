"""Completions of one client: from the cache, from a generation under way, or from the model.

The newest request of a document wins. A request that it supersedes is answered ``None``; one that
has nothing to show is answered with no texts and a reason.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import NamedTuple

from lsp_server.editor.completion.acceptance_rates import AcceptanceRates
from lsp_server.editor.completion.automatic_trigger import (
    IN_PROSE,
    NOTHING_MISSING,
    is_place,
    is_prose,
    offered,
)
from lsp_server.editor.completion.cache import CacheHit, SuggestionCache
from lsp_server.editor.completion.postfilter import shown_text
from lsp_server.editor.completion.request import PREFIX_CHARACTERS, CompletionRequest, Running
from lsp_server.editor.completion.unmatched_brackets import DocumentBrackets
from lsp_server.editor.in_flight import InFlight
from lsp_server.shared.contract.calls import Call
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    PREFETCH,
    AcceptedText,
    CompletionJob,
    ContextSnippet,
    JobResult,
)
from lsp_server.shared.errors import EngineUnavailable, RedraftError
from lsp_server.shared.power import saving_reason
from lsp_server.shared.processes.log import redacted
from lsp_server.shared.settings import Settings
from lsp_server.tasks.completion.confidence_gate import (
    LikelyPiece,
    aligned,
    gated,
    least_joint,
    rest_of,
    sure_length,
)
from lsp_server.text.syntax.imports import SCANNED_CHARACTERS

logger = logging.getLogger(__name__)

PATIENCE_S = 0.15
"""After so long the lines that are finished are shown; the rest is written meanwhile."""
SINGLE_LINE_TOKENS = 48
REST_S = 0.3
"""So long after the last change the cursor rests."""
OPENED_S = 0.05
"""So long after a document was opened its text is read: what opens it may ask at once."""
MOST_WARMING = 4
"""Documents that are read ahead at a time; the ones opened last count."""
ACCEPTED_CONTEXT = 256
"""Characters before a suggestion that was taken, by which it is found again."""
ALTERNATIVE_TEMPERATURE = 0.8
AHEAD_S = 0.02
"""So long after an answer the next one is asked for: time to send it, and to see it superseded."""
ALTERNATIVES_S = 1.0
"""Alternatives that take longer are left out, but for one: whoever asks by hand waits for that."""

NOT_SURE = "the model is not sure enough of what it suggests here; see redraft.completion.gate"


@dataclass(slots=True)
class Answer:
    """Texts to show, or why there are none."""

    texts: list[str] = field(default_factory=list)
    reason: str = ""
    without_model: bool = False


class _Filtered(NamedTuple):
    """The visible part of a text, its pieces, and the length that the model is sure of."""

    text: str
    pieces: list[LikelyPiece]
    sure: str


class CompletionProvider:
    """Answers the completion requests of one client."""

    def __init__(
        self,
        client: str,
        settings: Callable[[], Settings],
        engine: Callable[[], EngineInterface],
        snippets: Callable[[CompletionRequest], list[ContextSnippet]],
        on_result: Callable[[JobResult], None] = lambda _: None,
        rates: AcceptanceRates | None = None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._engine = engine
        self._snippets = snippets
        self._on_result = on_result
        self._rates = rates or AcceptanceRates()
        self._cache = SuggestionCache()
        self._flights: defaultdict[str, InFlight[Running]] = defaultdict(InFlight)
        """What is generated, by document."""
        self._warming: dict[str, Call] = {}
        """Prompts that are computed while nobody waits, by document."""
        self._unplaced: set[str] = set()
        """Documents that were opened and whose cursor is not known."""
        self._syntax = DocumentBrackets()

    async def complete(self, ask: CompletionRequest) -> Answer | None:
        """Return texts for one place; None when a newer request of the document came meanwhile.
        Cancelling the coroutine stops the decode loop."""
        flight = self._flights[ask.document]
        mine = flight.begin()
        self._stop_warming(ask.document)
        self._unplaced.discard(ask.document)
        if not ask.invoked and (not is_place(ask) or is_prose(ask)):
            flight.stop()
            return Answer(reason=IN_PROSE if is_place(ask) else NOTHING_MISSING)
        hit = self._known(ask)
        # What was shown stays first among the alternatives, also after a part of it was taken.
        several = ask.invoked and self._settings().completion.alternatives > 1
        without_model = hit is not None and not several
        if not without_model and (reason := self._engine().refused):
            return Answer(reason=reason)
        if hit is not None:
            text, pieces = hit.text, hit.pieces
            if flight.running is not None and flight.running.typed_since(ask) is None:
                flight.stop()
        else:
            try:
                written = await self._written(ask, flight, mine)
            except RedraftError as error:
                return Answer(reason=str(error))
            if written is None:
                return None
            text, pieces = written
        filtered = self._filtered(text, pieces, ask)
        others = await self._alternatives(ask, filtered.sure) if several else []
        texts = [filtered.sure, *others] if filtered.sure else others
        reason = "" if texts else NOT_SURE if filtered.text else "the model suggests nothing here"
        return Answer(texts, reason, without_model)

    def _known(self, ask: CompletionRequest) -> CacheHit | None:
        return self._cache.find(
            *(ask.document, ask.prefix, ask.suffix), invoked=ask.invoked, threshold=ask.threshold
        )

    def _filtered(
        self, text: str, pieces: Sequence[LikelyPiece], ask: CompletionRequest
    ) -> _Filtered:
        syntax = self._syntax.syntax_of(ask)
        visible = shown_text(text, ask.prefix, ask.suffix, syntax)
        pieces = aligned(pieces, text, visible)
        sure = gated(visible, pieces, ask.threshold)
        return _Filtered(visible, pieces, sure if ask.invoked else offered(sure, ask))

    async def _written(
        self, ask: CompletionRequest, flight: InFlight[Running], mine: object
    ) -> tuple[str, Sequence[LikelyPiece]] | None:
        """Return the model's text and its probabilities; None when a newer request came. Raises
        without a model."""
        started = time.monotonic()
        patient_until = started + PATIENCE_S
        limit = started + self._settings().completion.timeout_ms / 1000
        running: Running | None = None
        try:
            while flight.newest is mine:
                if running is not None and running.error is not None:
                    error = running.error
                    raise (
                        error if isinstance(error, RedraftError) else EngineUnavailable(str(error))
                    )
                if running is None or running.typed_since(ask) is None:
                    fitting = (run for run in flight if run.typed_since(ask) is not None)
                    running = next(fitting, None) or self._start(ask, flight, COMPLETION)
                typed = len(ask.prefix) - len(running.ask.prefix)
                if running.is_cut and typed and self._known(ask) is None:
                    running = None
                    continue
                rest, pieces = running.text[typed:], rest_of(running.pieces, typed)
                gate = running.gate if pieces else 0.0
                if running.finished or (gate and sure_length(pieces, gate) < len(rest)):
                    # Of what is still to come nothing will be shown.
                    return rest, pieces
                now = time.monotonic()
                lines = rest[: max(0, rest.rfind("\n"))]
                if lines.strip() and now >= patient_until and not ask.invoked:
                    return lines, pieces
                if now >= limit:
                    message = self._engine().status.message
                    raise EngineUnavailable(message or "the model takes too long; see timeoutMs")
                await flight.wait((patient_until if now < patient_until else limit) - now)
        except asyncio.CancelledError:
            if flight.newest is mine and flight.running is running:
                flight.stop()
            raise
        return None

    def _start(self, ask: CompletionRequest, flight: InFlight[Running], priority: int) -> Running:
        job = self._job(ask)
        running = Running(ask, job.gate, flight.wake)
        if priority == COMPLETION:
            flight.run(running)
        else:
            flight.run_ahead(running)
        call = self._engine().ask(job, self._client, running.add, priority)
        running.start(call)
        call.future.add_done_callback(lambda _: self._ended(running, flight))
        return running

    def _job(self, ask: CompletionRequest) -> CompletionJob:
        settings = self._settings().completion
        several = settings.multiline == "always" or (
            settings.multiline == "auto"
            and ask.wants_several_lines
            and (ask.invoked or self._rates.wants_several(ask.language))
        )
        limit = settings.max_tokens if several else min(settings.max_tokens, SINGLE_LINE_TOKENS)
        return CompletionJob(
            workspace=ask.workspace,
            path=ask.path,
            prefix=ask.windowed_prefix,
            suffix=ask.windowed_suffix,
            language=ask.language,
            repository=PurePath(ask.workspace).name,
            snippets=self._snippets(ask),
            context_tokens=self._settings().context_tokens,
            prompt_seconds=self._settings().context.prompt_seconds,
            secret=ask.secret,
            head="" if len(ask.prefix) <= PREFIX_CHARACTERS else ask.prefix[:SCANNED_CHARACTERS],
            max_tokens=limit,
            single_line=not several,
            gate=least_joint(ask.threshold),
            temperature=settings.temperature,
        )

    def _ended(self, running: Running, flight: InFlight[Running]) -> None:
        """Put the text of an ended generation into the cache."""
        flight.ended(running)
        ask, text, pieces = running.ask, running.text, running.pieces
        if running.result is not None:
            self._on_result(running.result)
            logged = redacted(text, self._settings().log.source_text)
            logger.debug("wrote %s, %s", logged, running.result.stopped_by)
        if running.complete:
            text, pieces, _ = self._filtered(text, pieces, ask)
        if text or running.complete:
            self._cache.add(
                *(ask.document, ask.prefix, ask.suffix, text, running.complete, pieces),
                is_cut=running.is_cut,
            )

    def shown(self, ask: CompletionRequest, text: str) -> None:
        """A suggestion goes to the editor: the one after it is computed, as if it were accepted.
        Not where the user has gone on by then."""
        settings = self._settings()
        if settings.completion.prefetch and not (ask.invoked or saving_reason(settings.power)):
            following = replace(ask, prefix=ask.prefix + text)
            self._flights[ask.document].soon(AHEAD_S, lambda: self._fetch_ahead(following))

    def _fetch_ahead(self, ask: CompletionRequest) -> None:
        flight = self._flights[ask.document]
        if self._known(ask) is None and all(work.typed_since(ask) is None for work in flight):
            self._start(ask, flight, PREFETCH)

    async def _alternatives(self, ask: CompletionRequest, first: str) -> list[str]:
        texts: list[str] = []
        limit = time.monotonic() + ALTERNATIVES_S
        for seed in range(1, self._settings().completion.alternatives):
            if texts and time.monotonic() > limit:
                break
            job = replace(self._job(ask), temperature=ALTERNATIVE_TEMPERATURE, seed=seed)
            try:
                result = await self._engine().ask(job, self._client).result()
            except RedraftError:
                break
            alternative = self._filtered(result.text, (), ask).text if result else ""
            if alternative and alternative != first and alternative not in texts:
                texts.append(alternative)
        return texts

    async def explain(self, ask: CompletionRequest, plain: bool) -> JobResult:
        """One completion by the model alone: no cache, nothing filtered."""
        job = replace(self._job(ask), plain=plain, gate=0.0)
        result: JobResult = await self._engine().ask(job, self._client).result()
        return result

    def accepted(self, ask: CompletionRequest, text: str) -> None:
        """A suggestion was taken: it is known here from now on, also when it is undone, and what
        is written later in the workspace is drafted from it."""
        hit = self._cache.find(ask.document, ask.prefix, ask.suffix)
        # A part of it may have been taken, and the rest stays to be shown.
        if hit is None or not hit.text.startswith(text):
            self._cache.add(ask.document, ask.prefix, ask.suffix, text, complete=True)
        if ask.workspace:
            before = ask.prefix[-ACCEPTED_CONTEXT:]
            accepted = AcceptedText(ask.workspace, ask.path, before, text, secret=ask.secret)
            self._engine().tell(accepted)

    def opened(self, document: str, ask: Callable[[], CompletionRequest]) -> None:
        """A document was opened: compute what its prompts begin with, before the first key.
        ``ask``: the request at its start."""
        self._unplaced.add(document)
        if not saving_reason(self._settings().power):
            self._prefill_soon(document, OPENED_S, ask)

    def placed(self, document: str, ask: Callable[[], CompletionRequest]) -> None:
        """The editor shows where the cursor is; only the first time since it was opened counts."""
        if document in self._unplaced:
            self.rest(document, ask)

    def rest(self, document: str, ask: Callable[[], CompletionRequest]) -> None:
        """Compute the prompt after a change of the document, once the cursor rests and no request
        waits."""
        self._unplaced.discard(document)
        self._prefill_soon(document, REST_S, ask)

    def _prefill_soon(
        self, document: str, after_s: float, ask: Callable[[], CompletionRequest]
    ) -> None:
        self._stop_warming(document)
        self._flights[document].soon(after_s, lambda: self._prefill(ask()))

    def _prefill(self, ask: CompletionRequest) -> None:
        """Compute the prompt, and parse the document, before anybody waits for them."""
        document, engine = ask.document, self._engine()
        is_idle = self._flights[document].running is None
        self._syntax.syntax_of(ask)
        if engine.status.state not in ("ready", "loading") or not is_idle:
            return
        job = self._job(ask)
        if document in self._unplaced:
            job = replace(job, prefix=ask.suffix[:PREFIX_CHARACTERS], opening=True)
        call = self._warming[document] = engine.prefill(job, self._client)
        call.future.add_done_callback(lambda _: self._warmed(document, call))
        if len(self._warming) > MOST_WARMING:
            self._stop_warming(next(iter(self._warming)))

    def _warmed(self, document: str, call: Call) -> None:
        if self._warming.get(document) is call:
            del self._warming[document]

    def _stop_warming(self, document: str) -> None:
        """Stop computing a prompt ahead, so that a request need not wait for it."""
        if (call := self._warming.pop(document, None)) is not None:
            call.cancel()

    def close(self, document: str) -> None:
        """A document was closed."""
        self._stop_warming(document)
        self._unplaced.discard(document)
        self._flights.pop(document, InFlight()).close()
        self._cache.forget(document)
        self._syntax.forget(document)

    def close_all(self) -> None:
        """The client has gone."""
        for document in list(self._warming):
            self._stop_warming(document)
        for flight in self._flights.values():
            flight.stop()
