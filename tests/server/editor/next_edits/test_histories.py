"""Histories of edits: what follows is proposed, all of it, and nothing of what only looks alike."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from next_edit_cases import NextEditCase, next_edit_cases
from seeds import for_each_seed
from typist import Typist

from lsp_server.editor.editing.checks import new_problem
from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.next_edits.finding import edits_to_look_at, next_edits
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

ALONE = [case for case in next_edit_cases() if case.kind != "elsewhere"]


def type_edits(
    typist: Typist, document: Document, case: NextEditCase, pause_s: float = 5
) -> Position:
    """Make the edits of a history; where the cursor is then."""
    cursor = Position(0, 0)
    for line, old, new in case.edits:
        column = document.lines[line].index(old)
        typist.now_s += pause_s
        edit = typist.change(document, (line, column), (line, column + len(old)), new)
        cursor = edit.start
    typist.now_s += 1
    return cursor


@pytest.mark.parametrize("pause_s", [5, 0.5])
@pytest.mark.parametrize("case", ALONE, ids=str)
def test_a_history_comes_to_its_end(case: NextEditCase, pause_s: float) -> None:
    typist = Typist()
    document = typist.open(case.before[case.path], case.language, f"file:///project/{case.path}")
    cursor = type_edits(typist, document, case, pause_s)
    if case.after is None:
        assert typist.next_edits(document, cursor) == []
    else:
        assert typist.take_all(document, cursor) == case.after[case.path]


@pytest.mark.parametrize("case", next_edit_cases("elsewhere"), ids=str)
def test_a_history_comes_to_its_end_in_other_files(case: NextEditCase, tmp_path: Path) -> None:
    for path, text in case.before.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    typist = Typist(str(tmp_path))
    document = typist.open(
        case.before[case.path], case.language, (tmp_path / case.path).as_uri()
    )  # fmt: skip
    cursor = type_edits(typist, document, case)
    found = typist.next_edits(document, cursor)
    texts = dict(case.before)
    for path, before in case.before.items():
        uri = (tmp_path / path).as_uri()
        edits = [one for one in found if one.uri == uri and one.new_text is not None]
        text = Document(uri, "", 0, before) if path != case.path else document
        hunks = [
            TextEdit(text.offset(one.region.start), text.offset(one.region.end), one.new_text)
            for one in edits
        ]
        texts[path] = apply_hunks(text.text, sorted(hunks, key=lambda one: one.start))
    assert texts == case.after


TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


def broken(text: str, rng: random.Random) -> str:
    """A text in which some tokens went, came again or are others."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice([0, 0, 1, 3])):
        place, kind = rng.randrange(len(tokens)), rng.randrange(3)
        tokens[place : place + (kind > 0)] = [rng.choice(tokens)] * (kind < 2)
    return "".join(tokens)


@for_each_seed(range(200))
def test_whatever_is_typed_what_is_proposed_parses_where_the_text_did(seed: int) -> None:
    rng = random.Random(seed)
    case = rng.choice(next_edit_cases())
    typist = Typist()
    document = typist.open(
        broken(case.before[case.path], rng), case.language, f"file:///{case.path}"
    )
    words = [one for one in TOKEN.findall(document.text) if not one.isspace()]
    changes = [(old, new) for _, old, new in case.edits]
    if rng.random() < 0.4:
        old = rng.choice(words)
        others = ["x", "f.g", "(a)", "1", "", f"{old}(", f"{old}.y", f"{old}, z", f"@d\n{old}"]
        changes = [(old, rng.choice(others))] * 2
    for old, new in changes:
        lines = [line for line, text in enumerate(document.lines) if old in text]
        if lines:
            line = rng.choice(lines)
            column = document.lines[line].index(old)
            typist.now_s += 5
            typist.change(document, (line, column), (line, column + len(old)), new)
    edits = edits_to_look_at(typist.history)
    found = sorted(next_edits(edits).edits if edits else (), key=lambda one: (one.start, one.end))
    tree = SyntaxTree.of(document.text, case.language, case.path)
    for one in found:
        text = apply_hunks(document.text, [one])
        after = SyntaxTree.of(text, case.language, case.path)
        assert tree is not None
        assert after is not None
        assert tree.has_errors or not after.has_errors, (case, one)
        assert not new_problem(document.text, text, case.language), (case, one)
