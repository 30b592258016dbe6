"""Where a completion ends."""

from __future__ import annotations

from text_cases import data_cases

from lsp_server.tasks.completion.stopping import MAX_LINES, block, single_line

INSIDE = "def f():\n    "


def ended(prefix: str, text: str) -> str | None:
    """The text cut by the rule, asked after every character as the engine asks; None: not cut."""
    rule = block(prefix)
    for end in range(1, len(text) + 1):
        if (cut := rule(text[:end])) is not None:
            return text[:cut]
    return None


@data_cases()
def test_a_single_line_ends_at_its_end(text: str, cut: str | None) -> None:
    place = single_line(text)
    assert (None if place is None else text[:place]) == cut


@data_cases()
def test_a_block_ends_where_it_is_indented_less(prefix: str, text: str, cut: str | None) -> None:
    assert ended(prefix, text) == cut


def test_a_block_is_not_endless() -> None:
    text = "".join(f"line{n}()\n    " for n in range(100))
    found = ended(INSIDE, text)
    assert found is not None
    assert len(found.split("\n")) == MAX_LINES
