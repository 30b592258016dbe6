"""Any other server that speaks OpenAI's protocol: it is asked for text and does not draft.

Completions go to ``/infill`` (llama-server), or to ``/v1/completions`` with a suffix, or with a
prompt in the model's own form where the server takes no suffix. Edits go to
``/v1/chat/completions``. What the answer becomes is decided here, as for models of this machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any, NamedTuple

from lsp_server.completion import stopping
from lsp_server.editing.loops import is_loop
from lsp_server.editing.shown_text import ShownText, readable
from lsp_server.engine.call import OnSpans
from lsp_server.engine.generating import answer, put_in, sound
from lsp_server.engine.jobs import (
    AcceptedText,
    CompletionJob,
    ContextSnippet,
    EditJob,
    JobResult,
    Span,
)
from lsp_server.engine.prompt_length import PromptLength
from lsp_server.errors import EngineFailed, NothingToContinue
from lsp_server.remote.connection import ServerConnection
from lsp_server.remote.fim_texts import fim_text
from lsp_server.remote.served_model import Operation

PREFIX_CHARACTERS = 6_000
SUFFIX_CHARACTERS = 2_000
OTHERS_CHARACTERS = 4_000
"""Of other files, where text of them is wanted."""
AROUND_CHARACTERS = 2_000
"""Before and after a selection that is edited."""
NO_SUCH_REQUEST = ("400", "404", "405", "422", "501")
"""How servers refuse what they cannot do."""
END = "[DONE]"


class TextEvent(NamedTuple):
    """Text that came, and why it ends with it: ``end`` or ``length``, empty where it goes on."""

    text: str
    ended: str


Way = Callable[[CompletionJob], "tuple[str, dict[str, Any]] | None"]
"""The path and the body that ask for a completion; None where a server cannot be asked so."""


class OpenAiModel:
    """A model of a server that does not draft."""

    drafts = False
    dtype = ""
    prompt_length = PromptLength([])

    def __init__(self, connection: ServerConnection, name: str, has_infill: bool) -> None:
        """``has_infill``: the server is llama.cpp's."""
        self._connection = connection
        self.name = name
        infill: list[Way] = [self._infill] if has_infill else []
        self._ways: list[Way] = [*infill, self._with_suffix, self._in_its_form, self._prefix_alone]
        """What is tried, the best first; what the server refuses is not tried again."""

    @property
    def fills(self) -> bool:
        """Whether it is shown the text after the cursor, as far as is known."""
        return len(self._ways) > 1

    async def run(
        self,
        operation: Operation,
        job: CompletionJob | EditJob,
        urgency: int,
        document: str,
        on_spans: OnSpans,
    ) -> JobResult | None:
        """Do a job there; prompts cannot be computed ahead. Raises ServerUnavailable or
        EngineFailed."""
        if operation == "prefill":
            return None
        if isinstance(job, EditJob):
            return await self._edit(job, on_spans)
        return await self._complete(job, on_spans)

    async def accepted(self, taken: AcceptedText) -> None:
        """Nothing: the server does not draft."""

    # Completions

    async def _complete(self, job: CompletionJob, on_spans: OnSpans) -> JobResult:
        rule = stopping.single_line if job.single_line else stopping.block(job.prefix)
        if not job.prefix.strip() and not job.suffix.strip():
            raise NothingToContinue("there is no text to go on from; write the first words")
        while True:
            asked = self._ways[0](job)
            if asked is None:
                del self._ways[0]
                continue
            try:
                return await self._written(*asked, rule, on_spans)
            except EngineFailed as error:
                if error.kind not in NO_SUCH_REQUEST or len(self._ways) == 1:
                    raise
                del self._ways[0]

    def _infill(self, job: CompletionJob) -> tuple[str, dict[str, Any]]:
        """tools/server/README.md of llama.cpp, POST /infill."""
        extra = [{"filename": one.path, "text": sound(one.text)} for one in _others(job)]
        return "/infill", {
            "input_prefix": _prefix(job),
            "input_suffix": _suffix(job),
            "input_extra": extra,
            "prompt": "",
            "n_predict": job.max_tokens,
            "cache_prompt": True,
            **_sampling(job),
        }

    def _with_suffix(self, job: CompletionJob) -> tuple[str, dict[str, Any]] | None:
        suffix = _suffix(job)
        if not suffix.strip():
            return self._prefix_alone(job)
        return "/v1/completions", {**self._plain(job, _with_others(job)), "suffix": suffix}

    def _in_its_form(self, job: CompletionJob) -> tuple[str, dict[str, Any]] | None:
        prompt = fim_text(self.name, _with_others(job), _suffix(job))
        return None if prompt is None else ("/v1/completions", self._plain(job, prompt))

    def _prefix_alone(self, job: CompletionJob) -> tuple[str, dict[str, Any]]:
        return "/v1/completions", self._plain(job, _with_others(job))

    def _plain(self, job: CompletionJob, prompt: str) -> dict[str, Any]:
        return {
            "model": self.name,
            "prompt": prompt,
            "max_tokens": job.max_tokens,
            **_sampling(job),
        }

    async def _written(
        self, path: str, body: dict[str, Any], rule: stopping.StopRule, on_spans: OnSpans
    ) -> JobResult:
        """The text up to where it ends by itself, by the rule or by its length."""
        started, text, count = time.monotonic(), "", 0
        stopped_by = "end"
        async with aclosing(self._pieces(path, body)) as pieces:
            async for piece in pieces:
                count += 1
                cut = rule(text + piece.text)
                whole = text + piece.text if cut is None else (text + piece.text)[:cut]
                if len(whole) > len(text):
                    on_spans([Span(whole[len(text) :], "model")])
                text, stopped_by = whole, piece.ended or stopped_by
                if cut is not None:
                    stopped_by = "stop"
                    break
        return _result(text, count, time.monotonic() - started, stopped_by)

    # Edits

    async def _edit(self, job: EditJob, on_spans: OnSpans) -> JobResult:
        from accel.text.fences import closing_place, fence_for
        from accel.text.prompts import edit_question

        shown = ShownText(job.selection, job.instruction, legible=lambda _: True, spaces=False)
        asked = replace(
            job,
            selection=shown.text,
            instruction=shown.instruction,
            before=_last_lines(readable(job.before), AROUND_CHARACTERS),
            after=_first_lines(readable(job.after), AROUND_CHARACTERS),
        )
        fence = fence_for(asked.selection, asked.before, asked.after, asked.instruction)
        question = edit_question(
            asked.instruction,
            asked.selection,
            before=asked.before,
            after=asked.after,
            opening=fence + asked.language,
            path=asked.path,
        )
        body = {
            "model": self.name,
            "messages": [{"role": "user", "content": sound(question)}],
            "max_tokens": asked.max_tokens,
            **_sampling(asked),
        }
        started, whole, told, count, stopped_by = time.monotonic(), "", 0, 0, "end"
        async with aclosing(self._pieces("/v1/chat/completions", body)) as pieces:
            async for piece in pieces:
                count += 1
                whole += piece.text
                stopped_by = piece.ended or stopped_by
                code = _behind_fence(whole, fence)
                if code is None:
                    continue
                end = closing_place(code, fence)
                if len(code) > told and end is None:
                    on_spans([Span(code[told:], "model")])
                    told = len(code)
                if end is not None:
                    stopped_by = "stop"
                    break
                if is_loop(code, asked.selection):
                    stopped_by = "loop"
                    break
        code = _behind_fence(whole, fence)
        if code is None:
            raise EngineFailed("the model answered without code; ask again or use another model")
        result = _result(code, count, time.monotonic() - started, stopped_by)
        return put_in(shown, job, answer(result, fence, shown.text))

    # The stream

    async def _pieces(self, path: str, body: dict[str, Any]) -> AsyncGenerator[TextEvent, None]:
        async with self._connection.events(path, {**body, "stream": True}) as events:
            async for event in events:
                if event.data.strip() == END:
                    # Read to its end, so that the connection is kept for the next request.
                    continue
                try:
                    yield _piece(json.loads(event.data))
                except (ValueError, KeyError, TypeError, IndexError, AttributeError):
                    raise EngineFailed("the server sent an event that cannot be read") from None


def _piece(data: dict[str, Any]) -> TextEvent:
    """One event of ``/infill`` or of OpenAI's routes. Raises EngineFailed for an error."""
    if "error" in data:
        raise EngineFailed("the server gave up: it sent an error in the middle of its answer")
    if "choices" not in data:
        limited = data.get("stop_type") == "limit" or data.get("stopped_limit")
        ended = ("length" if limited else "end") if data.get("stop") else ""
        return TextEvent(str(data["content"]), ended)
    if not data["choices"]:
        # The last event tells the usage alone.
        return TextEvent("", "")
    choice = data["choices"][0]
    text = choice["delta"].get("content") if "delta" in choice else choice["text"]
    reason = choice.get("finish_reason")
    return TextEvent(text or "", "length" if reason == "length" else "end" if reason else "")


def _sampling(job: CompletionJob | EditJob) -> dict[str, Any]:
    return {"temperature": job.temperature, "top_p": job.top_p, "seed": job.seed}


def _result(text: str, tokens: int, seconds: float, stopped_by: str) -> JobResult:
    """A text that was not drafted: as many forwards as events came."""
    spans = [Span(text, "model")] if text else []
    return JobResult(text, spans, tokens, tokens, seconds, 0.0, {"model": tokens}, stopped_by)


def _prefix(job: CompletionJob) -> str:
    return sound(_last_lines(job.prefix, PREFIX_CHARACTERS))


def _suffix(job: CompletionJob) -> str:
    return sound(_first_lines(job.suffix, SUFFIX_CHARACTERS))


def _others(job: CompletionJob) -> list[ContextSnippet]:
    """Text of other files, as much as is wanted."""
    if not job.context_tokens:
        return []
    kept: list[ContextSnippet] = []
    room = OTHERS_CHARACTERS
    for one in job.snippets:
        if len(one.text) <= room:
            kept.append(one)
            room -= len(one.text)
    return kept


def _with_others(job: CompletionJob) -> str:
    """Other files, then this one up to the cursor."""
    others = "".join(f"# {one.path}\n{sound(one.text).rstrip()}\n\n" for one in _others(job))
    return others + _prefix(job)


def _last_lines(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return text[-most:].partition("\n")[2] or text[-most:]


def _first_lines(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return text[: text.rfind("\n", 0, most) + 1] or text[:most]


def _behind_fence(answer_text: str, fence: str) -> str | None:
    """The code of an answer that is being written; None before the line that opens it is whole."""
    start = answer_text.find(fence)
    _, newline, code = answer_text[max(start, 0) :].partition("\n")
    return code if start >= 0 and newline else None
