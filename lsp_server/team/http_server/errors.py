"""Errors of requests in OpenAI's shape, without internals."""

from __future__ import annotations

import logging

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from lsp_server.shared.errors import EngineBusy, EngineFailed, EngineUnavailable

logger = logging.getLogger(__name__)

OF_THE_REQUEST = (
    *("InvalidRequest", "PromptTooLong", "UnsupportedPrompt", "NothingToContinue"),
    *("EditRefused", "StaleDocument"),
)
"""Errors of the engine process that are about what was asked; their messages are for the client."""

_OPENAI_CODES = {"PromptTooLong": "context_length_exceeded"}
"""What OpenAI calls errors of the engine, where clients know them by that."""


class ClientLeft(Exception):
    """The client left before its answer."""


class NoAnswer(Response):
    """The answer to a client that has left. Nothing is sent, so it counts as 499."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note it."""
        logger.info("%s: the client left before its answer", scope["path"])


class RequestRefused(Exception):
    """A request that is answered with an error. The message is for the client."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str,
        kind: str = "invalid_request_error",
        retry_after_s: int | None = None,
    ) -> None:
        """``kind``: OpenAI's ``type``; ``retry_after_s``: when to try again."""
        super().__init__(message)
        self.status = status
        # It may name what the client sent, lone surrogates among it, which no answer can hold.
        self.message = message.encode("utf-8", "replace").decode()
        self.code = code
        self.kind = kind
        self.retry_after_s = retry_after_s

    @property
    def body(self) -> dict[str, dict[str, str | None]]:
        """The error in OpenAI's shape."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": None,
                "code": _OPENAI_CODES.get(self.code, self.code),
            }
        }

    def response_at(self, path: str) -> Response:
        """Return the answer; Ollama's routes have errors as texts."""
        headers = {"cache-control": "no-store"}
        if self.retry_after_s is not None:
            headers["retry-after"] = str(self.retry_after_s)
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        body = {"error": self.message} if path.startswith("/api/") else self.body
        return JSONResponse(body, self.status, headers)


def invalid(message: str) -> RequestRefused:
    """The request cannot be understood."""
    return RequestRefused(400, message, "invalid_request")


def not_found(message: str) -> RequestRefused:
    """There is no such thing, or not for this key."""
    return RequestRefused(404, message, "not_found")


def too_many(message: str, retry_after_s: int) -> RequestRefused:
    """There are more requests than are answered now."""
    return RequestRefused(429, message, "rate_limit_exceeded", "rate_limit_error", retry_after_s)


def refusal_of(error: BaseException) -> RequestRefused:
    """Return the refusal that tells the client of an error; the rest is logged."""
    if isinstance(error, RequestRefused):
        return error
    if isinstance(error, EngineFailed) and error.kind in OF_THE_REQUEST:
        return RequestRefused(400, str(error), error.kind)
    if isinstance(error, EngineFailed) and error.kind == EngineBusy.__name__:
        return too_many(str(error), 1)
    if isinstance(error, EngineUnavailable):
        logger.warning("no engine: %s", error)
        message = "the model is not there just now; try again"
        return RequestRefused(503, message, "unavailable", "server_error", retry_after_s=1)
    logger.error("a request failed", exc_info=error)
    message = "the server failed; its log says why"
    return RequestRefused(500, message, "server_error", "server_error")
