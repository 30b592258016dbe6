"""``typing`` and ``first-text``: what a person waits for, with a small model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lsp_server.commands.bench.options import source_text
from tests.benchmarks.__main__ import main
from tests.benchmarks.first_text import MORE_KINDS
from tests.benchmarks.keystrokes.typist import (
    TimedRequest,
    TypingTally,
    matches,
    typing_figures,
    typing_places,
)

CODE = "".join(
    f"def f{n}(a, b):\n    c = a + {n}\n    d = b * c\n    return c - d\n\n\n" for n in range(40)
)


def test_a_text_of_our_own_is_measured_on() -> None:
    assert typing_places(source_text(None), 4)


@pytest.mark.slow
def test_first_texts_are_timed_by_what_is_known(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = ["--tokens", "900", "--rounds", "2", "--threads", "1", "--json", str(out)]
    assert main(["first-text", *options]) == 0
    document = json.loads(out.read_text("utf-8"))
    assert {*document["first_text_s"], "ready"} == set(MORE_KINDS)
    assert 300 < document["prompt_tokens"] <= document["longest_prompt_tokens"]
    # A process has to import at least, so it is never there at once.
    assert 0.2 < min(document["ready_s_all"]) <= document["ready_s"]
    times = document["first_text_s_all"]
    assert all(len(times[kind]) == 2 for kind in ("cold", "warm", "edited", "restarted"))


def test_a_person_types_the_bodies_of_functions() -> None:
    places = typing_places(CODE, 4)
    assert len(places) == 4
    for place in places:
        assert place.before + place.typed + place.after == CODE
        assert place.typed.startswith("    ")


def test_typing_counts_what_needed_no_model_and_was_right() -> None:
    tally = TypingTally(requests=3, along=2)
    tally.typed = [TimedRequest(1, 2.0, "ab", "ab", True), TimedRequest(2, 4.0, "x", "ab", True)]
    tally.waited = [TimedRequest(3, 30.0, "text", "", False)]
    moments = {"p95": 0.001, "p999": 0.002, "max": 0.003}
    answers = [{"id": n, "seconds": 0.001, "withoutModel": n < 3} for n in (1, 2, 3)]
    measured = {"answers": answers, "loopLate": moments, "loopBusy": moments, "didChange": moments}
    figures = typing_figures(tally, measured)
    assert figures["answered_without_model"] == 0.5
    assert (figures["without_model"], figures["fresh_ms_p50"]) == (2, 30.0)
    assert figures["did_change_ms_p95"] == 1.0


@pytest.mark.parametrize(
    ("text", "typed", "expected"),
    [("a b", "a", True), ("  a", "  ab", True), ("  b", "  ab", False), ("", "a", False)],
)
def test_a_suggestion_matches_by_the_next_character_that_shows(
    text: str, typed: str, expected: bool
) -> None:
    assert matches(text, typed) is expected
