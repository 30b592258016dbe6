"""Our own server, by our own protocol."""

from __future__ import annotations

import json
from typing import Any

from lsp_server.editor.remote.connection import ServerConnection
from lsp_server.shared.contract.calls import OnSpans
from lsp_server.shared.contract.codec import read, to_json
from lsp_server.shared.contract.jobs import (
    MOST_SIMILAR_BYTES,
    AcceptedText,
    CompletionJob,
    EditJob,
    JobResult,
    Span,
)
from lsp_server.shared.contract.status import EngineStatus
from lsp_server.shared.errors import EngineFailed, ServerUnavailable
from lsp_server.shared.version import PROTOCOL

NOT_TOLD = ("secret", "owner", "patience_s", "entropy_k")
"""No secret job comes so far, nor a lossy one. A server knows by the key whose job it is, and sets
the patience."""
ENGINE_LOST = ("unavailable", "server_error")
"""Kinds of errors that are the server's and not of one job."""


class RedraftServerModel:
    """The model of ``redraft serve-http``: it drafts, verifies and splices there."""

    drafts = True

    def __init__(self, connection: ServerConnection, description: dict[str, Any]) -> None:
        """``description``: what the server says of its model (``GET /redraft/v1/model``). Raises
        Unreadable."""
        self._connection = connection
        limit = description.get("similar_bytes", 0)
        self.similar_bytes = min(limit, MOST_SIMILAR_BYTES) if isinstance(limit, int) else 0
        """The most text that may go along with a request; earlier versions take none."""
        self.status = read(EngineStatus, description, unknown="ignored")

    async def ask(
        self,
        job: CompletionJob | EditJob,
        priority: int,
        on_spans: OnSpans,
        is_prefill: bool = False,
    ) -> JobResult | None:
        """Do a job there. Raises ServerUnavailable or EngineFailed."""
        body = {"protocol": PROTOCOL, "job": _sent(job), "urgency": priority}
        if is_prefill:
            body["operation"] = job.operation
            await self._connection.post("/redraft/v1/prefill", body)
            return None
        result: JobResult | None = None
        # Read to its end, so that the connection is kept for the next request.
        async with self._connection.events(f"/redraft/v1/{job.operation}", body) as events:
            async for event in events:
                data = _read(event.data)
                if event.event == "spans":
                    on_spans([read(Span, span, unknown="ignored") for span in data])
                elif event.event == "error":
                    raise self._error(data)
                elif event.event == "result":
                    result = read(JobResult, data, unknown="ignored")
        if result is not None:
            return result
        raise ServerUnavailable(
            f"the server {self._connection.address.url} ended an answer early", ""
        )

    async def accepted(self, accepted: AcceptedText) -> None:
        body = {"protocol": PROTOCOL, "taken": _sent(accepted)}
        await self._connection.post("/redraft/v1/accepted", body)

    def _error(self, data: dict[str, Any]) -> Exception:
        kind, message = str(data.get("kind", "")), str(data.get("message", ""))
        if kind in ENGINE_LOST:
            where = self._connection.address.url
            return ServerUnavailable(f"the server {where} has no model just now ({message})", "")
        return EngineFailed(message, kind)


def _sent(job: CompletionJob | EditJob | AcceptedText) -> dict[str, Any]:
    values: dict[str, Any] = to_json(job)
    unsaid = {*NOT_TOLD, *(() if values.get("similar") else ("similar",))}
    return {name: value for name, value in values.items() if name not in unsaid}


def _read(data: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise EngineFailed("the server sent an event that cannot be read") from None
