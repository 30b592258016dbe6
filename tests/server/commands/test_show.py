"""What the demo and `redraft complete` print."""

from __future__ import annotations

from accel.draft_tree import Source
from lsp_server.commands.demo.show import SOURCE_STYLES


def test_every_source_has_a_colour_of_its_own() -> None:
    assert set(SOURCE_STYLES) == {source.name.lower() for source in Source}
    assert len(set(SOURCE_STYLES.values())) == len(Source)
