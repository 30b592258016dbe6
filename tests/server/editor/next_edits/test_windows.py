"""Windows around the cursor: as large as the machine computes them while somebody waits."""

from __future__ import annotations

import random

import pytest

from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.windows import BYTES_PER_TOKEN, FEWEST_LINES, Window, window_at
from lsp_server.tasks.next_edits.formats import FORMATS, NextEditFormat
from lsp_server.text.documents.document import Document, Position

LINES = [f"value_of_{n} = compute({n}, {n + 1})\n" for n in range(60)]


def window(
    fmt: NextEditFormat, at: int, most_tokens: int, recent: tuple[RecordedEdit, ...] = ()
) -> Window:
    document = (
        recent[0].document if recent else Document("file:///a.py", "python", 1, "".join(LINES))
    )
    found = window_at(
        *(document, Position(at, 0), fmt, "a.py", recent, {document.uri: "a.py"}),
        is_typing=False,
        most_tokens=most_tokens,
    )
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["redraft", "sweep-a", "zeta-1"])
def test_a_slow_machine_is_asked_for_fewer_lines_around_the_cursor(name: str) -> None:
    fmt = FORMATS[name]
    rng = random.Random(7)
    for _ in range(200):
        at, most = rng.randrange(len(LINES)), rng.randrange(50, 1200)
        whole, part = window(fmt, at, 0), window(fmt, at, most)
        assert part.cursor is not None
        assert part.first + part.cursor[0] == at
        assert set(part.lines) <= set(whole.lines)
        assert LINES[at].rstrip("\n") in part.lines
        is_affordable = fmt.window_copies * len(part.text) <= most * BYTES_PER_TOKEN
        assert is_affordable or len(part.lines) == min(FEWEST_LINES, len(whole.lines))
        larger = window(fmt, at, most + 200)
        assert len(part.lines) <= len(larger.lines) <= len(whole.lines)
        assert part == whole or len(part.lines) < len(whole.lines)


def test_what_comes_below_the_cursor_stays_longer_than_what_stands_above_it() -> None:
    small = window(FORMATS["redraft"], 30, 1)
    assert (small.first, len(small.lines)) == (28, FEWEST_LINES)
    assert window(FORMATS["redraft"], 30, 10_000).lines == window(FORMATS["redraft"], 30, 0).lines


def test_the_last_edit_takes_its_share_and_earlier_ones_do_not() -> None:
    document = Document("file:///a.py", "python", 1, "".join(LINES))
    long = RecordedEdit(document, 2, LINES[:9], LINES[2:12], 0.0)
    short = RecordedEdit(document, 30, ["x\n"], [LINES[30]], 0.0)
    fmt = FORMATS["redraft"]
    alone = len(window(fmt, 30, 500, (short,)).lines)
    assert len(window(fmt, 30, 500, (short, long)).lines) == alone
    assert len(window(fmt, 30, 500, (long, short)).lines) < alone
