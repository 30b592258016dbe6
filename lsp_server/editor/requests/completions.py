"""Turns an LSP position into a request for a completion, and texts into LSP items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol import types

from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.editor.protocol.client_features import ClientFeatures
from lsp_server.shared.settings import folder_enabled, language_enabled
from lsp_server.tasks.completion.confidence_gate import THRESHOLDS
from lsp_server.text.documents.document import (
    Document,
    Encoding,
    Position,
    split_lines,
    units_of,
    with_line_feeds,
)
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from lsp_server.editor.server import RedraftServer

NOTEBOOK_CHARACTERS = 12_000
ACCEPTED_COMMAND = "redraft.accepted"
"""Run by the editor after an item was accepted."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a completion: the range that an item replaces, and the text of it that
    stays."""

    ask: CompletionRequest
    range: types.Range
    menu_text: str
    """Text that every item begins with: what the editor's own menu has selected."""


def inactive_reason(server: RedraftServer, document: Document) -> str:
    """Return why there are no completions in this document; empty if there are."""
    if server.settings.enabled and not server.settings.completion.enabled:
        return "switched off by the setting redraft.completion.enabled"
    return switched_off_reason(server, document)


def switched_off_reason(server: RedraftServer, document: Document) -> str:
    """Return why this document gets neither completions nor next edits; empty if it does."""
    settings = server.settings
    location = server.folders.place(document.uri)
    if not settings.enabled:
        return "switched off by the setting redraft.enabled"
    if server.paused:
        return f"paused {server.paused}; redraft.resume ends it"
    if not language_enabled(settings, document.language):
        return f"switched off for {document.language} by the setting redraft.languages"
    if not folder_enabled(settings, location.absolute or location.folder):
        return "switched off for this folder by the setting redraft.folders"
    if reason := server.secrets.withheld_reason(document):
        return f"the file may hold secrets ({reason}) and is not read"
    return ""


def cursor_at(
    server: RedraftServer,
    document: Document,
    position: types.Position,
    selected: types.SelectedCompletionInfo | None = None,
    invoked: bool = False,
) -> Cursor:
    """Return the request for a completion at a position."""
    encoding = server.features.encoding
    position_here = document.position(position.line, position.character, encoding)
    start, menu_text, end = position_here, "", position_here
    if selected is not None:
        first, last = selected.range.start, selected.range.end
        start = document.position(first.line, first.character, encoding)
        end = document.position(last.line, last.character, encoding)
        menu_text = selected.text
    text, before = document.text, document.offset(start)
    cells_above, cells_below = _cells_around(server, document)
    prefix = cells_above + text[:before] + menu_text
    where = server.folders.place(document.uri)
    # A workspace learns the accepted text, but of documents with secrets, allowed or not.
    learns = server.settings.index.enabled and not server.secrets.secret_reason(document)
    ask = CompletionRequest(
        document=document.uri,
        path=where.path,
        workspace=where.folder if learns else "",
        language=document.language,
        prefix=with_line_feeds(prefix),
        suffix=with_line_feeds(text[before + len(document.between(start, end)) :] + cells_below),
        secret=_may_hold_secrets(server, document),
        invoked=invoked,
        threshold=0.0 if invoked else THRESHOLDS[server.settings.completion.gate],
    )
    return Cursor(ask, lsp_range(server, document, start, end), menu_text)


def _may_hold_secrets(server: RedraftServer, document: Document) -> bool:
    notebook = server.documents.notebook_of(document.uri)
    cells = [] if notebook is None else map(server.documents.find, notebook.cells)
    documents = [document, *(cell for cell in cells if cell is not None)]
    return any(server.secrets.secret_reason(document_) for document_ in documents)


def ask_after(
    server: RedraftServer, document: Document, edit: TextEdit[Position]
) -> CompletionRequest:
    """Return the request that would come where an edit ended."""
    lines = split_lines(edit.text)
    line = edit.start.line + len(lines) - 1
    column = len(lines[-1]) + (edit.start.column if len(lines) == 1 else 0)
    line = min(line, len(document.lines) - 1)
    units = document.units(Position(line, column), server.features.encoding)
    return cursor_at(server, document, types.Position(*units)).ask


def lsp_range(
    server: RedraftServer, document: Document, start: Position, end: Position
) -> types.Range:
    """Return a range in the client's units."""
    encoding = server.features.encoding
    return types.Range(
        types.Position(*document.units(start, encoding)),
        types.Position(*document.units(end, encoding)),
    )


def _cells_around(server: RedraftServer, document: Document) -> tuple[str, str]:
    """Return the text of a notebook's cells above ``document`` and below it."""
    notebook = server.documents.notebook_of(document.uri)
    if notebook is None or document.uri not in notebook.cells:
        return "", ""
    index = notebook.cells.index(document.uri)
    texts = []
    for uris in (notebook.cells[:index], notebook.cells[index + 1 :]):
        cells = (server.documents.find(uri) for uri in uris)
        texts.append(
            [
                cell.text.rstrip("\n")
                for cell in cells
                if cell is not None
                and cell.language == document.language
                and cell.text.strip()
                and not server.secrets.withheld_reason(cell)
            ]
        )
    before = "".join(cell + "\n\n" for cell in texts[0])[-NOTEBOOK_CHARACTERS:]
    return before, "".join("\n\n" + cell for cell in texts[1])[:NOTEBOOK_CHARACTERS]


def inline_items(cursor: Cursor, texts: list[str], offer: int) -> types.InlineCompletionList:
    """Return texts as inline completion items; ``offer`` is the id under which they are known."""
    return types.InlineCompletionList(
        items=[
            types.InlineCompletionItem(
                insert_text=cursor.menu_text + text,
                range=cursor.range,
                command=_accepted(offer, number, text),
            )
            for number, text in enumerate(texts)
        ]
    )


def _accepted(offer: int, number: int, text: str) -> types.Command:
    outcome = {"id": offer, "number": number, "length": len(text)}
    return types.Command("accepted", ACCEPTED_COMMAND, arguments=[outcome])


def menu_items(
    cursor: Cursor, texts: list[str], features: ClientFeatures, offer: int
) -> types.CompletionList:
    """Return texts as items of the completion menu, for clients without inline completion."""
    line = cursor.ask.line_before
    word = line[len(line) - _word_length(line) :]
    indents = features.indents_items
    indentation = line[: len(line) - len(line.lstrip())] if indents else ""
    mode = types.InsertTextMode.AdjustIndentation if indents else types.InsertTextMode.AsIs
    items = []
    for number, suggestion in enumerate(texts):
        text = _as_far_as_indented(suggestion, indentation)
        if not text:
            continue
        first_line = text.split("\n", 1)[0]
        inserted = word + text.replace("\n" + indentation, "\n")
        items.append(
            types.CompletionItem(
                label=(word + first_line).strip() or text.strip().split("\n", 1)[0],
                label_details=types.CompletionItemLabelDetails(description="Redraft"),
                kind=types.CompletionItemKind.Snippet,
                detail="Redraft",
                documentation=types.MarkupContent(
                    types.MarkupKind.Markdown, f"```{cursor.ask.language}\n{word}{text}\n```"
                ),
                filter_text=inserted if features.filters_by_whole_text else word + first_line,
                sort_text=f"~{number}",
                insert_text_mode=mode,
                text_edit=types.TextEdit(
                    range=_with_word(cursor, word, features.encoding), new_text=inserted
                ),
                command=_accepted(offer, number, text),
            )
        )
    return types.CompletionList(is_incomplete=True, items=items)


def _as_far_as_indented(text: str, indentation: str) -> str:
    """Return the lines up to one that is indented less than the cursor's: an editor that indents
    every line as far as the cursor's cannot insert it."""
    first, *others = text.split("\n")
    lines = [first]
    for line in others:
        if line.strip() and not line.startswith(indentation):
            return "\n".join(lines).rstrip("\n")
        lines.append(line)
    return text


def _word_length(line: str) -> int:
    length = 0
    while length < len(line) and (line[-1 - length].isalnum() or line[-1 - length] == "_"):
        length += 1
    return length


def _with_word(cursor: Cursor, word: str, encoding: Encoding) -> types.Range:
    start = cursor.range.start
    units = units_of(word, len(word), encoding)
    return types.Range(types.Position(start.line, start.character - units), cursor.range.end)
