"""What an editor's daemon asks, as jobs of the engine."""

from __future__ import annotations

from lsp_server.engine.jobs import CompletionJob, ContextSnippet, EditJob
from lsp_server.engine.scheduler import COMPLETION, EDIT, PREFETCH, PREFILL
from lsp_server.http_server.errors import RequestRefused, invalid
from lsp_server.http_server.fields import Fields

MOST_TOKENS = 1 << 16
MOST_SEED = (1 << 63) - 1
URGENCIES = COMPLETION, EDIT, PREFETCH, PREFILL


def completion_job(fields: Fields) -> CompletionJob:
    """A completion. Raises RequestRefused."""
    _refuse_secret(fields)
    job = CompletionJob(
        workspace=fields.text("workspace", ""),
        path=_path(fields),
        prefix=fields.text("prefix"),
        suffix=fields.text("suffix"),
        language=fields.text("language", ""),
        repository=fields.text("repository", ""),
        snippets=[_snippet(one) for one in fields.objects("snippets")],
        context_tokens=fields.whole("context_tokens", 0, -1, MOST_TOKENS),
        prompt_seconds=fields.number("prompt_seconds", 0.0, 0.0, 60.0),
        opening=fields.flag("opening"),
        head=fields.text("head", ""),
        max_tokens=fields.whole("max_tokens", 64, 1, MOST_TOKENS),
        single_line=fields.flag("single_line"),
        temperature=fields.number("temperature", 0.0, 0.0, 2.0),
        top_p=fields.number("top_p", 1.0, 1e-6, 1.0),
        seed=fields.whole("seed", 0, -MOST_SEED, MOST_SEED),
        plain=fields.flag("plain"),
    )
    fields.end()
    return job


def edit_job(fields: Fields) -> EditJob:
    """An edit. Raises RequestRefused."""
    _refuse_secret(fields)
    job = EditJob(
        workspace=fields.text("workspace", ""),
        path=_path(fields),
        instruction=fields.text("instruction"),
        selection=fields.text("selection"),
        before=fields.text("before", ""),
        after=fields.text("after", ""),
        language=fields.text("language", ""),
        max_tokens=fields.whole("max_tokens", 4096, 1, MOST_TOKENS),
        temperature=fields.number("temperature", 0.0, 0.0, 2.0),
        top_p=fields.number("top_p", 1.0, 1e-6, 1.0),
        seed=fields.whole("seed", 0, -MOST_SEED, MOST_SEED),
        plain=fields.flag("plain"),
        entropy_top_k=fields.whole("entropy_top_k", 0, 0, 1000),
    )
    fields.end()
    return job


def _refuse_secret(fields: Fields) -> None:
    if fields.flag("secret"):
        raise RequestRefused(400, "what may hold secrets is never sent", "secret")


def _snippet(fields: Fields) -> ContextSnippet:
    snippet = ContextSnippet(fields.text("path"), fields.text("text"))
    fields.end()
    return snippet


def _path(fields: Fields) -> str:
    path = fields.text("path")
    if path.startswith(("/", "\\")) or "\0" in path or len(path) > 4096:
        raise invalid("job.path is relative to the repository")
    return path
