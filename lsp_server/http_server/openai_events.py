"""Requests and answers that OpenAI's two routes share.

Source: OpenAI's API reference, Completions and Chat Completions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from lsp_server.contract.engine import EngineInterface
from lsp_server.contract.jobs import GenerateJob, JobResult, Span
from lsp_server.http_server.answer_text import AnswerPiece
from lsp_server.http_server.bodies import read_json
from lsp_server.http_server.fields import Fields
from lsp_server.http_server.generation import GenerationEvents, data, generation_response, owned
from lsp_server.http_server.known_fields import refuse_the_rest
from lsp_server.http_server.limits import RequestLimits
from lsp_server.http_server.model_names import model_name
from lsp_server.http_server.usage import finish_reason, usage

DONE = b"data: [DONE]\n\n"


class OpenAiEvents(GenerationEvents):
    """The answers of a route. A route says what its objects are called and how a choice shows
    text."""

    id_prefix: ClassVar[str]
    whole_object: ClassVar[str]
    """``object`` of an answer in one."""
    chunk_object: ClassVar[str]
    """``object`` of a piece of a stream."""

    def __init__(self, model: str, job: GenerateJob, tells_usage: bool) -> None:
        """``tells_usage``: a stream ends with what it cost."""
        super().__init__(self.id_prefix, model, job)
        self._tells_usage = tells_usage
        self._tells_logprobs = job.logprobs is not None

    @abstractmethod
    def shown_piece(self, text: str) -> dict[str, Any]:
        """A piece of the text, in the choice of a chunk."""

    @abstractmethod
    def shown_end(self) -> dict[str, Any]:
        """No text, in the choice of the last chunk."""

    @abstractmethod
    def shown_whole(self, text: str) -> dict[str, Any]:
        """The text, in the choice of an answer in one."""

    @abstractmethod
    def logprobs(self, tokens: list[Span]) -> dict[str, Any]:
        """How likely tokens were."""

    def piece(self, piece: AnswerPiece) -> bytes:
        return self._chunk([self._choice(self.shown_piece(piece.text), piece, None)])

    def end(self, result: JobResult) -> bytes:
        """Why a text ended."""
        return self._chunk([self._choice(self.shown_end(), AnswerPiece(), finish_reason(result))])

    def close(self, results: Sequence[JobResult]) -> bytes:
        """What it cost."""
        cost = self._chunk([], usage=usage(results)) if self._tells_usage else b""
        return cost + DONE

    def choice(self, piece: AnswerPiece, result: JobResult) -> dict[str, Any]:
        return self._choice(self.shown_whole(piece.text), piece, finish_reason(result))

    def whole(
        self, choices: Sequence[dict[str, Any]], results: Sequence[JobResult]
    ) -> dict[str, Any]:
        named = {**self.head, "object": self.whole_object}
        return {**named, "choices": choices, "usage": usage(results)}

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return data({**self.head, "object": self.chunk_object, "choices": choices, **more})

    def _choice(
        self, shown: dict[str, Any], piece: AnswerPiece, reason: str | None
    ) -> dict[str, Any]:
        logprobs = self.logprobs(piece.tokens) if self._tells_logprobs else None
        return {"index": self.index, **shown, "logprobs": logprobs, "finish_reason": reason}


def openai_route(
    path: str,
    engine: EngineInterface,
    limits: RequestLimits,
    jobs_of: Callable[[Fields], list[GenerateJob]],
    events_of: type[OpenAiEvents],
) -> Route:
    """A route that answers in one, or streams."""

    async def generate(request: Request) -> ASGIApp:
        fields = Fields(await read_json(request, limits.body_bytes))
        jobs = [owned(job, request) for job in jobs_of(fields)]
        stream = fields.flag("stream")
        events = events_of(model_name(engine), jobs[0], stream and _include_usage(fields))
        refuse_the_rest(fields)
        return generation_response(engine, jobs, events, stream)

    return Route(path, generate, methods=["POST"])


def _include_usage(fields: Fields) -> bool:
    options = fields.take("stream_options", {})
    return isinstance(options, dict) and options.get("include_usage") is True
