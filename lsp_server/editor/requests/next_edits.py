"""Next edits as messages: ``redraft/nextEdit``, and the method of Copilot's language server for the
clients that know it (``textDocument/copilotInlineEdit``, as of sidekick.nvim and copilot.lua)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsp_server.editor.protocol.capabilities import NEXT_EDIT_ACCEPTED
from lsp_server.editor.requests.completions import switched_off_reason
from lsp_server.shared.errors import RedraftError
from lsp_server.text.documents.document import Document, Position

if TYPE_CHECKING:
    from lsp_server.editor.next_edits.suggestion import Suggestion
    from lsp_server.editor.server import RedraftServer


async def next_edit(ls: RedraftServer, params: Any) -> dict[str, Any] | None:
    """``redraft/nextEdit`` with ``{textDocument, position, asked?}``: null when a newer request
    came, else ``{edits, first?}``, those of the document first, from the cursor on. A client draws
    them after what else is at the cursor, ghost text or a menu of completions that opened by
    itself, unless they come ``first``. ``asked``: by the user's key.

    Each is ``{number, textDocument: {uri, version}, range, text, title, command}``; ``text`` is
    null where the user is only led to a place, ``version`` where the document is not open.
    """
    document, position = _place(ls, params)
    is_asked_for = params.get("asked") is True
    proposed = await _found(ls, document, position, is_asked_for=is_asked_for)
    if proposed is None:
        return None
    edits = [_as_json(ls, edit) | {"title": _title(edit, proposed)} for edit in proposed]
    if not edits or not ls.screen.shows_next_edit(document, position):
        return {"edits": edits}
    is_first = await ls.next_edits.settled() or (
        not all(edit.is_of_model for edit in proposed)
        and await ls.screen.is_name_whole(document, position)
    )
    return {"edits": edits, "first": is_first}


async def copilot_inline_edit(ls: RedraftServer, params: Any) -> dict[str, Any]:
    """``textDocument/copilotInlineEdit``: the next edits of the document itself that change text,
    all at once, as such clients show them."""
    document, position = _place(ls, params)
    proposed = await _found(ls, document, position) or []
    here = [edit for edit in proposed if edit.uri == document.uri and edit.new_text is not None]
    is_shown = bool(here) and ls.screen.shows_next_edit(document, position)
    return {"edits": [_as_json(ls, edit) for edit in here] if is_shown else []}


def inline_edit_shown(ls: RedraftServer, params: Any) -> None:
    """``textDocument/didShowInlineEdit``: the user sees a next edit."""
    ls.next_edits.shown += 1


def run_next_edit_command(ls: RedraftServer, command: str, argument: dict[str, Any]) -> None:
    """Return what became of a next edit. Raises RedraftError."""
    number = argument.get("number")
    if not isinstance(number, int):
        raise RedraftError(f"{command} needs the number of a next edit")
    if command == NEXT_EDIT_ACCEPTED:
        ls.next_edits.accept(number)
    else:
        ls.next_edits.reject(number)
    ls.status.changed()


async def _found(
    ls: RedraftServer, document: Document, position: Position, *, is_asked_for: bool = False
) -> list[Suggestion] | None:
    if not ls.settings.next_edits.enabled or switched_off_reason(ls, document):
        return []
    ls.screen.draws_next_edits = True
    if not await ls.screen.is_time(is_asked_for=is_asked_for):
        return []
    proposed = await ls.next_edits.next_edits(document, position)
    if proposed and not is_asked_for and not await ls.next_edits.settled():
        version = document.version
        await ls.screen.suggestion_decided(document.uri)
        if document.version != version:
            return None
    return proposed


def _place(ls: RedraftServer, params: Any) -> tuple[Document, Position]:
    try:
        uri, position = str(params["textDocument"]["uri"]), params["position"]
        line, units = int(position["line"]), int(position["character"])
    except (KeyError, TypeError, ValueError):
        raise RedraftError("expected textDocument and position") from None
    document = ls.documents.get(uri)
    return document, document.position(line, units, ls.features.encoding)


def _title(edit: Suggestion, proposed: list[Suggestion]) -> str:
    """Return the title of a next edit, with the number of its like where they are in many files."""
    same = [other.uri for other in proposed if other.title == edit.title]
    files = len(set(same))
    return edit.title if files < 2 else f"{edit.title}, {len(same)} places in {files} files"


def _as_json(ls: RedraftServer, edit: Suggestion) -> dict[str, Any]:
    document = ls.documents.find(edit.uri) or edit.document
    encoding = ls.features.encoding
    start, end = (
        dict(zip(("line", "character"), document.units(position, encoding), strict=True))
        for position in (edit.region.start, edit.region.end)
    )
    is_open = ls.documents.find(edit.uri) is document
    return {
        "number": edit.number,
        "textDocument": {"uri": edit.uri, "version": document.version if is_open else None},
        "range": {"start": start, "end": end},
        "text": edit.new_text,
        "title": edit.title,
        "command": {
            "title": "Accept next edit",
            "command": NEXT_EDIT_ACCEPTED,
            "arguments": [{"number": edit.number}],
        },
    }
