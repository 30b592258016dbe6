"""Redraft's own routes, for the daemon of an editor. Protocol version 1."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    MOST_SIMILAR_BYTES,
    PREFILL,
    AcceptedText,
    CompletionJob,
    EditJob,
)
from lsp_server.shared.contract.server_routes import PROTOCOL, REPOSITORIES
from lsp_server.team.http_server.bodies import read_json
from lsp_server.team.http_server.editor_jobs import EditorFields, accepted_text, editor_job
from lsp_server.team.http_server.errors import RequestRefused, invalid, not_found
from lsp_server.team.http_server.fields import read_fields
from lsp_server.team.http_server.generation_fields import fair_priority
from lsp_server.team.http_server.limits import PATIENCE_S, RequestLimits
from lsp_server.team.http_server.model_names import model_name
from lsp_server.team.http_server.streaming import Events, StreamedCalls, answered

NO_REPOSITORIES = (
    "this server keeps no copies of workspaces; a newer Redraft sends similar text along: install "
    "the same version here and there"
)
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
Owned = TypeVar("Owned", CompletionJob, EditJob, CompletionJob | EditJob, AcceptedText)


class EditorRoutes:
    """The routes of one engine."""

    def __init__(self, engine: EngineInterface, limits: RequestLimits) -> None:
        self._engine = engine
        self._limits = limits

    @property
    def routes(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/redraft/v1/model", self.model, methods=["GET"]),
            Route("/redraft/v1/complete", self.complete, methods=["POST"]),
            Route("/redraft/v1/edit", self.edit, methods=["POST"]),
            Route("/redraft/v1/prefill", self.prefill, methods=["POST"]),
            Route("/redraft/v1/accepted", self.accepted, methods=["POST"]),
            Route(f"{REPOSITORIES}{{path:path}}", self.repositories, methods=METHODS),
        ]

    async def model(self, _request: Request) -> Response:
        """Answer with the facts by which the daemon makes prompts."""
        described = {**self._engine.status.of_model, "model": model_name(self._engine)}
        return JSONResponse(
            {"protocol": PROTOCOL, "similar_bytes": MOST_SIMILAR_BYTES, **described}
        )

    async def repositories(self, _request: Request) -> Response:
        """Refuse the copies of workspaces that editors of earlier versions send."""
        raise RequestRefused(410, NO_REPOSITORIES, "gone")

    async def complete(self, request: Request) -> ASGIApp:
        """Complete; the answer streams."""
        return await self._streamed(request, CompletionJob)

    async def edit(self, request: Request) -> ASGIApp:
        """Edit; the answer streams."""
        return await self._streamed(request, EditJob)

    async def prefill(self, request: Request) -> Response:
        """Compute the prompt of what may be asked next."""
        fields = await self._body(request)
        operation, priority = fields.operation, _priority(fields, PREFILL)
        if operation is None:
            raise invalid("operation must be complete or edit")
        kind = CompletionJob if operation == "complete" else EditJob
        job = self._owned(editor_job(kind, fields), request)
        job = replace(job, connection=request.scope["connection"])
        await answered([self._engine.prefill(job, job.owner, priority)], request.receive)
        return JSONResponse({})

    async def accepted(self, request: Request) -> Response:
        """Return a user took a suggestion: later drafts of the same key may come from it."""
        fields = await self._body(request)
        text = self._owned(accepted_text(fields), request)
        self._engine.tell(text)
        return JSONResponse({})

    async def _streamed(self, request: Request, kind: type[CompletionJob | EditJob]) -> ASGIApp:
        fields = await self._body(request)
        wanted_priority = _priority(fields, COMPLETION)
        job = self._owned(editor_job(kind, fields), request)
        priority = fair_priority(wanted_priority, job.max_tokens)
        job = replace(job, patience_s=PATIENCE_S, connection=request.scope["connection"])
        begin = partial(self._engine.ask, job, job.owner, priority=priority)
        return StreamedCalls([begin], Events())

    async def _body(self, request: Request) -> EditorFields:
        fields = read_fields(EditorFields, await read_json(request, self._limits.body_bytes))
        if fields.protocol != PROTOCOL:
            raise invalid(f"this server speaks protocol {PROTOCOL}")
        return fields

    def _owned(self, job: Owned, request: Request) -> Owned:
        """Return ``job`` with its owner. One that names a repository, as editors of earlier
        versions do, is refused with 404, and they ask again without."""
        if job.workspace:
            raise not_found(NO_REPOSITORIES)
        return replace(job, owner=str(request.scope["holder"]))


def _priority(fields: EditorFields, usual: int) -> int:
    return usual if fields.urgency is None else fields.urgency
