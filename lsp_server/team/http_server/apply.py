"""``POST /v1/apply``: a coding agent's snippet is put into a file, exactly or not at all. Where
that is not clear, the model is asked.

Sources: Relace's API reference, Instant Apply (``/v1/code/apply``, ``initial_code`` or
``initialCode``), and Morph's, Apply (a chat whose message holds ``<code>`` and ``<update>``).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import EDIT, JobResult
from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.apply.by_model import ModelMerge
from lsp_server.tasks.apply.edit_text import apply_text
from lsp_server.tasks.apply.refusals import AmbiguousSnippet, Merge
from lsp_server.tasks.apply.replacements import (
    LineReplacement,
    apply_replacements,
    text_replacement,
)
from lsp_server.team.http_server.bodies import json_route
from lsp_server.team.http_server.errors import RequestRefused, invalid
from lsp_server.team.http_server.fields import Flag
from lsp_server.team.http_server.generation import data, owned
from lsp_server.team.http_server.metrics import note_result
from lsp_server.team.http_server.model_names import model_name
from lsp_server.team.http_server.openai_completions import DONE
from lsp_server.team.http_server.rate_limits import RequestLimits
from lsp_server.team.http_server.streaming import EVENT_HEADERS, answered
from lsp_server.team.http_server.usage import usage

PATHS = "/v1/apply", "/v1/code/apply"
_MESSAGE = re.compile(
    r"\s*(?:<instructions?>(?P<instruction>.*?)</instructions?>)?\s*"
    r"<code>(?P<code>.*)</code>\s*<update>(?P<update>.*)</update>\s*",
    re.DOTALL,
)
_BORDER = re.compile(r"</code>\s*<update>")


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A file, and a snippet to put into it. ``asks_model``: one may be asked."""

    code: str
    snippet: str
    instruction: str = ""
    language: str | None = None
    asks_model: bool = True
    replacement: LineReplacement | None = None

    def merged(self) -> Merge:
        """Return the file as it becomes. Raises AmbiguousSnippet."""
        if self.replacement is not None:
            return apply_replacements(self.code, [self.replacement], self.language)
        return apply_text(self.code, self.snippet, self.language)


@dataclass(frozen=True, slots=True)
class Applied:
    """The file as it becomes. ``how``: ``exact`` or ``model``; ``results``: what a model wrote."""

    text: str
    how: str
    results: tuple[JobResult, ...] = ()


class ApplyFields(msgspec.Struct, forbid_unknown_fields=True):
    initial_code: str | None = None
    initialCode: str | None = None
    edit_snippet: str | None = None
    editSnippet: str | None = None
    instruction: str | None = None
    instructions: str | None = None
    old_string: str | None = None
    new_string: str | None = None
    replace_all: bool = False
    language: str = ""
    stream: Flag = False
    temperature: float | None = None
    relace_metadata: dict[str, Any] | None = None
    """These two are taken and change nothing."""
    model: bool | str = True
    """Its name, or false if none is to be asked."""

    @property
    def asked(self) -> ApplyRequest:
        """The request of a client. Raises RequestRefused."""
        replacement = None
        if self.old_string is not None and self.new_string is not None:
            replacement = text_replacement(self.old_string, self.new_string, self.replace_all)
        elif self.old_string is not None or self.new_string is not None:
            raise invalid("old_string and new_string go together; send both")
        return ApplyRequest(
            self._spelt("initial_code", "initialCode"),
            self._spelt("edit_snippet", "editSnippet", "" if replacement else None),
            self._spelt("instruction", "instructions", ""),
            self.language or None,
            self.model is not False,
            replacement,
        )

    def _spelt(self, name: str, other: str, default: str | None = None) -> str:
        """Return a text by one of two names. Raises RequestRefused for two values, or none."""
        texts = {text for text in (getattr(self, name), getattr(self, other)) if text is not None}
        if len(texts) > 1:
            raise invalid(f"{name} and {other} differ; send one of them")
        if not texts and default is None:
            raise invalid(f"{name} is missing")
        return texts.pop() if texts else default or ""


class SnippetRefused(RequestRefused):
    """A snippet fits several places of its file, or none: 422 with the places."""

    def __init__(self, error: AmbiguousSnippet) -> None:
        super().__init__(422, str(error), "ambiguous_snippet")
        self._places = to_json(error.readings)

    @property
    def body(self) -> dict[str, dict[str, Any]]:
        """With the lines of each place, and what would stand there."""
        return {"error": {**super().body["error"], "places": self._places}}


def apply_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    async def apply(fields: ApplyFields, request: Request) -> Response:
        snippet, stream = fields.asked, bool(fields.stream)
        applied = await apply_for(engine, snippet, request)
        answer = {
            "merged_code": applied.text,
            "mergedCode": applied.text,
            "how": applied.how,
            "usage": usage(applied.results),
        }
        if stream:
            return Response(data(answer) + DONE, headers=EVENT_HEADERS)
        return JSONResponse(answer)

    return [json_route(path, limits, ApplyFields, apply) for path in PATHS]


def message_of(messages: Sequence[Any]) -> ApplyRequest | None:
    """Return what a chat asks for that is nothing but a file and a snippet; None for any other
    chat."""
    texts = [each["content"] for each in messages if each["role"] != "system"]
    match = _MESSAGE.fullmatch(texts[0]) if len(texts) == 1 else None
    if match is None or len(_BORDER.findall(texts[0])) != 1:
        return None
    return ApplyRequest(match["code"], match["update"], match["instruction"] or "")


async def apply_for(engine: EngineInterface, snippet: ApplyRequest, request: Request) -> Applied:
    """Put a snippet into its file. Raises SnippetRefused, or as every request to the engine."""
    try:
        merge = await asyncio.to_thread(snippet.merged)
    except AmbiguousSnippet as error:
        merge_by_model = ModelMerge(
            snippet.code, snippet.snippet, error, snippet.instruction, snippet.language
        )
        model = model_name(engine)
        job = merge_by_model.job(model) if snippet.asks_model else None
        if job is None:
            raise SnippetRefused(error) from None
        job = owned(job, request)
        call = engine.ask(job, job.owner, None, EDIT)
        try:
            (result,) = await answered([call], request.receive)
        except RequestRefused as refusal:
            if isinstance(refusal.__cause__, EditRefused):
                raise SnippetRefused(error) from None
            raise
        note_result(request.scope, result)
        text = merge_by_model.merged(model, result)
        if text is None:
            raise SnippetRefused(error) from None
        return Applied(text, "model", (result,))
    return Applied(merge.text, merge.how)
