"""Places and instructions for any model: the first at which the model at hand does something.

What it does there is learnt from the server itself, by the same requests that editors send.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from installed import Server
from language_client import LanguageClient, Refused
from projects import DATA, FILES, ORDERS, SHAPES

SHORTEST = 8


@dataclass(frozen=True, slots=True)
class Place:
    """A text within which a key is typed, and what the model writes next."""

    before: str
    key: str
    after: str
    suggestion: str

    @property
    def text(self) -> str:
        """The file before the key is typed."""
        return self.before + self.after

    @property
    def typed(self) -> str:
        """The text up to the key, with it."""
        return self.before + self.key

    @property
    def first_line(self) -> str:
        """First line of the suggestion."""
        return self.suggestion.split("\n")[0]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Characters of a text that become others."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines of a text, an instruction for them, and what the model makes of it."""

    text: str
    first: int
    last: int
    instruction: str
    hunks: tuple[Hunk, ...]

    @property
    def comment(self) -> str:
        """The instruction as a comment."""
        return f"# redraft: {self.instruction}"

    @property
    def after(self) -> str:
        """The text with everything accepted."""
        return self.with_hunks(*range(len(self.hunks)))

    def with_hunks(self, *chosen: int) -> str:
        """The text with some of the hunks, by number, accepted."""
        text = self.text
        for number in sorted(chosen, reverse=True):
            hunk = self.hunks[number]
            text = text[: hunk.start] + hunk.new + text[hunk.end :]
        return text


_TOTALS = "\n\ndef smallest_total(orders, tax):\n    totals = "
_DONE = "[order_total(order, tax) for order in orders]\n"
_PLACES = [
    (ORDERS + _TOTALS, "["),
    (ORDERS + _TOTALS + "[order_total(", "o"),
    (ORDERS + "\n\ndef product(values):\n    count = ", "l"),
    (ORDERS + _TOTALS + _DONE + "    return m", "i"),
    (ORDERS + "\n\ndef smallest_total", "("),
    (ORDERS + "\n\ndef mean(values):\n    count = len(values)\n    return ", "s"),
    (ORDERS + "\n\ndef sum_of(prices):\n    subtotal = 0\n    for price ", "i"),
    (ORDERS + "\n\nfor order in ", "o"),
    # Here much may follow, for a choice.
    (ORDERS + "\n\ndef cheapest", "_"),
    (ORDERS + "\n\nclass ", "O"),
]

_INSTRUCTIONS = [
    ({"shapes": SHAPES, "orders": ORDERS, "files": FILES}[name], first, last, instruction)
    for name, first, last, instruction in json.loads((DATA / "instructions.json").read_text())
]

_failures: Counter[tuple[str, str]] = Counter()
"""How often something was of no use, so that it is tried last the next time."""


def prepared_place(
    server: Server,
    project: Path,
    name: str,
    change: Callable[[str], str] = str,
    least: int = 1,
    after: str = "\n",
) -> Place:
    """A place in a file of a project where the model suggests something to take in pieces.

    ``change`` turns the prepared text into what the file holds; ``least`` is how many suggestions
    there are to be; ``after`` is what stands behind the place. Raises AssertionError where the
    model suggests nothing of use anywhere.
    """
    told = []
    with _asking(server, project) as client:
        for source, key in sorted(_PLACES, key=lambda place: _failures[place]):
            place = Place(change(source), key, change(after), "")
            suggestions = _suggestions(client, project / name, place, least > 1)
            first_line = "".join(suggestions[:1]).split("\n")[0]
            in_pieces = len(first_line) >= SHORTEST and len(re.findall(r"\w+", first_line)) > 1
            # The model is sure of all of it: while it is typed or taken in pieces, no more comes.
            # Where it has a choice of several, it is not.
            shown = [
                _suggestions(client, project / name, place, by_hand) for by_hand in (False, True)
            ]
            is_sure = shown[0][:1] == shown[1][:1] == suggestions[:1]
            wanted = is_sure if least == 1 else len(set(suggestions)) >= least
            if in_pieces and wanted:
                return replace(place, suggestion=suggestions[0])
            _failures[source, key] += 1
            told.append(f"{place.typed.splitlines()[-1]!r}: {suggestions}")
    raise AssertionError("the model suggests nothing of use:\n" + "\n".join(told))


def prepared_cell(server: Server, project: Path, name: str) -> tuple[str, Place]:
    """The first cell of a notebook, and a place in the second one that goes on with it.

    Raises AssertionError where the model suggests nothing anywhere.
    """
    told = []
    with _asking(server, project) as client:
        for source, key in _PLACES:
            place = Place(source.removeprefix(ORDERS).lstrip("\n"), key, "", "")
            suggestions = _suggestions_in_cell(client, project / name, ORDERS, place.typed)
            if "".join(suggestions):
                return ORDERS, replace(place, suggestion=suggestions[0])
            told.append(f"{place.typed!r}: {suggestions}")
    raise AssertionError("the model suggests nothing in a cell:\n" + "\n".join(told))


def in_windows_form(text: str) -> str:
    """With signs of one to four bytes, of one and of two units, and carriage returns."""
    return text.replace('"""', '"""🛒 é ', 1).replace("\n", "\r\n")


def changes_something(edit: Edit) -> bool:
    """Whether there is something to accept."""
    return bool(edit.hunks)


def changes_two_places(edit: Edit) -> bool:
    """Whether one change can be accepted and another one discarded."""
    return len(edit.hunks) > 1 and changes_something(edit)


def is_written_by_the_model(edit: Edit) -> bool:
    """Whether the answer streams: a rename is known from the syntax tree at once."""
    return changes_something(edit) and not edit.instruction.startswith("rename")


def replaces_first(edit: Edit) -> bool:
    """Whether the first change replaces text, which then can be spoilt."""
    return changes_something(edit) and edit.hunks[0].start < edit.hunks[0].end


def prepared_edit(
    server: Server,
    project: Path,
    name: str,
    wanted: Callable[[Edit], bool] = changes_something,
    change: Callable[[str], str] = str,
) -> Edit:
    """An edit of a file of a project that does what is wanted.

    ``change`` turns the prepared text into what the file holds, empty for a text that is of no
    use. Raises AssertionError where the model does nothing of the kind, or is refused everywhere.
    """
    told = []
    with _asking(server, project) as client:
        for source, first, last, instruction in _most_useful_first():
            text = change(source)
            if not text:
                continue
            try:
                hunks = _proposed(client, project / name, text, (first, last), instruction)
            except Refused as error:
                _failures[source, instruction] += 1
                told.append(f"{instruction!r}: {error}")
                continue
            edit = Edit(text, first, last, instruction, hunks)
            if wanted(edit):
                return edit
            _failures[source, instruction] += not hunks
            told.append(f"{instruction!r}: {hunks}")
    raise AssertionError("the model makes none of the edits as wanted:\n" + "\n".join(told))


def _most_useful_first() -> list[tuple[str, int, int, str]]:
    return sorted(_INSTRUCTIONS, key=lambda one: _failures[one[0], one[3]])


def prepared_comment(server: Server, project: Path, name: str) -> tuple[Edit, str]:
    """A text with an instruction as a comment, the edit that it leads to, and the action's title.

    Raises AssertionError where the model changes nothing or is refused everywhere.
    """
    told = []
    with _asking(server, project) as client:
        for source, first, last, instruction in _most_useful_first():
            lines = source.splitlines(keepends=True)
            lines.insert(first - 1, f"# redraft: {instruction}\n")
            text, title = "".join(lines), f"Redraft: {instruction}"
            try:
                hunks = _carried_out(client, project / name, text, first, title)
            except Refused as error:
                _failures[source, instruction] += 1
                told.append(f"{instruction!r}: {error}")
                continue
            edit = Edit(text, first, last + 1, instruction, hunks)
            if hunks and len(instruction) <= 40:
                return edit, title
            _failures[source, instruction] += not hunks
            told.append(f"{instruction!r}: {len(hunks)} hunk(s)")
    raise AssertionError("no comment is carried out:\n" + "\n".join(told))


@contextmanager
def _asking(server: Server, project: Path) -> Iterator[LanguageClient]:
    """A client to ask with; the answers are those that editors get later."""
    with LanguageClient(server.command, project) as client:
        client.wait_ready()
        yield client


def _suggestions(client: LanguageClient, path: Path, place: Place, invoked: bool) -> list[str]:
    document = client.open(path, place.typed + place.after)
    suggestions = _suggestions_behind(client, document, place.typed, invoked)
    client.close(document)
    return suggestions


def _suggestions_in_cell(client: LanguageClient, path: Path, above: str, text: str) -> list[str]:
    notebook = {"uri": path.as_uri(), "notebookType": "jupyter-notebook", "version": 1}
    uris = [f"vscode-notebook-cell:{path}#{number}" for number in range(2)]
    texts = [
        {"uri": uri, "languageId": "python", "version": 1, "text": one}
        for uri, one in zip(uris, (above, text), strict=True)
    ]
    cells = [{"kind": 2, "document": uri} for uri in uris]
    opened = {"notebookDocument": {**notebook, "cells": cells}, "cellTextDocuments": texts}
    client.notify("notebookDocument/didOpen", opened)
    suggestions = _suggestions_behind(client, {"uri": uris[1]}, text, False)
    closed = {
        "notebookDocument": {"uri": notebook["uri"]},
        "cellTextDocuments": [{"uri": uri} for uri in uris],
    }
    client.notify("notebookDocument/didClose", closed)
    return suggestions


def _suggestions_behind(
    client: LanguageClient, document: dict[str, str], text: str, invoked: bool
) -> list[str]:
    lines = text.split("\n")
    asked = {
        "textDocument": document,
        "position": {"line": len(lines) - 1, "character": len(lines[-1])},
        "context": {"triggerKind": 1 if invoked else 2},
    }
    answer = client.request("textDocument/inlineCompletion", asked)
    return [item["insertText"] for item in (answer or {}).get("items", [])]


def _proposed(
    client: LanguageClient, path: Path, text: str, lines: tuple[int, int], instruction: str
) -> tuple[Hunk, ...]:
    """The hunks of an edit; none when it comes out differently drafted and plain.

    Then two texts are all but equally likely, and the next time may bring the other one.
    """
    document = client.open(path, text)
    asked = {
        "textDocument": document,
        "range": {
            "start": {"line": lines[0] - 1, "character": 0},
            "end": {"line": lines[1], "character": 0},
        },
        "instruction": instruction,
    }
    try:
        answers = [client.request("redraft/edit", {**asked, "plain": one}) for one in (False, True)]
    finally:
        client.close(document)
    drafted, plain = answers
    if drafted["text"] != plain["text"]:
        return ()
    return tuple(_hunk(text, one["range"], one["newText"]) for one in drafted["hunks"])


def _carried_out(
    client: LanguageClient, path: Path, text: str, line: int, title: str
) -> tuple[Hunk, ...]:
    """What the code action of an instruction comment does."""
    document = client.open(path, text)
    here = {"line": line - 1, "character": 0}
    asked = {
        "textDocument": document,
        "range": {"start": here, "end": here},
        "context": {"diagnostics": []},
    }
    try:
        actions = client.request("textDocument/codeAction", asked)
        action = next((one for one in actions or [] if one["title"] == title), None)
        if action is None:
            raise Refused("no such code action")
        edit = client.request("codeAction/resolve", action)["edit"]
    finally:
        client.close(document)
    changes: list[dict[str, Any]] = edit["changes"][document["uri"]]
    return tuple(_hunk(text, one["range"], one["newText"]) for one in changes)


def _hunk(text: str, span: dict[str, Any], new: str) -> Hunk:
    lines = text.splitlines(keepends=True)
    start, end = (
        sum(len(line) for line in lines[: span[side]["line"]]) + span[side]["character"]
        for side in ("start", "end")
    )
    return Hunk(start, end, new)
