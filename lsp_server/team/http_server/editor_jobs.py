"""Reads the jobs that an editor's daemon sends."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from lsp_server.shared.contract.codec import Unreadable, read
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
from lsp_server.team.http_server.errors import RequestRefused, invalid

MOST_ACCEPTED_CHARACTERS = 1 << 16
"""Of a suggestion that was taken, and of what came before it: it is encoded between forwards."""
PRIORITIES = COMPLETION, EDIT, PREFETCH, PREFILL
Job = TypeVar("Job", CompletionJob, EditJob, CompletionJob | EditJob, AcceptedText)


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
