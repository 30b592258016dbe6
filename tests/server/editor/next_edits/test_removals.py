"""What an answer takes away of a window: what stays, whatever the model says, and what may go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from text_cases import data_beside, data_cases

from lsp_server.editor.next_edits.answers import AnsweredWindow
from lsp_server.editor.next_edits.history import Origin, RecordedEdit
from lsp_server.editor.next_edits.removals import refused_removals
from lsp_server.editor.next_edits.window_hunks import all_hunks
from lsp_server.editor.next_edits.windows import window_at
from lsp_server.tasks.next_edits.formats import FORMATS
from lsp_server.text.documents.document import Document, Position

FORM = replace(FORMATS["sweep-a"], lines_above=99, lines_below=99)
DEFINITION = "it deletes a definition"
LINES = "it deletes more than 3 lines"
UNNAMED = "it deletes what no edit has to do with"
NOT_TYPED = "it deletes lines after an edit that was not typed"

DATA = data_beside(__file__)
PYTHON = DATA["PYTHON"]
SCRIPT = DATA["SCRIPT"]
GO = DATA["GO"]
JAVA = DATA["JAVA"]
RUST = DATA["RUST"]
CSHARP = DATA["CSHARP"]
C = """\
#include <stdio.h>

static int total(int a) {
    return a;
}
int b = 1;
"""
TEXTS = {
    "python": PYTHON,
    "typescript": SCRIPT,
    "go": GO,
    "java": JAVA,
    "rust": RUST,
    "csharp": CSHARP,
    "c": C,
}


def reasons(
    text: str,
    answer: str,
    language: str = "python",
    edit: tuple[int, str, str] = (0, "x\n", "y\n"),
    origin: Origin = "typed",
    elsewhere: bool = False,
) -> list[str]:
    """Why the changes are not shown that turn a text into an answer; ``edit``: the line of the last
    edit, and the text of its lines before and after it, which are those of ``text`` now."""
    document = Document("file:///code", language, 1, text)
    other = Document("file:///other", language, 1, "y\n")
    at, old, new = edit
    split = old.splitlines(keepends=True), new.splitlines(keepends=True)
    made = RecordedEdit(other if elsewhere else document, at, *split, 0.0, origin)
    paths = {document.uri: "code", other.uri: "other"}
    window = window_at(document, Position(at, 0), FORM, "code", [made], paths, is_typing=False)
    assert window is not None
    assert window.text == text, "the window is the whole text"
    hunks = all_hunks(window, AnsweredWindow(answer))
    assert hunks
    return [reason for _, reason in refused_removals(window, hunks, [made], document)]


@data_cases()
@pytest.mark.parametrize("brings", ["", "pass\n"])
def test_what_the_user_did_not_touch_stays(
    language: str, lines: tuple[int, int], reason: str, brings: str
) -> None:
    """Also where another line comes in its place, as far as that is not a change of it."""
    text = TEXTS[language]
    split = text.splitlines(keepends=True)
    answer = "".join([*split[: lines[0]], brings, *split[lines[1] :]])
    wanted = [] if brings and reason in (LINES, UNNAMED) else [reason]
    assert reasons(text, answer, language, elsewhere=True) == wanted


@data_cases()
def test_what_becomes_something_else_does_not_go(old: str, new: str) -> None:
    assert old in PYTHON
    assert reasons(PYTHON, PYTHON.replace(old, new), elsewhere=True) == []


SHOW = PYTHON[PYTHON.index("def show") : PYTHON.index("LIMIT")]


def test_a_text_that_moves_may_go_where_it_was() -> None:
    moved = PYTHON.replace(SHOW, "") + "\n\n" + SHOW.rstrip("\n") + "\n"
    assert reasons(PYTHON, moved, elsewhere=True) == []
    assert reasons(PYTHON, PYTHON.replace(SHOW, ""), elsewhere=True) == [DEFINITION]
    half = PYTHON.replace(SHOW, "") + SHOW.replace("print(max(prices))", "")
    assert reasons(PYTHON, half, elsewhere=True) == [UNNAMED], "one line does not move"
    written = 0, "", SHOW
    assert reasons(PYTHON, PYTHON.replace(SHOW, ""), edit=written, elsewhere=True) == []


@data_cases()
def test_a_deletion_is_one_where_an_edit_names_what_goes(
    old: str, new: str, gone: str, is_shown: bool
) -> None:
    edit = 0, old, new
    found = reasons(PYTHON, PYTHON.replace(gone, "", 1), edit=edit, elsewhere=True)
    assert found == ([] if is_shown else [UNNAMED])


def test_the_underscore_of_a_name_goes_as_it_went_before() -> None:
    edit = 0, "host_name\n", "hostname\n"
    assert reasons("host_name = 1\n", "hostname = 1\n", edit=edit, elsewhere=True) == []
    assert reasons("host_name = 1\n", "host = 1\n", edit=edit, elsewhere=True) == [UNNAMED]


def test_lines_that_the_user_touched_are_his_own() -> None:
    start = PYTHON.index("    print(len")
    rest = PYTHON[start : PYTHON.index("\n\nLIMIT")]
    line = PYTHON.count("\n", 0, start)
    answer = PYTHON.replace(rest, "    print(prices)\n")
    assert reasons(PYTHON, answer, elsewhere=True) == []
    answer = PYTHON.replace(rest, "")
    assert reasons(PYTHON, answer, elsewhere=True) == [LINES]
    assert reasons(PYTHON, answer, edit=(line, "    pass\n", rest.rstrip("\n") + "\n")) == []


@pytest.mark.parametrize("origin", ["pasted", "suggested"])
@pytest.mark.parametrize("gone", [SHOW, "    print(max(prices))\n", "import os\n", "LIMIT = 3\n"])
def test_nothing_goes_behind_an_edit_that_was_not_typed(origin: Origin, gone: str) -> None:
    answer = PYTHON.replace(gone, "")
    edit = 0, "print(max(items))\n", ""
    assert reasons(PYTHON, answer, edit=edit, origin=origin, elsewhere=True) == [NOT_TYPED]
    added = PYTHON.replace("LIMIT = 3", "LIMIT = 4")
    assert reasons(PYTHON, added, edit=edit, origin=origin, elsewhere=True) == []
