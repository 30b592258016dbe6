"""Edits as LSP sees them: workspace edits, hunks with ranges, statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.editor.editing.provider import EditRequest, EditResult
from lsp_server.editor.requests.completions import lsp_range
from lsp_server.shared.contract.jobs import JobResult
from lsp_server.shared.errors import EditRefused, StaleDocument
from lsp_server.text.syntax.languages import language_of_path
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from lsprotocol import types

    from lsp_server.editor.server import RedraftServer
    from lsp_server.text.documents.document import Document, Position

LABEL = "Redraft edit"
PLAIN = "redraft"
"""Annotation of what was asked for; notes are the annotations of what was not."""


def edit_request(server: RedraftServer, params: Any) -> EditRequest:
    """Return an edit request from JSON: ``{uri | textDocument, version?, range, instruction,
    plain?}``.

    Raises UnknownDocument, EditRefused for what cannot be read, StaleDocument for another version.
    """
    if not isinstance(params, dict):
        raise EditRefused("the edit's parameters must be an object")
    identifier = params.get("textDocument") or params
    uri, version = identifier.get("uri"), identifier.get("version")
    document = server.documents.get(str(uri))
    if isinstance(version, int) and version != document.version:
        raise StaleDocument(
            f"the edit is for version {version} and the document is at {document.version}"
        )
    if params.get("opened", document.opened) != document.opened:
        raise StaleDocument("the document was closed and opened again; edit again")
    try:
        span = params["range"]
        ends = [(int(span[end]["line"]), int(span[end]["character"])) for end in ("start", "end")]
    except (KeyError, TypeError, ValueError):
        raise EditRefused("the edit's range must have a start and an end") from None
    encoding = server.features.encoding
    start, end = sorted(document.position(line, units, encoding) for line, units in ends)
    workspace_path = server.folders.place(document.uri)
    return EditRequest(
        document=document,
        path=workspace_path.path,
        workspace=workspace_path.folder,
        start=start,
        end=end,
        instruction=str(params.get("instruction", "")),
        plain=params.get("plain") is True,
        with_comment=params.get("withComment") is True,
        takes_others=params.get("takesOthers") is True,
        withheld=server.secrets.withheld_reason(document),
        secret=bool(server.secrets.secret_reason(document)),
    )


def workspace_edit(server: RedraftServer, document: Document, edit: EditResult) -> dict[str, Any]:
    """Return ``edit`` as a WorkspaceEdit, versioned if the client supports that. Raises
    StaleDocument where another open document has changed."""
    files = [(document, edit.version, edit.changes), *_others(server, document, edit)]
    changed = [(file.uri, version, _edits(server, file, edits)) for file, version, edits in files]
    if not server.features.document_changes:
        return {"changes": {uri: edits for uri, _, edits in changed}}
    workspace: dict[str, Any] = {
        "documentChanges": [
            {"textDocument": {"uri": uri, "version": version}, "edits": edits}
            for uri, version, edits in changed
        ]
    }
    if server.features.change_annotations:
        notes = {change.note for change in edit.changes if change.note}
        workspace["changeAnnotations"] = {PLAIN: {"label": LABEL, "needsConfirmation": False}} | {
            note: {"label": f"{LABEL}: {note}", "needsConfirmation": True} for note in sorted(notes)
        }
    return workspace


def _edits(
    server: RedraftServer, document: Document, changes: list[TextEdit[Position]]
) -> list[dict[str, Any]]:
    is_noted = server.features.document_changes and server.features.change_annotations
    return [
        {"range": _json(lsp_range(server, document, change.start, change.end))}
        | {"newText": change.text}
        | ({"annotationId": change.note or PLAIN} if is_noted else {})
        for change in changes
    ]


def _others(
    server: RedraftServer, document: Document, edit: EditResult
) -> Iterator[tuple[Document, int | None, list[TextEdit[Position]]]]:
    """Yield the other documents that an edit changes, their versions and their changes. Raises
    StaleDocument."""
    folder = Path(server.folders.place(document.uri).folder)
    for (path, text), group in groupby(edit.others, key=itemgetter(0, 1)):
        file = server.next_edits.document_of(folder, path, text, language_of_path(path))
        if file is None:
            raise StaleDocument(f"{path} changed while it was being edited; edit again")
        position, hunks = file.position_at, [hunk for _, _, hunk in group]
        changes = [TextEdit(position(hunk.start), position(hunk.end), hunk.text) for hunk in hunks]
        yield file, file.version if server.documents.find(file.uri) else None, changes


def edit_answer(server: RedraftServer, document: Document, edit: EditResult) -> dict[str, Any]:
    """Return the result of ``redraft/edit``."""
    return {
        "edit": workspace_edit(server, document, edit),
        "hunks": [
            {
                "range": _json(lsp_range(server, document, change.start, change.end)),
                "oldText": document.between(change.start, change.end),
                "newText": change.text,
                "note": change.note,
            }
            for change in edit.changes
        ],
        "diff": edit.diff,
        "text": edit.text,
        "version": edit.version,
        "warning": edit.warning,
        "statistics": statistics(edit.result),
    }


def refuse_nothing(edit: EditResult) -> None:
    """Raise EditRefused where nothing changes: an empty edit is not applied."""
    if not edit.changes:
        raise EditRefused(edit.warning or "the edit changes nothing; rephrase the instruction")


def statistics(result: JobResult) -> dict[str, Any]:
    """Return tokens, forwards, seconds and draft sources of a generated text."""
    return {
        "tokens": result.tokens,
        "forwards": result.forwards,
        "tokensPerForward": result.tokens / result.forwards if result.forwards else 0.0,
        "seconds": result.seconds,
        "prefillSeconds": result.prefill_seconds,
        "sources": result.sources,
        "spans": [asdict(span) for span in result.spans],
        "stoppedBy": result.stopped_by,
    }


def _json(span: types.Range) -> dict[str, Any]:
    return {
        "start": {"line": span.start.line, "character": span.start.character},
        "end": {"line": span.end.line, "character": span.end.character},
    }
