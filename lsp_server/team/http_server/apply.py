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

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from lsp_server.shared.contract.calls import Call
from lsp_server.shared.contract.codec import read, to_json
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import EDIT, JobResult
from lsp_server.shared.errors import EditRefused, RedraftError
from lsp_server.tasks.apply.bounded import BoundedEdits
from lsp_server.tasks.apply.by_model import ModelMerge
from lsp_server.tasks.apply.edit_text import EditFields, apply_text
from lsp_server.tasks.apply.refusals import AmbiguousSnippet, Merge
from lsp_server.tasks.apply.replacements import FileUpdate, apply_replacements
from lsp_server.team.http_server.errors import ClientLeft, RequestRefused, invalid
from lsp_server.team.http_server.fields import read_json
from lsp_server.team.http_server.generation import data, owned
from lsp_server.team.http_server.metrics import note_result
from lsp_server.team.http_server.model_names import model_name
from lsp_server.team.http_server.openai_completions import DONE
from lsp_server.team.http_server.rate_limits import RequestLimits
from lsp_server.team.http_server.streaming import EVENT_HEADERS, answered, cancelled_by_leaving
from lsp_server.team.http_server.usage import usage

PATHS = "/v1/apply", "/v1/code/apply"
_MESSAGE = re.compile(
    r"\s*(?:<instructions?>(?P<instruction>.*?)</instructions?>)?\s*"
    r"<code>(?P<code>.*)</code>\s*<update>(?P<update>.*)</update>\s*",
    re.DOTALL,
)
_BORDER = re.compile(r"</code>\s*<update>")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyRequest(EditFields):
    """A file, and an edit to put into it. Fields of any type are taken and change nothing."""

    initial_code: str
    language: str = ""
    stream: bool = False
    relace_metadata: Any = None
    metadata: Any = None
    user: Any = None
    temperature: Any = None
    top_p: Any = None
    max_tokens: Any = None
    stream_options: Any = None

    async def merged(self, edits: BoundedEdits) -> Merge:
        """Return the file as it becomes. Raises AmbiguousSnippet."""
        code, language = self.initial_code, self.language or None
        replacements = self.replacements()
        size = len(code) + FileUpdate("", replacements, self.snippet).size
        if replacements:
            return await edits.merged(size, apply_replacements, code, replacements, language)
        return await edits.merged(size, apply_text, code, self.snippet, language)


@dataclass(frozen=True, slots=True)
class Applied:
    """The file as it becomes. ``how``: ``exact`` or ``model``; ``results``: what a model wrote."""

    text: str
    how: str
    results: tuple[JobResult, ...] = ()


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
    async def apply(request: Request) -> Response:
        try:
            edit = read(ApplyRequest, await read_json(request, limits.body_bytes))
            edit.replacements()
        except RedraftError as error:
            raise invalid(str(error)) from None
        applied = await apply_for(engine, edit, request)
        answer = {
            "merged_code": applied.text,
            "mergedCode": applied.text,
            "how": applied.how,
            "usage": usage(applied.results),
        }
        if edit.stream:
            return Response(data(answer) + DONE, headers=EVENT_HEADERS)
        return JSONResponse(answer)

    return [Route(path, apply, methods=["POST"]) for path in PATHS]


def message_of(messages: Sequence[Any]) -> ApplyRequest | None:
    """Return what a chat of a file and a snippet alone asks for; None for any other chat."""
    texts = [each["content"] for each in messages if each["role"] != "system"]
    match = _MESSAGE.fullmatch(texts[0]) if len(texts) == 1 else None
    if match is None or len(_BORDER.findall(texts[0])) != 1:
        return None
    return ApplyRequest(
        initial_code=match["code"], snippet=match["update"], instruction=match["instruction"] or ""
    )


async def apply_for(engine: EngineInterface, edit: ApplyRequest, request: Request) -> Applied:
    """Put an edit into its file. Raises SnippetRefused, or as every request to the engine."""
    try:
        making = asyncio.ensure_future(edit.merged(request.app.state.edits))
        call = Call(0, EDIT, making, None, making.cancel)
        async with cancelled_by_leaving([call], request.receive) as leaving:
            await asyncio.wait([making])
            if leaving.done():
                raise ClientLeft
            merge = making.result()
    except AmbiguousSnippet as error:
        merge_by_model = ModelMerge(
            edit.initial_code, edit.snippet, error, edit.instruction, edit.language or None
        )
        model = model_name(engine)
        job = merge_by_model.job(model) if edit.snippet and edit.model is not False else None
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
