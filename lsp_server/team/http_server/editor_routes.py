"""Redraft's own routes, for the daemon of an editor. Protocol version 1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lsp_server.shared.contract.codec import Unreadable, read
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    EDIT,
    MOST_SIMILAR_BYTES,
    PREFETCH,
    PREFILL,
    AcceptedText,
    CompletionJob,
    EditJob,
)
from lsp_server.shared.version import PROTOCOL
from lsp_server.team.http_server.errors import RequestRefused, invalid, not_found
from lsp_server.team.http_server.fields import read_fields, read_json
from lsp_server.team.http_server.generation_fields import fair_priority
from lsp_server.team.http_server.model_names import model_name
from lsp_server.team.http_server.rate_limits import PATIENCE_S, RequestLimits
from lsp_server.team.http_server.streaming import Events, StreamedCalls, answered

NO_WORKSPACES = "this server has no copies of workspaces: leave out the job's workspace"
Owned = TypeVar("Owned", CompletionJob | EditJob, AcceptedText)

MOST_ACCEPTED_CHARACTERS = 1 << 16
"""Of a suggestion that was taken, and of what came before it: it is encoded between forwards."""
PRIORITIES = COMPLETION, EDIT, PREFETCH, PREFILL
Job = TypeVar("Job", CompletionJob, EditJob, CompletionJob | EditJob, AcceptedText)


def editor_routes(engine: EngineInterface, limits: RequestLimits) -> list[BaseRoute]:
    """Return the routes of one engine."""

    async def fields_of(request: Request) -> EditorFields:
        fields = read_fields(EditorFields, await read_json(request, limits.body_bytes))
        if fields.protocol != PROTOCOL:
            raise invalid(f"this server speaks protocol {PROTOCOL}")
        return fields

    def streaming(kind: type[CompletionJob | EditJob]) -> Callable[[Request], Awaitable[ASGIApp]]:
        async def respond(request: Request) -> ASGIApp:
            fields = await fields_of(request)
            job = _owned(editor_job(kind, fields), request)
            priority = fair_priority(_priority(fields, COMPLETION), job.max_tokens)
            job = replace(job, patience_s=PATIENCE_S, connection=request.scope["connection"])
            begin = partial(engine.ask, job, job.owner, priority=priority)
            return StreamedCalls([begin], Events())

        return respond

    async def model(_request: Request) -> Response:
        """Answer with the facts by which the daemon makes prompts."""
        described = {**engine.status.of_model, "model": model_name(engine)}
        facts = {"protocol": PROTOCOL, "similar_bytes": MOST_SIMILAR_BYTES, **described}
        return JSONResponse(facts)

    async def prefill(request: Request) -> Response:
        """Compute the prompt of what may be asked next."""
        fields = await fields_of(request)
        if fields.operation is None:
            raise invalid("operation must be complete or edit")
        kind = CompletionJob if fields.operation == "complete" else EditJob
        job = _owned(editor_job(kind, fields), request)
        job = replace(job, connection=request.scope["connection"])
        computed = engine.prefill(job, job.owner, _priority(fields, PREFILL))
        await answered([computed], request.receive)
        return JSONResponse({})

    async def accepted(request: Request) -> Response:
        """A user took a suggestion: later drafts of the same key may come from it."""
        engine.tell(_owned(accepted_text(await fields_of(request)), request))
        return JSONResponse({})

    return [
        Route("/redraft/v1/model", model, methods=["GET"]),
        Route("/redraft/v1/complete", streaming(CompletionJob), methods=["POST"]),
        Route("/redraft/v1/edit", streaming(EditJob), methods=["POST"]),
        Route("/redraft/v1/prefill", prefill, methods=["POST"]),
        Route("/redraft/v1/accepted", accepted, methods=["POST"]),
    ]


def _owned(job: Owned, request: Request) -> Owned:
    """Return ``job`` with its owner. Raises RequestRefused for one of a workspace."""
    if job.workspace:
        raise not_found(NO_WORKSPACES)
    return replace(job, owner=str(request.scope["holder"]))


def _priority(fields: EditorFields, usual: int) -> int:
    return usual if fields.urgency is None else fields.urgency


class EditorFields(msgspec.Struct, forbid_unknown_fields=True):
    """Of all routes. Jobs are read by the codec that wrote them."""

    protocol: int = 0
    job: Any = None
    taken: Any = None
    operation: Literal["complete", "edit"] | None = None
    urgency: Annotated[int, Meta(ge=PRIORITIES[0], le=PRIORITIES[-1])] | None = None


def editor_job(
    kind: type[CompletionJob | EditJob], fields: EditorFields
) -> CompletionJob | EditJob:
    """Return the job in ``fields``. Raises RequestRefused."""
    job = _read(kind, fields.job, "job")
    if sum(len(snippet.text) for snippet in job.similar) > MOST_SIMILAR_BYTES:
        raise invalid(f"job.similar may have at most {MOST_SIMILAR_BYTES} characters")
    return job


def accepted_text(fields: EditorFields) -> AcceptedText:
    """Return a suggestion that a user took. Raises RequestRefused."""
    accepted = _read(AcceptedText, fields.taken, "taken")
    if len(accepted.before) + len(accepted.text) > MOST_ACCEPTED_CHARACTERS:
        raise invalid(f"before and text may have at most {MOST_ACCEPTED_CHARACTERS} characters")
    return accepted


def _read(kind: type[Job], values: Any, name: str) -> Job:
    if isinstance(values, dict):
        if "owner" in values:
            raise invalid(f"{name}.owner: the key says whose it is")
        if values.get("entropy_k"):
            raise invalid(f"{name}.entropy_k: a server verifies exactly; leave it out")
        values = {"workspace": "", **values}
    try:
        job = read(kind, values, name)
    except Unreadable as error:
        raise invalid(str(error)) from None
    if job.secret:
        raise RequestRefused(400, "what may hold secrets must not be sent", "secret")
    path = job.path
    if path.startswith(("/", "\\")) or "\0" in path or len(path) > 4096:
        raise invalid("path must be relative to the repository")
    return job
