"""What an editor's daemon asks or tells, as the engine takes it."""

from __future__ import annotations

from typing import Any

from lsp_server.engine.jobs import AcceptedText, CompletionJob, ContextSnippet, EditJob
from lsp_server.engine.scheduler import COMPLETION, EDIT, PREFETCH, PREFILL
from lsp_server.http_server.errors import RequestRefused, invalid
from lsp_server.http_server.fields import Fields

MOST_TOKENS = 1 << 16
MOST_SEED = (1 << 63) - 1
MOST_ACCEPTED_CHARACTERS = 1 << 16
"""Of a suggestion that was taken, and of what stood before it: it is encoded between forwards."""
URGENCIES = COMPLETION, EDIT, PREFETCH, PREFILL


def completion_job(fields: Fields) -> CompletionJob:
    """A completion. Raises RequestRefused."""
    job = CompletionJob(
        **_of_document(fields),
        **_writing(fields, max_tokens=64),
        prefix=fields.text("prefix"),
        suffix=fields.text("suffix"),
        language=fields.text("language", ""),
        repository=fields.text("repository", ""),
        snippets=[_snippet(one) for one in fields.objects("snippets")],
        context_tokens=fields.whole("context_tokens", 0, -1, MOST_TOKENS),
        prompt_seconds=fields.number("prompt_seconds", 0.0, 0.0, 60.0),
        opening=fields.flag("opening"),
        head=fields.text("head", ""),
        single_line=fields.flag("single_line"),
        gate=fields.number("gate", 0.0, 0.0, 1.0),
    )
    fields.end()
    return job


def edit_job(fields: Fields) -> EditJob:
    """An edit. Raises RequestRefused."""
    job = EditJob(
        **_of_document(fields),
        **_writing(fields, max_tokens=4096),
        instruction=fields.text("instruction"),
        selection=fields.text("selection"),
        before=fields.text("before", ""),
        after=fields.text("after", ""),
        language=fields.text("language", ""),
        entropy_top_k=fields.whole("entropy_top_k", 0, 0, 1000),
    )
    fields.end()
    return job


def accepted_text(fields: Fields) -> AcceptedText:
    """A suggestion that a user took. Raises RequestRefused."""
    before, text = fields.text("before"), fields.text("text")
    if len(before) + len(text) > MOST_ACCEPTED_CHARACTERS:
        raise invalid(f"before and text have at most {MOST_ACCEPTED_CHARACTERS} characters")
    taken = AcceptedText(**_of_document(fields), before=before, text=text)
    fields.end()
    return taken


def _of_document(fields: Fields) -> dict[str, Any]:
    if fields.flag("secret"):
        raise RequestRefused(400, "what may hold secrets is never sent", "secret")
    return {"workspace": fields.text("workspace", ""), "path": _path(fields)}


def _writing(fields: Fields, max_tokens: int) -> dict[str, Any]:
    """``max_tokens``: where the request names none."""
    return {
        "max_tokens": fields.whole("max_tokens", max_tokens, 1, MOST_TOKENS),
        "temperature": fields.number("temperature", 0.0, 0.0, 2.0),
        "top_p": fields.number("top_p", 1.0, 1e-6, 1.0),
        "seed": fields.whole("seed", 0, -MOST_SEED, MOST_SEED),
        "plain": fields.flag("plain"),
    }


def _snippet(fields: Fields) -> ContextSnippet:
    snippet = ContextSnippet(fields.text("path"), fields.text("text"))
    fields.end()
    return snippet


def _path(fields: Fields) -> str:
    path = fields.text("path")
    if path.startswith(("/", "\\")) or "\0" in path or len(path) > 4096:
        raise invalid("path is relative to the repository")
    return path
