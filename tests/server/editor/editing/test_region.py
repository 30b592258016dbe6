"""The region of an edit moves with text typed above it and is spoilt by text typed inside."""

from __future__ import annotations

import random

from lsp_server.editor.editing.region import TrackedRegion, whole_lines
from lsp_server.text.documents.document import Document

LINES = [f"line {number} é𝄞\n" for number in range(12)]


def test_random_typing_moves_or_spoils_the_region_and_never_loses_it() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    spoilt = moved = 0
    for number in range(1000):
        document = Document("u", "python", 0, "".join(LINES))
        first = rng.randrange(1, 10)
        last = rng.randrange(first, 11)
        start, end = whole_lines(
            document, document.position(first, 2, "utf-16"), document.position(last, 3, "utf-16")
        )
        region = TrackedRegion(start, end)
        selection = document.between(start, end)
        for _ in range(rng.randrange(1, 5)):
            places = [(rng.randrange(len(document.lines)), rng.randrange(10)) for _ in range(2)]
            places = sorted(places) if rng.random() < 0.3 else [places[0]] * 2
            text = rng.choice(["x", "\n", "a\nb\n", "", "\r\n", "𝄞"])
            region.follow(document.change(*places, text, "utf-16"))
        if region.touched:
            spoilt += 1
        else:
            moved += 1
            where = f"seed {seed}, round {number}"
            assert document.between(region.start, region.end) == selection, where
    assert spoilt > 100
    assert moved > 100


def test_a_selection_is_widened_to_whole_lines() -> None:
    document = Document("u", "python", 0, "abc\r\ndef\nghi")
    start, end = whole_lines(
        document, document.position(0, 2, "utf-16"), document.position(2, 0, "utf-16")
    )
    assert document.between(start, end) == "abc\r\ndef"
