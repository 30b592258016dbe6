"""Handlers for documents, settings, folders and files that the client reports."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.uris import to_fs_path

from lsp_server.editor.execute_command import accepted
from lsp_server.editor.requests.completions import ask_after, cursor_at, inactive_reason
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.settings import merged
from lsp_server.text.documents.document import Notebook, Position
from lsp_server.text.text_edit import TextEdit
from repo_index.source_tree import IGNORE_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lsp_server.editor.server import RedraftServer
    from lsp_server.text.documents.document import Document

logger = logging.getLogger(__name__)


def did_open(ls: RedraftServer, params: types.DidOpenTextDocumentParams) -> None:
    """A document was opened."""
    _open(ls, params.text_document)


def _open(ls: RedraftServer, item: types.TextDocumentItem) -> None:
    document = ls.documents.open(item.uri, str(item.language_id), item.version, item.text)
    if ls.secrets.is_known(document):
        looked_at(ls, document)


def looked_at(ls: RedraftServer, document: Document) -> None:
    """It is known whether there are secrets in a document that was opened."""
    ls.next_edits.opened(document)
    ls.feed_buffer(document.uri, opened=True)
    ls.forget_if_withheld(document)
    if not inactive_reason(ls, document):
        start = types.Position(0, 0)
        ls.completion.opened(document.uri, lambda: cursor_at(ls, document, start).ask)


def did_change(ls: RedraftServer, params: types.DidChangeTextDocumentParams) -> None:
    """A document was changed; a change of an unknown document is told to the log alone."""
    document = ls.documents.get(params.text_document.uri)
    edits: list[TextEdit[Position]] = []
    for change in params.content_changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = change.range.start, change.range.end
            edit = document.change(
                (start.line, start.character),
                (end.line, end.character),
                change.text,
                ls.features.encoding,
            )
        else:
            edit = document.replace_all(change.text)
        ls.secrets.changed(document, edit)
        ls.editing.follow(document.uri, edit)
        edits.append(edit)
    document.version = params.text_document.version
    _count_inserted(ls, document, edits)
    ls.screen.changed(document.uri)
    if ls.settings.next_edits.enabled:
        ls.next_edits.changed(document, edits)
    ls.feed_buffer(document.uri)
    if ls.secrets.withheld_reason(document):
        # What was to be computed would be of the text as it is now.
        ls.completion.close(document.uri)
        ls.forget_if_withheld(document)
    elif edits and not inactive_reason(ls, document):
        ls.completion.rest(document.uri, lambda: ask_after(ls, document, edits[-1]))


def _count_inserted(ls: RedraftServer, document: Document, edits: list[TextEdit[Position]]) -> None:
    """Count a suggestion as accepted that a change has put in whole. JetBrains runs no command of
    an item, nor do some menus."""
    if edits and len(edits[-1].text) > 1:
        outcome = ls.offers.put_in(document.uri, ask_after(ls, document, edits[-1]).prefix)
        if outcome is not None:
            accepted(ls, outcome)


def did_close(ls: RedraftServer, params: types.DidCloseTextDocumentParams) -> None:
    """A document was closed."""
    _close(ls, params.text_document.uri)


def _close(ls: RedraftServer, uri: str) -> None:
    ls.completion.close(uri)
    ls.offers.close(uri)
    ls.next_edits.closed(uri)
    ls.screen.changed(uri)
    ls.drop_buffer(uri)
    ls.secrets.closed(uri)
    ls.documents.close(uri)


def did_save(ls: RedraftServer, params: types.DidSaveTextDocumentParams) -> None:
    """A document was saved: its file is indexed anew."""
    _refresh(ls, [params.text_document.uri])


def notebook_did_open(ls: RedraftServer, params: types.DidOpenNotebookDocumentParams) -> None:
    """A notebook and its cells were opened."""
    notebook = params.notebook_document
    cells = [cell.document for cell in notebook.cells]
    ls.documents.notebooks[notebook.uri] = Notebook(notebook.uri, notebook.version, cells)
    for item in params.cell_text_documents:
        _open(ls, item)


def notebook_did_change(ls: RedraftServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Cells came, went, moved or changed."""
    notebook = ls.documents.notebooks.get(params.notebook_document.uri)
    if notebook is None or params.change.cells is None:
        return
    notebook.version = params.notebook_document.version
    cells = params.change.cells
    if cells.structure is not None:
        array = cells.structure.array
        notebook.cells[array.start : array.start + array.delete_count] = [
            cell.document for cell in array.cells or []
        ]
        for closed in cells.structure.did_close or []:
            _close(ls, closed.uri)
        for item in cells.structure.did_open or []:
            _open(ls, item)
    for content in cells.text_content or []:
        did_change(ls, types.DidChangeTextDocumentParams(content.document, content.changes))


def notebook_did_close(ls: RedraftServer, params: types.DidCloseNotebookDocumentParams) -> None:
    """A notebook was closed."""
    ls.documents.notebooks.pop(params.notebook_document.uri, None)
    for cell in params.cell_text_documents:
        _close(ls, cell.uri)


async def did_change_configuration(
    ls: RedraftServer, params: types.DidChangeConfigurationParams
) -> None:
    """Settings changed: sent along by some clients, asked for with the others."""
    sent = params.settings
    if isinstance(sent, dict) and isinstance(sent.get("redraft"), dict):
        ls.apply_settings(merged(ls.features.options.get("settings"), sent["redraft"]))
    else:
        await pull_settings(ls)


async def pull_settings(ls: RedraftServer) -> dict[str, Any]:
    """Ask the client for the section ``redraft``; what it does not have stays as it was. Returns
    what the client answered, empty where it has no such section."""
    if not ls.features.configuration:
        return {}
    try:
        answer = await ls.protocol.ask(
            types.WORKSPACE_CONFIGURATION, {"items": [{"section": "redraft"}]}
        )
    except RedraftError as error:
        logger.info("settings: %s", error)
        return {}
    if not (isinstance(answer, list) and answer and isinstance(answer[0], dict)):
        return {}
    answered: dict[str, Any] = answer[0]
    ls.apply_settings(merged(ls.features.options.get("settings"), answered))
    return answered


async def watch_ignore_files(ls: RedraftServer) -> None:
    """Have the client report ignore files that change outside of the editor. The indexer watches
    all others itself."""
    if not ls.features.watches_files:
        return
    pattern = f"**/{{{','.join(sorted(IGNORE_FILES))}}}"
    registration = {
        "id": "redraft-ignore-files",
        "method": types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
        "registerOptions": {"watchers": [{"globPattern": pattern}]},
    }
    try:
        await ls.protocol.ask(types.CLIENT_REGISTER_CAPABILITY, {"registrations": [registration]})
    except RedraftError as error:
        logger.info("watching: %s", error)


def did_change_watched_files(ls: RedraftServer, params: types.DidChangeWatchedFilesParams) -> None:
    """The client saw ignore files change."""
    _refresh(ls, [change.uri for change in params.changes])


def _refresh(ls: RedraftServer, uris: Iterable[str]) -> None:
    by_folder: dict[str, list[str]] = {}
    uris = list(uris)
    if any(uri.rpartition("/")[2] in IGNORE_FILES for uri in uris):
        ls.ignored.forget()
        ls.feed_buffers()
    for uri in uris:
        location = ls.folders.place(uri)
        if location.folder and to_fs_path(uri):
            by_folder.setdefault(location.folder, []).append(location.path)
    for folder, paths in by_folder.items():
        ls.hub.indexer.refresh(folder, paths)


def did_change_workspace_folders(
    ls: RedraftServer, params: types.DidChangeWorkspaceFoldersParams
) -> None:
    """Folders were added to or removed from the window."""
    for removed in params.event.removed:
        if (path := ls.folders.remove(removed.uri)) is not None:
            ls.hub.close_workspace(path)
    for added in params.event.added:
        if (path := ls.folders.add(added.uri)) is not None:
            ls.hub.open_workspace(path, ls.settings)
    ls.indexing.changed()
    ls.status.changed()


def set_trace(_: RedraftServer, __: Any) -> None:
    """Tracing is the client's own; our log has its own setting."""


HANDLERS: dict[str, Any] = {
    types.TEXT_DOCUMENT_DID_OPEN: did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: did_change,
    types.TEXT_DOCUMENT_DID_CLOSE: did_close,
    types.TEXT_DOCUMENT_DID_SAVE: did_save,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: notebook_did_open,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: notebook_did_change,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: notebook_did_close,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: did_change_configuration,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: did_change_watched_files,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: did_change_workspace_folders,
    types.SET_TRACE: set_trace,
}
