"""The server's commands, and edits with progress, streaming and cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.editor.editing.provider import EditRequest, EditResult, OnText
from lsp_server.editor.notices.status import status_message
from lsp_server.editor.protocol.capabilities import (
    ALLOW_FILE,
    HOLD_BACK_FILE,
    NEXT_EDIT_ACCEPTED,
    NEXT_EDIT_REJECTED,
    SNOOZE,
    USE_MODEL,
)
from lsp_server.editor.protocol.progress import Progress
from lsp_server.editor.requests.edits import (
    LABEL,
    edit_answer,
    edit_request,
    refuse_nothing,
    workspace_edit,
)
from lsp_server.editor.requests.next_edits import run_next_edit_command
from lsp_server.engine.model_paths import check_model
from lsp_server.models.choices import PURPOSES, field_of, write_choice
from lsp_server.shared.errors import EditRefused, RedraftError

if TYPE_CHECKING:
    from lsp_server.editor.server import RedraftServer

STREAM_EVERY_S = 0.05
LONGEST_SNOOZE_MINUTES = 24 * 60


async def run_command(ls: RedraftServer, params: types.ExecuteCommandParams) -> Any:
    """Carry out a command by name. Raises RedraftError for unknown ones."""
    arguments = list(params.arguments or [])
    first = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
    if params.command == "redraft.status":
        return status_message(ls.condition())
    if params.command == "redraft.reindex":
        for folder in ls.folders.paths:
            ls.hub.indexer.reindex(folder)
        return None
    if params.command in ("redraft.pause", "redraft.resume"):
        return pause(ls, "by command" if params.command == "redraft.pause" else "")
    if params.command == SNOOZE:
        return snooze(ls, first)
    if params.command == "redraft.runEdit":
        return await _run_edit(ls, first, params.work_done_token)
    if params.command == "redraft.accepted":
        return accepted(ls, first)
    if params.command in (NEXT_EDIT_ACCEPTED, NEXT_EDIT_REJECTED):
        return run_next_edit_command(ls, params.command, first)
    if params.command in (ALLOW_FILE, HOLD_BACK_FILE):
        return _allow(ls, first, params.command == ALLOW_FILE)
    if params.command == USE_MODEL:
        return _use_model(ls, first)
    raise RedraftError(f"unknown command {params.command}")


def _use_model(ls: RedraftServer, chosen: dict[str, Any]) -> dict[str, Any]:
    """``redraft.useModel``: the model for all editors that name none; ``path`` is empty for
    none, ``for`` may be ``edits``, ``next-edits`` or ``drafts``. Tells which one this
    editor uses now."""
    path = chosen.get("path")
    if not isinstance(path, str):
        raise RedraftError("redraft.useModel needs the path of a model, empty for none")
    purpose = chosen.get("for", PURPOSES[0])
    if purpose not in PURPOSES:
        raise RedraftError(f"redraft.useModel chooses for one of {', '.join(PURPOSES)}")
    if path:
        check_model(path)
    write_choice(purpose, path)
    ls.hub.choices_changed()
    return {"path": getattr(ls.used, field_of(purpose)).path}


def accepted(ls: RedraftServer, argument: dict[str, Any]) -> None:
    """Carry out ``redraft.accepted``: it is counted here alone. The text is told to the engine,
    which drafts from it."""
    accepted_ask = ls.offers.accepted(argument)
    if accepted_ask is not None:
        ask, text = accepted_ask
        ls.performance.accepted += 1
        document = ls.documents.find(ask.document)
        if document is not None and not ls.secrets.withheld_reason(document):
            ls.next_edits.history.suggested(document)
            # Nothing else is written from a text that counts for itself alone.
            noted = ask if ls.counts_elsewhere(document) else replace(ask, workspace="")
            ls.completion.accepted(noted, text)
    ls.status.changed()


def _allow(ls: RedraftServer, argument: dict[str, Any], allowed: bool) -> dict[str, Any]:
    """``redraft.allowFile`` and ``redraft.holdBackFile``: ``{uri}``. Raises RedraftError."""
    uri = argument.get("uri")
    if not isinstance(uri, str) or not uri:
        raise RedraftError("which file? give {uri}")
    ls.hub.allow(uri, allowed)
    document = ls.documents.find(uri)
    return {"reason": ls.secrets.withheld_reason(document) if document is not None else ""}


async def _run_edit(ls: RedraftServer, params: dict[str, Any], token: Any) -> dict[str, Any]:
    """``redraft.runEdit``: the server itself has the edit applied."""
    request = edit_request(ls, {**params, "takesOthers": True})
    if not ls.features.apply_edit:
        raise EditRefused("the editor does not apply edits; use the request redraft/edit")
    edit = await _with_progress(ls, request, token, None)
    refuse_nothing(edit)
    if edit.warning:
        ls.show_warning(f"Redraft: {edit.warning}")
    answer = await ls.protocol.ask(
        types.WORKSPACE_APPLY_EDIT,
        {"label": LABEL, "edit": workspace_edit(ls, request.document, edit)},
    )
    if not (isinstance(answer, dict) and answer.get("applied")):
        reason = answer.get("failureReason") if isinstance(answer, dict) else ""
        raise EditRefused(f"the editor did not apply the edit: {reason or 'no reason given'}")
    return {"applied": True, "diff": edit.diff}


async def run_edit_request(ls: RedraftServer, params: Any) -> dict[str, Any]:
    """``redraft/edit``: the editor previews and applies it."""
    request = edit_request(ls, params)
    edit = await _with_progress(ls, request, params.get("workDoneToken"), params.get("streamToken"))
    return edit_answer(ls, request.document, edit)


async def _with_progress(
    ls: RedraftServer, request: EditRequest, token: Any, stream: Any
) -> EditResult:
    """Make an edit, show how far it is, stop when its progress is cancelled."""
    progress = Progress(ls.protocol, token, ls.features.work_done_progress)
    with ls.editing.begin(request) as pending:
        ls.progresses[progress.token] = progress
        try:
            title = request.instruction[:80]
            await progress.begin("Redraft: editing", cancellable=True, message=title)
            on_text = _streamed(ls, progress, len(pending.selection), stream)
            return await _unless_cancelled(ls.editing.finish(pending, on_text), progress)
        finally:
            progress.end()
            ls.progresses.pop(progress.token, None)


def _streamed(ls: RedraftServer, progress: Progress, expected: int, stream: Any) -> OnText:
    """Reports the text so far, at most every :data:`STREAM_EVERY_S`."""
    last = 0.0

    def on_text(text: str, tokens: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < STREAM_EVERY_S:
            return
        last = now
        progress.report(f"{len(text)} characters", min(99, 100 * len(text) // max(1, expected)))
        if stream is not None:
            params = {"token": stream, "text": text, "tokens": tokens}
            ls.protocol.tell("redraft/editProgress", params)

    return on_text


async def _unless_cancelled(work: Any, progress: Progress) -> EditResult:
    editing = asyncio.ensure_future(work)
    cancelled = asyncio.ensure_future(progress.cancelled.wait())
    try:
        await asyncio.wait({editing, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        if editing.done():
            result: EditResult = editing.result()
            return result
        raise EditRefused("the edit was cancelled")
    finally:
        cancelled.cancel()
        if not editing.done():
            editing.cancel()
            with contextlib.suppress(asyncio.CancelledError, RedraftError):
                await editing


def pause(ls: RedraftServer, paused: str) -> None:
    """Pause suggestions, and say ``paused`` in the status; resume them where it is empty."""
    if ls.snooze is not None:
        ls.snooze.cancel()
    ls.paused = paused
    if paused:
        ls.completion.close_all()
    ls.status.changed()


def snooze(ls: RedraftServer, argument: dict[str, Any]) -> None:
    """Run ``redraft.snooze`` with ``{minutes}``: no suggestion until they are over."""
    minutes = argument.get("minutes")
    if not isinstance(minutes, int | float) or not 0 < minutes <= LONGEST_SNOOZE_MINUTES:
        raise RedraftError(f"{SNOOZE} needs the minutes, at most {LONGEST_SNOOZE_MINUTES:,}")
    end = datetime.now() + timedelta(minutes=minutes)
    pause(ls, f"until {end:%H:%M}")
    ls.snooze = asyncio.get_running_loop().call_later(minutes * 60, pause, ls, "")
