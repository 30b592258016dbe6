"""Completions of one client: from the cache, from a generation under way, or from the model.

The newest request of a document wins. A request that it supersedes is answered ``None``; one that
has nothing to show is answered with no texts and a reason.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from lsp_server.editor.completion.acceptance_rates import AcceptanceRates
from lsp_server.editor.completion.cache import CacheHit, SuggestionCache
from lsp_server.editor.completion.document_brackets import DocumentBrackets
from lsp_server.editor.completion.postfilter import shown_text, wants_several_lines
from lsp_server.editor.completion.request import (
    PREFIX_CHARACTERS,
    CompletionRequest,
    windowed_prefix,
    windowed_suffix,
)
from lsp_server.editor.completion.running import Running
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
from lsp_server.shared.processes.log import redacted
from lsp_server.shared.settings import Settings
from lsp_server.tasks.completion.gate import (
    THRESHOLDS,
    LikelyPiece,
    aligned,
    gated,
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
"""Alternatives that take longer are left out."""

NOT_SURE = "the model is not sure enough of what it suggests here; see redraft.completion.gate"

_DIVERGED = "\0diverged"
"""The text that was being written is not what the user types."""


@dataclass(slots=True)
class Answer:
    """Texts to show, or why there are none."""

    texts: list[str] = field(default_factory=list)
    reason: str = ""
    without_model: bool = False


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
        self._running: dict[str, Running] = {}
        self._ahead: dict[str, Running] = {}
        self._newest: dict[str, object] = {}
        self._resting: dict[str, asyncio.TimerHandle] = {}
        self._warming: dict[str, Call] = {}
        """Prompts that are computed while nobody waits, by document."""
        self._unplaced: set[str] = set()
        """Documents that were opened and whose cursor is not known."""
        self._syntax = DocumentBrackets()

    async def complete(self, ask: CompletionRequest) -> Answer | None:
        """Texts for one place; None when a newer request of the document came meanwhile. Cancelling
        the coroutine stops the decode loop."""
        mine = self._newest[ask.document] = object()
        self._wake_waiting(ask.document)
        self._forget_rest(ask.document)
        self._unplaced.discard(ask.document)
        found = self._cache.find(ask.document, ask.prefix, ask.suffix)
        if found is not None and self._asks_anew(found, ask):
            found = None
        if found is not None and not (ask.invoked and self._settings().completion.alternatives > 1):
            return self._known(ask, found)
        if reason := self._engine().refused:
            return Answer(reason=reason)
        if found is not None:
            # What was shown stays first among the alternatives, also after a part of it was taken.
            text, pieces = found.text, found.pieces
        else:
            try:
                written = await self._text_for(ask, mine)
            except RedraftError as error:
                return Answer(reason=str(error))
            if written is None:
                return None
            text, pieces = written
        filtered = self._filtered(text, ask)
        shown = self._sure_of(filtered, aligned(pieces, text, filtered), ask)
        others = await self._alternatives(ask, shown) if ask.invoked else []
        self._fetch_ahead_soon(ask, shown)
        texts = [shown, *others] if shown else others
        if texts:
            return Answer(texts)
        return Answer(reason=NOT_SURE if filtered else "the model suggests nothing here")

    def _asks_anew(self, found: CacheHit, ask: CompletionRequest) -> bool:
        """Whether the model can say more than what is known: by hand, and where it was not sure of
        a token that is typed in part by now."""
        if ask.invoked:
            return found.is_short
        return found.is_inside and not gated(found.text, found.pieces, self._threshold(ask))

    def _known(self, ask: CompletionRequest, found: CacheHit) -> Answer:
        filtered = self._filtered(found.text, ask)
        shown = self._sure_of(filtered, aligned(found.pieces, found.text, filtered), ask)
        running = self._running.get(ask.document)
        if running is not None and running.typed_since(ask) is None:
            self._stop(ask.document)
        self._fetch_ahead_soon(ask, shown)
        if shown:
            return Answer([shown], without_model=True)
        return Answer(
            reason=NOT_SURE if filtered else "nothing more to suggest", without_model=True
        )

    def _filtered(self, text: str, ask: CompletionRequest) -> str:
        return shown_text(text, ask.prefix, ask.suffix, self._syntax.syntax_of(ask))

    def _sure_of(self, text: str, pieces: Sequence[LikelyPiece], ask: CompletionRequest) -> str:
        return gated(text, pieces, self._threshold(ask))

    def _threshold(self, ask: CompletionRequest) -> float:
        """The joint probability down to which text is shown; 0, which is all of it, for whoever
        asks by hand."""
        return 0.0 if ask.invoked else THRESHOLDS[self._settings().completion.gate]

    def _running_for(self, ask: CompletionRequest) -> Running:
        """The generation that writes what the user is typing, or a new one."""
        for group in (self._running, self._ahead):
            running = group.get(ask.document)
            if running is not None and running.usable and running.typed_since(ask) is not None:
                return running
        self._stop(ask.document)
        running = self._start(ask, COMPLETION)
        self._running[ask.document] = running
        return running

    def _start(self, ask: CompletionRequest, priority: int) -> Running:
        running = Running(ask)
        call = self._engine().ask(self._job(ask), self._client, running.add, priority)
        running.start(call)
        call.future.add_done_callback(lambda _: self._remember(running))
        # A document is parsed once, while the model begins to write.
        self._syntax.syntax_of(ask)
        return running

    def _job(self, ask: CompletionRequest) -> CompletionJob:
        settings = self._settings().completion
        several = settings.multiline == "always" or (
            settings.multiline == "auto"
            and wants_several_lines(ask.line_before, ask.line_after)
            and (ask.invoked or self._rates.wants_several(ask.language))
        )
        limit = settings.max_tokens if several else min(settings.max_tokens, SINGLE_LINE_TOKENS)
        return CompletionJob(
            workspace=ask.workspace,
            path=ask.path,
            prefix=windowed_prefix(ask.prefix),
            suffix=windowed_suffix(ask.suffix),
            language=ask.language,
            repository=PurePath(ask.workspace).name,
            snippets=self._snippets(ask),
            context_tokens=self._settings().context_tokens,
            prompt_seconds=self._settings().context.prompt_seconds,
            secret=ask.secret,
            head="" if len(ask.prefix) <= PREFIX_CHARACTERS else ask.prefix[:SCANNED_CHARACTERS],
            max_tokens=limit,
            single_line=not several,
            gate=self._threshold(ask),
            temperature=settings.temperature,
        )

    async def _text_for(
        self, ask: CompletionRequest, mine: object
    ) -> tuple[str, Sequence[LikelyPiece]] | None:
        """What the model writes here, and how likely it finds that; None when a newer request came.
        Raises without a model."""
        limit = time.monotonic() + self._settings().completion.timeout_ms / 1000
        while True:
            running = self._running_for(ask)
            running.waiting += 1
            try:
                text = await self._follow(ask, running, mine, limit)
            except asyncio.CancelledError:
                self._abandon(running)
                raise
            finally:
                running.waiting -= 1
            if text != _DIVERGED:
                if self._newest.get(ask.document) is not mine:
                    return None
                return text, rest_of(running.pieces, len(running.typed_since(ask) or ""))

    async def _follow(
        self, ask: CompletionRequest, running: Running, mine: object, limit: float
    ) -> str:
        started = time.monotonic()
        while self._newest.get(ask.document) is mine:
            typed = running.typed_since(ask)
            if typed is None:
                return _DIVERGED
            rest = running.text[len(typed) :]
            if running.error is not None:
                raise _as_ours(running.error)
            if running.finished:
                return rest if running.complete else _DIVERGED
            threshold, pieces = self._threshold(ask), rest_of(running.pieces, len(typed))
            if threshold and pieces and sure_length(pieces, threshold) < len(rest):
                # Nothing of what is still to come will be shown.
                return rest
            now = time.monotonic()
            lines = rest[: max(0, rest.rfind("\n"))]
            patient_until = started + PATIENCE_S
            if lines.strip() and now >= patient_until and not ask.invoked:
                return lines
            if now >= limit:
                engine = self._engine()
                raise EngineUnavailable(
                    engine.status.message or "the model takes too long; see timeoutMs"
                )
            await running.wait((patient_until if now < patient_until else limit) - now)
        return ""

    def _wake_waiting(self, document: str) -> None:
        for group in (self._running, self._ahead):
            if (running := group.get(document)) is not None:
                running.wake()

    def _abandon(self, running: Running) -> None:
        """The client cancelled a request: its generation stops unless another waits for it."""
        document = running.ask.document
        if running.waiting == 1 and self._running.get(document) is running:
            self._stop(document)

    def _stop(self, document: str) -> None:
        for group in (self._running, self._ahead):
            running = group.pop(document, None)
            if running is not None:
                running.cancel()
                running.wake()

    def _remember(self, running: Running) -> None:
        ask = running.ask
        if running.result is not None:
            self._on_result(running.result)
            shown = redacted(running.text, self._settings().log.source_text)
            logger.debug("wrote %s, %s", shown, running.result.stopped_by)
        text, pieces = running.text, running.pieces
        if running.complete:
            text = self._filtered(text, ask)
            pieces = aligned(pieces, running.text, text)
        if text or running.complete:
            self._cache.add(
                *(ask.document, ask.prefix, ask.suffix, text, running.complete, pieces),
                is_short=bool(pieces) and self._threshold(ask) > 0,
            )
        for group in (self._running, self._ahead):
            if group.get(ask.document) is running:
                del group[ask.document]

    def _fetch_ahead_soon(self, ask: CompletionRequest, shown: str) -> None:
        """Compute the suggestion after this one, once this one is on its way to the editor."""
        if shown and self._settings().completion.prefetch and not ask.invoked:
            asyncio.get_running_loop().call_later(AHEAD_S, self._fetch_ahead, ask, shown,
                                                  self._newest.get(ask.document))  # fmt: skip

    def _fetch_ahead(self, ask: CompletionRequest, shown: str, newest: object) -> None:
        """The same as if the suggestion were accepted; not when the user has gone on already."""
        if newest is None or self._newest.get(ask.document) is not newest:
            return
        prefix = ask.prefix + shown
        if self._cache.find(ask.document, prefix, ask.suffix) is not None:
            return
        following = CompletionRequest(
            ask.document, ask.path, ask.workspace, ask.language, prefix, ask.suffix, ask.secret
        )
        running = self._running.get(ask.document)
        if running is not None and running.usable and running.typed_since(following) is not None:
            return
        ahead = self._ahead.get(ask.document)
        if ahead is not None:
            if ahead.ask.prefix == prefix and ahead.ask.suffix == ask.suffix:
                return
            ahead.cancel()
        self._ahead[ask.document] = self._start(following, PREFETCH)

    async def _alternatives(self, ask: CompletionRequest, first: str) -> list[str]:
        texts: list[str] = []
        limit = time.monotonic() + ALTERNATIVES_S
        for seed in range(1, self._settings().completion.alternatives):
            if time.monotonic() > limit:
                break
            job = replace(self._job(ask), temperature=ALTERNATIVE_TEMPERATURE, seed=seed)
            call = self._engine().ask(job, self._client)
            try:
                result = await call.future
            except asyncio.CancelledError:
                call.cancel()
                raise
            except RedraftError:
                break
            shown = self._filtered(result.text, ask) if result else ""
            if shown and shown != first and shown not in texts:
                texts.append(shown)
        return texts

    async def explain(self, ask: CompletionRequest, plain: bool) -> JobResult:
        """One completion by the model alone: no cache, nothing filtered."""
        job = replace(self._job(ask), plain=plain, gate=0.0)
        call = self._engine().ask(job, self._client)
        try:
            result: JobResult = await call.future
        except asyncio.CancelledError:
            call.cancel()
            raise
        return result

    def accepted(self, ask: CompletionRequest, text: str) -> None:
        """A suggestion was taken: it is known here from now on, also when it is undone, and what
        is written later in the workspace is drafted from it."""
        known = self._cache.find(ask.document, ask.prefix, ask.suffix)
        # A part of it may have been taken, and the rest stays to be shown.
        if known is None or not known.text.startswith(text):
            self._cache.add(ask.document, ask.prefix, ask.suffix, text, complete=True)
        if ask.workspace:
            before = ask.prefix[-ACCEPTED_CONTEXT:]
            taken = AcceptedText(ask.workspace, ask.path, before, text, secret=ask.secret)
            self._engine().tell(taken)

    def opened(self, document: str, ask: Callable[[], CompletionRequest]) -> None:
        """A document was opened: compute what its prompts begin with, before the first key.
        ``ask``: the request at its start."""
        self._unplaced.add(document)
        self._once_quiet(document, OPENED_S, lambda: self._opening_job(ask()))

    def placed(self, document: str, ask: Callable[[], CompletionRequest]) -> None:
        """The editor shows where the cursor is; only the first time since it was opened counts."""
        if document in self._unplaced:
            self.rest(document, ask)

    def rest(self, document: str, ask: Callable[[], CompletionRequest]) -> None:
        """The document changed: compute the prompt once the cursor rests and nobody asks."""
        self._unplaced.discard(document)
        self._once_quiet(document, REST_S, lambda: self._job(ask()))

    def _once_quiet(self, document: str, after_s: float, job: Callable[[], CompletionJob]) -> None:
        self._forget_rest(document)
        loop = asyncio.get_running_loop()
        self._resting[document] = loop.call_later(after_s, self._prefill, document, job)

    def _opening_job(self, ask: CompletionRequest) -> CompletionJob:
        beginning = ask.suffix[:PREFIX_CHARACTERS]
        return replace(self._job(ask), prefix=beginning, opening=True)

    def _forget_rest(self, document: str) -> None:
        """Whoever asks now does not wait for what is computed ahead."""
        if (timer := self._resting.pop(document, None)) is not None:
            timer.cancel()
        if (call := self._warming.pop(document, None)) is not None:
            call.cancel()

    def _prefill(self, document: str, job: Callable[[], CompletionJob]) -> None:
        self._resting.pop(document, None)
        engine = self._engine()
        if engine.status.state not in ("ready", "loading") or document in self._running:
            return
        call = self._warming[document] = engine.prefill(job(), self._client)
        call.future.add_done_callback(lambda _: self._warmed(document, call))
        if len(self._warming) > MOST_WARMING:
            self._forget_rest(next(iter(self._warming)))

    def _warmed(self, document: str, call: Call) -> None:
        if self._warming.get(document) is call:
            del self._warming[document]

    def close(self, document: str) -> None:
        """A document was closed."""
        self._forget_rest(document)
        self._unplaced.discard(document)
        self._stop(document)
        self._cache.forget(document)
        self._newest.pop(document, None)
        self._syntax.forget(document)

    def close_all(self) -> None:
        """The client has gone."""
        for document in [*self._resting, *self._warming]:
            self._forget_rest(document)
        for document in list({*self._running, *self._ahead}):
            self._stop(document)


def _as_ours(error: BaseException) -> RedraftError:
    return error if isinstance(error, RedraftError) else EngineUnavailable(str(error))
