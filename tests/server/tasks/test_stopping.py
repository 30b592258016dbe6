"""Where a completion ends."""

from __future__ import annotations

import pytest

from lsp_server.tasks.completion.stopping import MAX_LINES, block, single_line

INSIDE = "def f():\n    "


def ended(prefix: str, text: str) -> str | None:
    """The text cut by the rule, asked after every character as the engine asks; None: not cut."""
    rule = block(prefix)
    for end in range(1, len(text) + 1):
        if (cut := rule(text[:end])) is not None:
            return text[:cut]
    return None


@pytest.mark.parametrize(
    ("text", "cut"),
    [("a = 1\nb", "a = 1"), ("a\r\nb", "a"), ("\n    a\nb", "\n    a"), ("no end", None)],
)
def test_a_single_line_ends_at_its_end(text: str, cut: str | None) -> None:
    place = single_line(text)
    assert (None if place is None else text[:place]) == cut


@pytest.mark.parametrize(
    ("prefix", "text", "cut"),
    [
        (INSIDE, "a = 1\n    return a\n\nclass B:", "a = 1\n    return a"),
        (INSIDE, "a = 1\ndef g():", "a = 1"),
        (INSIDE, "if a:\n        b()\n    c()\n", None),
        (INSIDE, "call(\n        1,\n    )\n    x", None),
        ("x = {\n    ", "1: 2,\n}\ny = 3", "1: 2,\n}"),
        ("", "import os\nimport sys\n", None),
        ("", "a = 1\n\n\nb = 2", "a = 1"),
        ("\t", "a\n\tb\nc", "a\n\tb"),
        ("    if a:", "\n        b()\n    c()\nd", "\n        b()\n    c()"),
    ],
)
def test_a_block_ends_where_it_is_indented_less(prefix: str, text: str, cut: str | None) -> None:
    assert ended(prefix, text) == cut


def test_a_block_is_not_endless() -> None:
    text = "".join(f"line{n}()\n    " for n in range(100))
    found = ended(INSIDE, text)
    assert found is not None
    assert len(found.split("\n")) == MAX_LINES
