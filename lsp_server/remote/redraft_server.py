"""Our own server, asked by our own protocol."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from lsp_server.contract.codec import read
from lsp_server.contract.status import EngineStatus
from lsp_server.engine.call import OnSpans
from lsp_server.engine.jobs import (
    AcceptedText,
    CompletionJob,
    EditJob,
    JobResult,
    LikelySpan,
    Span,
)
from lsp_server.errors import EngineFailed, ServerUnavailable
from lsp_server.protocol.server_routes import PROTOCOL
from lsp_server.remote.connection import ServerConnection
from lsp_server.remote.served_model import Operation

NOT_TOLD = ("secret", "owner")
"""No secret job comes so far, and the server knows by the key whose job it is."""
ENGINE_LOST = ("unavailable", "server_error")
"""Kinds of errors that are the server's and not of one job."""


class RedraftServerModel:
    """The model of ``redraft serve-http``: it drafts, verifies and splices there."""

    drafts = True

    def __init__(self, connection: ServerConnection, told: dict[str, Any]) -> None:
        """``told``: what the server says of its model (``GET /redraft/v1/model``).

        Raises Unreadable.
        """
        self._connection = connection
        self.status = read(EngineStatus, told, unknown="ignored")
        self._gates = told.get("gates") is True
        """Whether it tells how sure the model is of what it writes."""

    async def run(
        self,
        operation: Operation,
        job: CompletionJob | EditJob,
        urgency: int,
        document: str,
        on_spans: OnSpans,
    ) -> JobResult | None:
        """Do a job there. Raises ServerUnavailable or EngineFailed."""
        body = {
            "protocol": PROTOCOL,
            "job": self._asked(job),
            "urgency": urgency,
            "document": document,
        }
        if operation == "prefill":
            body["operation"] = "edit" if isinstance(job, EditJob) else "complete"
            await self._connection.post("/redraft/v1/prefill", body)
            return None
        result: JobResult | None = None
        # Read to its end, so that the connection is kept for the next request.
        async with self._connection.events(f"/redraft/v1/{operation}", body) as events:
            async for event in events:
                data = _read(event.data)
                if event.event == "spans":
                    on_spans([_span(one) for one in data])
                elif event.event == "error":
                    raise self._error(data)
                elif event.event == "result":
                    spans = [Span(**one) for one in data["spans"]]
                    result = JobResult(**{**data, "spans": spans})
        if result is not None:
            return result
        raise ServerUnavailable(
            f"the server {self._connection.address.url} ended an answer early", ""
        )

    async def accepted(self, taken: AcceptedText) -> None:
        """Tell of a suggestion that a user took. Raises ServerUnavailable or EngineFailed."""
        body = {"protocol": PROTOCOL, "taken": _told(taken)}
        await self._connection.post("/redraft/v1/accepted", body)

    def _asked(self, job: CompletionJob | EditJob) -> dict[str, Any]:
        told = _told(job)
        if not self._gates:
            told.pop("gate", None)
        return told

    def _error(self, data: dict[str, Any]) -> Exception:
        kind, message = str(data.get("kind", "")), str(data.get("message", ""))
        if kind in ENGINE_LOST:
            where = self._connection.address.url
            return ServerUnavailable(f"the server {where} has no model just now ({message})", "")
        return EngineFailed(message, kind)


def _told(job: CompletionJob | EditJob | AcceptedText) -> dict[str, Any]:
    return {name: value for name, value in asdict(job).items() if name not in NOT_TOLD}


def _span(told: dict[str, Any]) -> Span:
    text, source = told["text"], told["source"]
    if "logprob" not in told:
        return Span(text, source)
    return LikelySpan(text, source, float(told["logprob"]))


def _read(data: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise EngineFailed("the server sent an event that cannot be read") from None
