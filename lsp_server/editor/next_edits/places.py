"""Finds places that an edit touches by name, for the next windows: in its document, and in other
files of the workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.importers import imports_name, readable_texts
from lsp_server.editor.next_edits.windows import Window
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.tree import SyntaxTree

MOST_PLACES = 2
"""In a document."""
MOST_FILES = 2
MOST_PARSED = 24
"""Of more files that hold a name the first ones are looked at."""
MOST_LINES = 12
"""A name that occurs in more lines of a document says nothing of any of them."""
MOST_MENTIONS = 500
"""What comes so often, comments and longer names with it, is not looked at."""
_IMPORT = re.compile(r"\s*(?:from|import|use|export)\b|#include\b")
_NAME = re.compile(r"[^\W\d]\w{2,}")


def places_touched(
    edit: RecordedEdit, document: Document, window: Window | None = None
) -> list[Position]:
    """Lines of a document, outside of a window of it, that hold a name which the edit took away,
    then those with one that occurs in its changed lines; the nearest first, imports last, and none
    within a window's reach of another."""
    old, new = _names(edit.old_text), _names(edit.new_text)
    first, end = (window.first, window.first + len(window.lines)) if window else (0, 0)
    reach = max((end - first) // 2, 1)
    tree = SyntaxTree.of(document.text, document.language, document.uri)
    found: list[Position] = []
    for names in (old - new, new):
        places = [
            place
            for name in names
            for place in _lines_with(name, document, tree)
            if not first <= place.line < end
        ]
        for place in sorted(places, key=lambda at: _order(at, document, first, end)):
            if all(abs(place.line - other.line) > reach for other in found):
                found.append(place)
            if len(found) == MOST_PLACES:
                return found
    return found


def files_touched(
    edit: RecordedEdit, folder: Path, path: str, opened: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Path and text of other files that hold a name of the edit: in Python those that import it
    first. A name that the edit left alone counts only where it is imported, or has no language that
    tells. ``path``: of the edited file below the folder; ``opened``: as of ``readable_texts``.

    Reads the disk: not for the event loop.
    """
    old, new = _names(edit.old_text), _names(edit.new_text)
    gone, stay = old - new, old & new
    if not gone | stay:
        return []
    words = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(gone | stay)))})\b")
    grammar = grammar_of("", path)
    ranked: list[tuple[int, str, str]] = []
    suffix = PurePosixPath(path).suffix
    for other, text in readable_texts(folder, opened, (suffix,) if suffix else ()):
        held = set(words.findall(text)) if other != path else set()
        if not held or not other.endswith(suffix) or not grammar:
            continue
        tree = SyntaxTree.parsed(text, grammar)
        names = {name for name in held if tree.identifiers(name)}
        if grammar == "python" and any(imports_name(tree, other, path, name) for name in names):
            ranked.append((0, other, text))
        elif names & gone or (names and grammar != "python"):
            ranked.append((1 if names & gone else 2, other, text))
        if len(ranked) == MOST_PARSED:
            break
    return [(other, text) for _, other, text in sorted(ranked)[:MOST_FILES]]


def _lines_with(name: str, document: Document, tree: SyntaxTree | None) -> list[Position]:
    """The first place in each line that holds a name; none where these are too many."""
    if document.text.count(name) > MOST_MENTIONS:
        return []
    word = re.compile(rf"\b{re.escape(name)}\b")
    starts: Iterator[int] | list[int] = (
        [start for start, _ in tree.identifiers(name)]
        if tree is not None
        else (at.start() for at in word.finditer(document.text))
    )
    found: dict[int, Position] = {}
    for place in map(document.position_at, starts):
        found.setdefault(place.line, place)
    return list(found.values()) if len(found) <= MOST_LINES else []


def _order(place: Position, document: Document, first: int, end: int) -> tuple[bool, int, Position]:
    is_import = _IMPORT.match(document.lines[place.line]) is not None
    return is_import, min(abs(place.line - first), abs(place.line - end)), place


def _names(text: str) -> set[str]:
    return set(_NAME.findall(text))
