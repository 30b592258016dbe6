"""Any other server that speaks OpenAI's protocol. It writes text and does not draft.

Completions go to ``/infill`` (llama-server), or to ``/v1/completions`` with a suffix, a prompt in
the model's own form, or the prefix alone. Edits go to ``/v1/chat/completions``.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, NamedTuple

from lsp_server.editor.remote.answer_events import ErrorEvent, TextEvent, read_event
from lsp_server.editor.remote.connection import ServerConnection, error_details
from lsp_server.editor.remote.context_window import ContextWindow, is_about_length
from lsp_server.editor.remote.fim_texts import family_of, fim_text
from lsp_server.editor.remote.listed_models import LLAMA_SERVER, ListedModel
from lsp_server.shared.contract.calls import OnSpans
from lsp_server.shared.contract.jobs import (
    AcceptedText,
    CompletionJob,
    ContextSnippet,
    EditJob,
    JobResult,
    Span,
)
from lsp_server.shared.contract.status import EngineStatus
from lsp_server.shared.errors import EditRefused, EngineFailed, NothingToContinue, ServerRefused
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.editing.answers import code_of_answer, code_so_far
from lsp_server.tasks.editing.loop_watch import is_loop
from lsp_server.tasks.editing.shown_text import ShownText, readable
from lsp_server.tasks.editing.task import fitted, put_in
from lsp_server.text.surrogates import replace_surrogates

PREFIX_CHARACTERS = 6_000
SUFFIX_CHARACTERS = 2_000
OTHERS_CHARACTERS = 4_000
"""Of other files, where text of them is asked for."""
AROUND_CHARACTERS = (2_000, 500, 0)
"""Before and after a selection that is edited: as much as fits into the server's context."""
REFUSED_REQUEST = ("400", "404", "405", "413", "422", "501")
"""Statuses by which servers refuse one request."""
NO_SUCH_ROUTE = ("404", "405", "501")
TRIES = 6
"""A request is asked this often, with what its refusals tell."""
LONGER_THAN_SELECTION = 1.25
ANSWER_TOKENS = 64
"""An answer may have this many times the tokens of the selection, and so these more."""
LOOKED_AT_AGAIN = 1.05
"""What is written is read for people to look at once it is so many times as long."""
END = "[DONE]"
BROKEN = "the server's answer broke off"
_CANNOT_FILL = re.compile(
    r"suffix|infill|insert|fill.?in|\bfim\b|not (?:currently )?support|unsupported|unrecogni[sz]ed|"
    r"unknown (?:field|param|arg)|extra (?:inputs|fields|forbidden)|extra_forbidden|not permitted",
    re.IGNORECASE,
)
_OPTIONAL = ("seed", "top_p", "temperature")


class Texts(NamedTuple):
    """The texts in the request of a completion."""

    others: list[ContextSnippet]
    prefix: str
    suffix: str

    @property
    def with_others(self) -> str:
        """Other files, then this one up to the cursor."""
        texts = [
            f"# {snippet.path}\n{replace_surrogates(snippet.text).rstrip()}\n\n"
            for snippet in self.others
        ]
        return "".join(texts) + self.prefix


CompletionStrategy = Callable[[CompletionJob, Texts], "tuple[str, dict[str, Any]] | None"]
"""The path and the body that ask for a completion; None where a server cannot be asked so."""


class OpenAiModel:
    """A model of a server that does not draft."""

    drafts = False
    similar_bytes = 0

    def __init__(self, connection: ServerConnection, model: ListedModel) -> None:
        self._connection = connection
        self.name = model.name
        self._family = family_of(model.names, str(model.facts.get("template") or ""))
        self._window = ContextWindow()
        self._window.tell(model.facts)
        self._strategies: list[CompletionStrategy] = [
            *([self._infill] if model.owner == LLAMA_SERVER else []),
            self._with_suffix,
            *([self._in_model_format] if self._family else []),
            self._prefix_alone,
        ]
        """Strategies to try, the best first. One that the server cannot do is not tried again."""
        self._not_taken: set[str] = set()
        """Fields that the server does not take."""

    @property
    def status(self) -> EngineStatus:
        """The status of the model: it gets the text after the cursor until it refused that."""
        return EngineStatus(model=self.name, fills=len(self._strategies) > 1)

    async def ask(
        self,
        job: CompletionJob | EditJob,
        priority: int,
        on_spans: OnSpans,
        is_prefill: bool = False,
    ) -> JobResult | None:
        """Do a job there; prompts cannot be computed ahead. Raises ServerUnavailable, EngineFailed
        or EditRefused."""
        if is_prefill:
            return None
        if isinstance(job, EditJob):
            return await self._edit(job, on_spans)
        return await self._complete(job, on_spans)

    async def accepted(self, accepted: AcceptedText) -> None:
        """Nothing: the server does not draft."""

    # Completions

    async def _complete(self, job: CompletionJob, on_spans: OnSpans) -> JobResult:
        rule = stopping.single_line if job.single_line else stopping.block(job.prefix)
        if not job.prefix.strip() and not job.suffix.strip():
            raise NothingToContinue("there is no text to go on from; write the first words")
        strategies, tries = list(self._strategies), 0
        while True:
            texts = self._texts(job)
            request = strategies[0](job, texts)
            assert request is not None, "the prefix alone always makes a request"
            try:
                result = await self._written(*request, rule, on_spans)
            except ServerRefused as error:
                tries += 1
                prompt = texts.with_others + texts.suffix
                if tries < TRIES and self._learns(error, prompt, self._answer_tokens(job)):
                    continue
                if error.kind not in REFUSED_REQUEST or is_about_length(error.details, error.kind):
                    raise
                was_tried = strategies[0] != self._with_suffix or "suffix" in request[1]
                if was_tried and _cannot(error) and strategies[0] in self._strategies[:-1]:
                    self._strategies.remove(strategies[0])
                if len(strategies) == 1:
                    raise
                del strategies[0]
            else:
                return result

    def _learns(self, error: ServerRefused, prompt: str, answer_tokens: int) -> bool:
        """Take what a refusal tells of lengths and fields; return whether to ask again."""
        if is_about_length(error.details, error.kind):
            self._window.halve(prompt, answer_tokens)
            return True
        if error.kind not in ("400", "422"):
            return False
        renamed = "max_completion_tokens" in error.details and {"max_tokens"}
        named = {field for field in _OPTIONAL if re.search(rf"\b{field}\b", error.details)}
        fresh = (renamed or named) - self._not_taken
        self._not_taken |= fresh
        return bool(fresh)

    def _answer_tokens(self, job: CompletionJob) -> int:
        window = self._window
        most = window.tokens // 4 if window.tokens else job.max_tokens
        return max(min(job.max_tokens, most, window.answer_tokens or job.max_tokens), 1)

    def _texts(self, job: CompletionJob) -> Texts:
        """As much text as is asked for, and as fits into the server's context."""
        others, prefix, suffix = OTHERS_CHARACTERS, PREFIX_CHARACTERS, SUFFIX_CHARACTERS
        if self._window.tokens:
            fits = self._window.tokens - self._answer_tokens(job) - ANSWER_TOKENS
            room = self._window.characters(max(fits, ANSWER_TOKENS // 2))
            if others + prefix + suffix > room:
                suffix = min(suffix, room // 4, len(job.suffix))
                prefix = min(prefix, room - suffix, len(job.prefix))
                others = min(others, room - suffix - prefix)
        return Texts(
            _others(job, others),
            replace_surrogates(_last_lines(job.prefix, prefix)),
            replace_surrogates(_first_lines(job.suffix, suffix)),
        )

    def _infill(self, job: CompletionJob, texts: Texts) -> tuple[str, dict[str, Any]]:
        """tools/server/README.md of llama.cpp, POST /infill."""
        extra = [
            {"filename": snippet.path, "text": replace_surrogates(snippet.text)}
            for snippet in texts.others
        ]
        return "/infill", {
            "input_prefix": texts.prefix,
            "input_suffix": texts.suffix,
            "input_extra": extra,
            "prompt": "",
            "n_predict": self._answer_tokens(job),
            "cache_prompt": True,
            **_sampling(job),
        }

    def _with_suffix(self, job: CompletionJob, texts: Texts) -> tuple[str, dict[str, Any]]:
        if not texts.suffix.strip():
            return self._prefix_alone(job, texts)
        body = {**self._plain(job, texts.with_others), "suffix": texts.suffix}
        return "/v1/completions", body

    def _in_model_format(self, job: CompletionJob, texts: Texts) -> tuple[str, dict[str, Any]]:
        assert self._family is not None, "the strategy is there for models of known families"
        prompt = fim_text(self._family, texts.with_others, texts.suffix)
        return "/v1/completions", self._plain(job, prompt)

    def _prefix_alone(self, job: CompletionJob, texts: Texts) -> tuple[str, dict[str, Any]]:
        return "/v1/completions", self._plain(job, texts.with_others)

    def _plain(self, job: CompletionJob, prompt: str) -> dict[str, Any]:
        return {
            "model": self.name,
            "prompt": prompt,
            "max_tokens": self._answer_tokens(job),
            **_sampling(job),
        }

    async def _written(
        self, path: str, body: dict[str, Any], rule: stopping.StopRule, on_spans: OnSpans
    ) -> JobResult:
        """Return the text up to where it ends by itself, by the rule or by its length; of a text
        that did not end the whole lines. Raises EngineFailed where there is none of a text that
        broke off."""
        started, text, count, ended = time.monotonic(), "", 0, ""
        async with aclosing(self._pieces(path, body)) as pieces:
            async for piece in pieces:
                count += 1
                cut = rule(text + piece.text)
                longer = text + piece.text if cut is None else (text + piece.text)[:cut]
                if len(longer) > len(text):
                    on_spans([Span(longer[len(text) :], "model")])
                text, ended = longer, piece.ended or ended
                if cut is not None:
                    ended = "stop"
                    break
        if ended not in ("end", "stop"):
            text = text[: text.rfind("\n") + 1].rstrip("\r\n")
            if not text.strip() and ended != "length":
                raise EngineFailed(_why_not_whole(ended))
            ended = "length" if ended == "length" else "broken"
        return _result(text, count, time.monotonic() - started, ended)

    # Edits

    async def _edit(self, job: EditJob, on_spans: OnSpans) -> JobResult:
        legible = ShownText(job.selection, job.instruction, legible=lambda _: True)
        tries = 0
        while True:
            windowed, question, max_tokens = self._question(job, legible)
            try:
                return await self._edited(job, windowed, legible, question, max_tokens, on_spans)
            except ServerRefused as error:
                tries += 1
                if tries == TRIES or not self._learns(error, question, max_tokens):
                    raise

    def _question(self, job: EditJob, legible: ShownText) -> tuple[EditJob, str, int]:
        """Return the edit, its question, and how many tokens the answer may have. As much text
        around the selection is in it as fits into the server's context. Raises EditRefused where
        the selection alone does not fit."""
        from accel.text.fences import fence_for
        from accel.text.prompts import edit_question

        window = self._window
        selection = window.tokens_of(legible.text)
        enough = int(LONGER_THAN_SELECTION * selection) + ANSWER_TOKENS
        for characters in AROUND_CHARACTERS:
            windowed = replace(
                job,
                selection=legible.text,
                instruction=legible.instruction,
                before=_last_lines(readable(job.before), characters),
                after=_first_lines(readable(job.after), characters),
            )
            fence = fence_for(
                windowed.selection, windowed.before, windowed.after, windowed.instruction
            )
            question = replace_surrogates(
                edit_question(
                    windowed.instruction,
                    windowed.selection,
                    before=windowed.before,
                    after=windowed.after,
                    opening=fence + windowed.language,
                    path=windowed.path,
                )
            )
            max_tokens = window.answer_tokens_left(question, windowed.max_tokens)
            if max_tokens >= min(enough, windowed.max_tokens):
                break
        if max_tokens < selection // 2:
            most = window.answer_tokens if max_tokens == window.answer_tokens else window.tokens
            raise EditRefused(
                f"the selection is too long for the server, which takes {most} tokens; select "
                "fewer lines"
            )
        return windowed, question, max_tokens

    async def _edited(
        self,
        job: EditJob,
        windowed: EditJob,
        legible: ShownText,
        question: str,
        max_tokens: int,
        on_spans: OnSpans,
    ) -> JobResult:
        body = {
            "model": self.name,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": max_tokens,
            **_sampling(windowed),
        }
        started, answer, shown_code, count, ended = time.monotonic(), "", "", 0, ""
        looked_at = 0
        async with aclosing(self._pieces("/v1/chat/completions", body)) as pieces:
            async for piece in pieces:
                count += 1
                answer += piece.text
                ended = piece.ended or ended
                if "\n" not in piece.text or len(answer) < looked_at * LOOKED_AT_AGAIN:
                    continue
                looked_at = len(answer)
                code = code_so_far(answer, windowed.selection)
                if len(code) > len(shown_code) and code.startswith(shown_code):
                    on_spans([Span(code[len(shown_code) :], "model")])
                    shown_code = code
                if is_loop(answer, windowed.selection):
                    ended = "loop"
                    break
        if ended not in ("end", "length", "loop"):
            raise EditRefused(f"{_why_not_whole(ended)}; edit again")
        seconds = time.monotonic() - started
        if ended != "end":
            return _result(answer, count, seconds, ended)
        code = code_of_answer(
            answer,
            windowed.selection,
            language=windowed.language,
            instruction=windowed.instruction,
            before=windowed.before,
            after=windowed.after,
        )
        return put_in(legible, job, fitted(_result(code, count, seconds, ended), legible.text))

    # The stream

    async def _pieces(self, path: str, body: dict[str, Any]) -> AsyncGenerator[TextEvent, None]:
        """Yield the texts that come. An error ends them; one before the first is raised."""
        has_text, has_ended = False, False
        async with self._connection.events(path, self._taken(body)) as events:
            async for event in events:
                data = event.data.strip()
                if has_ended or data.upper() == END:
                    # Read to its end, so that the connection is kept for the next request.
                    has_ended = True
                    continue
                if not data.startswith("{"):
                    # A sign of life, as servers and proxies before them send it.
                    continue
                try:
                    read = read_event(json.loads(data), event.event)
                except (ValueError, KeyError, TypeError, IndexError, AttributeError):
                    yield TextEvent("", "an event that cannot be read")
                    return
                if isinstance(read, ErrorEvent):
                    details = error_details(read.error)
                    if not has_text:
                        raise self._connection.refused("gave up", details, "stream")
                    yield TextEvent("", details or "an error")
                    return
                has_text = has_text or bool(read.text)
                yield read

    def _taken(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body as the server takes it."""
        sent = {name: value for name, value in body.items() if name not in self._not_taken}
        if "max_tokens" in self._not_taken and "max_tokens" in body:
            sent["max_completion_tokens"] = body["max_tokens"]
        return {**sent, "stream": True}


def _cannot(error: ServerRefused) -> bool:
    """Return whether a refusal says that the server has no such way to complete."""
    is_missing = error.kind in NO_SUCH_ROUTE and "model" not in error.details.lower()
    return is_missing or _CANNOT_FILL.search(error.details) is not None


def _why_not_whole(ended: str) -> str:
    """Return why an answer is not whole. ``ended``: the server's word for it, if any."""
    return f"{BROKEN} ({ended})" if ended else BROKEN


def _sampling(job: CompletionJob | EditJob) -> dict[str, Any]:
    return {"temperature": job.temperature, "top_p": job.top_p, "seed": job.seed}


def _result(text: str, tokens: int, seconds: float, stopped_by: str) -> JobResult:
    """Return a text that was not drafted: as many forwards as events came."""
    spans = [Span(text, "model")] if text else []
    return JobResult(text, spans, tokens, tokens, seconds, 0.0, {"model": tokens}, stopped_by)


def _others(job: CompletionJob, most: int) -> list[ContextSnippet]:
    """Return text of other files, as much as is asked for."""
    if not job.context_tokens:
        return []
    fitting: list[ContextSnippet] = []
    for snippet in job.snippets:
        if len(snippet.text) <= most:
            fitting.append(snippet)
            most -= len(snippet.text)
    return fitting


def _last_lines(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return text[-most:].partition("\n")[2] or text[-most:]


def _first_lines(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return text[: text.rfind("\n", 0, most) + 1] or text[:most]
