"""The table of LSP methods and their handlers, which call the packages that do the work."""

from __future__ import annotations

import time
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.editor import document_sync as sync
from lsp_server.editor.editing.code_actions import ActionContext, code_actions
from lsp_server.editor.execute_command import accepted, run_command, run_edit_request
from lsp_server.editor.notices.status import status_message
from lsp_server.editor.protocol import copilot
from lsp_server.editor.protocol.capabilities import server_capabilities
from lsp_server.editor.protocol.client_features import ClientFeatures
from lsp_server.editor.requests.completions import (
    cursor_at,
    inactive_reason,
    inline_items,
    menu_items,
)
from lsp_server.editor.requests.edits import (
    edit_request,
    refuse_nothing,
    statistics,
    workspace_edit,
)
from lsp_server.editor.requests.next_edits import copilot_inline_edit, inline_edit_shown, next_edit
from lsp_server.editor.screen import NEXT_EDIT_FIRST
from lsp_server.models.manifest import edits_of
from lsp_server.models.models_process import listed_models
from lsp_server.shared.errors import EditRefused, RedraftError
from lsp_server.shared.version import VERSION

if TYPE_CHECKING:
    from lsp_server.editor.completion.provider import Answer
    from lsp_server.editor.requests.completions import Cursor
    from lsp_server.editor.server import RedraftServer
    from lsp_server.text.documents.document import Document


def initialize(ls: RedraftServer, params: types.InitializeParams) -> types.InitializeResult:
    """Answered at once: no model is loaded and no folder read for it."""
    ls.features = ClientFeatures.of(params)
    ls.documents.encoding = ls.features.encoding
    ls.apply_settings(ls.features.options.get("settings"))
    if not ls.features.configuration:
        _tell_misplaced_settings(ls, {})
    folders = [folder.uri for folder in params.workspace_folders or []]
    for uri in folders or ([params.root_uri] if params.root_uri else []):
        ls.folders.add(uri)
    ls.protocol.initialized = True
    capabilities = server_capabilities(ls.features, ls.settings)
    return types.InitializeResult(capabilities, types.ServerInfo("redraft", VERSION))


async def initialized(ls: RedraftServer, _: types.InitializedParams) -> None:
    """Settings are asked for first, so that the model that is loaded is the one that is asked
    for."""
    answered = await sync.pull_settings(ls)
    if ls.features.configuration:
        _tell_misplaced_settings(ls, answered)
    ls.join()
    await sync.watch_ignore_files(ls)


def _tell_misplaced_settings(ls: RedraftServer, answered: dict[str, Any]) -> None:
    if misplaced := ls.features.misplaced_settings(answered):
        ls.show_warning(
            f"Redraft settings: {', '.join(misplaced)} in initializationOptions is not read there; "
            'put it into {"settings": {…}}'
        )


def shutdown(ls: RedraftServer, _: Any = None) -> None:
    """Stop this client's work; the daemon goes on for the others."""
    ls.protocol.shut_down = True
    ls.release()


def leave(ls: RedraftServer, _: Any = None) -> None:
    """``exit``: close the connection, never the process."""
    ls.ended = True
    if ls.protocol.writer is not None:
        ls.protocol.writer.close()


async def inline_completion(
    ls: RedraftServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList | None:
    """``textDocument/inlineCompletion``: null when superseded, no items when there is nothing."""
    document = ls.documents.get(params.text_document.uri)
    invoked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
    ls.screen.draws_suggestions |= not invoked
    selected = params.context.selected_completion_info
    cursor = cursor_at(ls, document, params.position, selected, invoked)
    with ls.screen.deciding(document.uri):
        answer = await _answer(ls, cursor, params.position)
    if answer is None:
        return None
    return inline_items(cursor, answer.texts, ls.offers.show(cursor.ask, answer.texts))


async def get_completions(ls: RedraftServer, params: Any) -> dict[str, Any]:
    """Answer ``getCompletions`` of Copilot's protocol."""
    ls.reasons.speak_copilot()
    try:
        requested = copilot.asked_place(params)
    except (KeyError, TypeError, ValueError):
        raise RedraftError("expected doc with uri and position") from None
    return copilot.completions(await inline_completion(ls, requested), requested.position)


def notify_accepted(ls: RedraftServer, params: Any) -> str:
    """Count what ``notifyAccepted`` of Copilot's protocol tells as taken."""
    try:
        accepted(ls, copilot.outcome(params))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RedraftError("expected the uuid of a completion") from None
    return "OK"


def _copilot_answer(answer: Any) -> Any:
    def handler(ls: RedraftServer, _params: Any) -> Any:
        ls.reasons.speak_copilot()
        return answer

    return handler


async def completion(
    ls: RedraftServer, params: types.CompletionParams
) -> types.CompletionList | None:
    """Answer ``textDocument/completion``; with no items where suggestions are ghost text."""
    document = ls.documents.get(params.text_document.uri)
    cursor = cursor_at(ls, document, params.position)
    is_second = ls.settings.completion.menu == "auto" and ls.screen.draws_suggestions
    answer = None if is_second else await _answer(ls, cursor)
    if answer is None:
        return types.CompletionList(is_incomplete=False, items=[]) if is_second else None
    offer = ls.offers.show(cursor.ask, answer.texts)
    return menu_items(cursor, answer.texts, ls.features, offer)


async def _answer(
    ls: RedraftServer, cursor: Cursor, cursor_position: types.Position | None = None
) -> Answer | None:
    """Return texts for a cursor; what it took and why there are none goes into the status.
    ``cursor_position``: where they are to be ghost text."""
    from lsp_server.editor.completion.provider import Answer

    started = time.monotonic()
    document = ls.documents.get(cursor.ask.document)
    reason = inactive_reason(ls, document)
    if not reason and cursor_position is not None and not cursor.ask.invoked:
        reason = ls.screen.held_back(document.uri)
    answer = Answer(reason=reason) if reason else await ls.completion.complete(cursor.ask)
    if answer is not None and answer.texts and cursor_position is not None:
        position = document.position(
            cursor_position.line, cursor_position.character, ls.features.encoding
        )
        if not await ls.screen.shows_suggestion(
            document, position, is_asked_for=cursor.ask.invoked
        ):
            answer = Answer(reason=NEXT_EDIT_FIRST)
    if answer is not None:
        ls.last_reason = answer.reason
        ls.performance.shown += bool(answer.texts)
        ls.performance.latency_ms = 1000 * (time.monotonic() - started)
        ls.status.changed()
        if answer.texts:
            ls.completion.shown(cursor.ask, answer.texts[0])
    return answer


async def explain(ls: RedraftServer, params: Any) -> dict[str, Any]:
    """``redraft/explain``: one completion without cache, and where its tokens came from."""
    document, position = _named_place(ls, params)
    if reason := ls.secrets.withheld_reason(document):
        raise RedraftError(f"the file is held back ({reason}) and is not read")
    cursor = cursor_at(ls, document, position)
    plain = params.get("plain") is True
    result = await ls.completion.explain(cursor.ask, plain)
    ls.engine().note_pace(result, plain)
    return {"text": result.text, **statistics(result)}


def _named_place(ls: RedraftServer, params: Any) -> tuple[Document, types.Position]:
    """``{textDocument, position}``. Raises RedraftError for anything else."""
    try:
        uri, units = str(params["textDocument"]["uri"]), params["position"]
        position = types.Position(int(units["line"]), int(units["character"]))
    except (KeyError, TypeError, ValueError):
        raise RedraftError("expected textDocument and position") from None
    return ls.documents.get(uri), position


def code_action(ls: RedraftServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    """``textDocument/codeAction``."""
    document = ls.documents.find(params.text_document.uri)
    if document is None or not ls.settings.enabled:
        return []
    _place(ls, document, params.range.end)
    only = [getattr(kind, "value", kind) for kind in params.context.only or []]
    is_unasked = params.context.trigger_kind == types.CodeActionTriggerKind.Automatic
    diagnostics = list(params.context.diagnostics)
    where = ActionContext(document, params.range, diagnostics, only, is_unasked)
    return code_actions(
        where,
        ls.features,
        ls.settings.edit,
        withheld=bool(ls.secrets.withheld_reason(document)),
        allowed=document.uri in ls.hub.allowed,
        done=edits_of(PurePath(ls.edit_engine().status.model).name),
    )


def cursor_shown(ls: RedraftServer, params: Any) -> None:
    """``redraft/cursor``: where the cursor is in a document that the user sees."""
    document, position = _named_place(ls, params)
    _place(ls, document, position)


def _place(ls: RedraftServer, document: Document, position: types.Position) -> None:
    """The prompt is computed where the cursor of an opened document is."""
    if not inactive_reason(ls, document):
        ls.completion.placed(document.uri, lambda: cursor_at(ls, document, position).ask)


async def resolve_action(ls: RedraftServer, action: types.CodeAction) -> types.CodeAction:
    """``codeAction/resolve``: the edit is made when an action was chosen."""
    data = action.data if isinstance(action.data, dict) else {}
    if "instruction" not in data:
        return action
    request = edit_request(ls, {**data, "takesOthers": True})
    edit = await ls.editing.edit(request)
    refuse_nothing(edit)
    if edit.warning:
        ls.show_warning(f"Redraft: {edit.warning}")
    as_json = workspace_edit(ls, request.document, edit)
    action.edit = ls.protocol._converter.structure(as_json, types.WorkspaceEdit)
    return action


async def edit(ls: RedraftServer, params: Any) -> dict[str, Any]:
    """``redraft/edit``."""
    if not ls.settings.enabled:
        raise EditRefused("switched off by the setting redraft.enabled")
    return await run_edit_request(ls, params)


def unsaved(ls: RedraftServer, params: Any) -> bool:
    """``redraft/unsaved``: whether another editor has a file open that reads otherwise than the
    ``text`` on the disk."""
    if not isinstance(params, dict) or not {"path", "text"} <= set(params):
        raise RedraftError("expected path and text")
    path, text = str(params["path"]), str(params["text"])
    others = (client for client in ls.hub.clients if client is not ls)
    return any(client.has_unsaved(path, text) for client in others)


def prepare_edit(ls: RedraftServer, params: Any) -> None:
    """``redraft/prepareEdit``: the user opened the box for the instruction."""
    ls.editing.prefill(edit_request(ls, {"instruction": "edit", **params}))


def status(ls: RedraftServer, params: Any) -> dict[str, Any]:
    """``redraft/status``, for one document when it is named."""
    inactive = uri = ""
    if isinstance(params, dict) and isinstance(params.get("textDocument"), dict):
        uri = str(params["textDocument"].get("uri"))
        document = ls.documents.find(uri)
        inactive = inactive_reason(ls, document) if document else "the document is not open"
    return status_message(ls.condition(inactive, uri))


async def models(_ls: RedraftServer, _params: Any) -> dict[str, Any]:
    """``redraft/models``: the models on this machine, as ``redraft models --json`` has them."""
    return await listed_models()


def cancel_progress(ls: RedraftServer, params: types.WorkDoneProgressCancelParams) -> None:
    """The user pressed cancel on a progress."""
    if (progress := ls.progresses.get(params.token)) is not None:
        progress.cancelled.set()


def register(ls: RedraftServer) -> None:
    """Give every method its handler."""
    ls.secrets.on_known = partial(sync.looked_at, ls)
    handlers: dict[str, Any] = {
        types.INITIALIZE: initialize,
        types.INITIALIZED: initialized,
        types.SHUTDOWN: shutdown,
        types.EXIT: leave,
        types.TEXT_DOCUMENT_INLINE_COMPLETION: inline_completion,
        types.TEXT_DOCUMENT_COMPLETION: completion,
        types.TEXT_DOCUMENT_CODE_ACTION: code_action,
        types.CODE_ACTION_RESOLVE: resolve_action,
        types.WORKSPACE_EXECUTE_COMMAND: run_command,
        types.WINDOW_WORK_DONE_PROGRESS_CANCEL: cancel_progress,
        "redraft/edit": edit,
        "redraft/prepareEdit": prepare_edit,
        "redraft/unsaved": unsaved,
        "redraft/cursor": cursor_shown,
        "redraft/nextEdit": next_edit,
        "textDocument/copilotInlineEdit": copilot_inline_edit,
        "textDocument/didShowInlineEdit": inline_edit_shown,
        "getCompletions": get_completions,
        "getCompletionsCycling": get_completions,
        "notifyAccepted": notify_accepted,
        **{method: _copilot_answer(answer) for method, answer in copilot.ANSWERS.items()},
        "redraft/status": status,
        "redraft/models": models,
        "redraft/explain": explain,
        **sync.HANDLERS,
    }
    for method, handler in handlers.items():
        ls.protocol.add_handler(method, handler)
