"""``redraft bench``: what a user is told of his own machine and model, with a small model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lsp_server.commands.bench.first_text import KINDS
from lsp_server.commands.bench.typing import (
    TimedRequest,
    TypingTally,
    matches,
    typing_figures,
    typing_places,
)
from lsp_server.commands.cli.main import main

CODE = "".join(
    f"def f{n}(a, b):\n    c = a + {n}\n    d = b * c\n    return c - d\n\n\n" for n in range(40)
)


@pytest.mark.slow
def test_the_page_has_forwards_first_texts_and_both_speeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "code.py").write_text(CODE)
    out = tmp_path / "out.json"
    options = ["--threads", "1", "--file", str(tmp_path / "code.py"), "--json", str(out)]
    assert main(["bench", *options]) == 0
    document = json.loads(out.read_text("utf-8"))
    assert {"1", "8", "64"} <= set(document["forward_ms"]["redraft"])
    assert set(document["first_text_s"]) == {"cold", "warm", "line", "ready"}
    plain, drafted = document["writing"]["redraft, no drafts"], document["writing"]["redraft"]
    assert plain["tokens_per_forward"] <= 1 < drafted["tokens_per_forward"]
    assert plain["tokens"] == drafted["tokens"], "drafts change no text"
    page = capsys.readouterr().out
    assert "no llama.cpp beside it: llama.cpp reads GGUF files alone" in " ".join(page.split())
    assert len(page.splitlines()) < 40, "one page"


@pytest.mark.slow
def test_what_is_known_is_not_computed_again(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = ["--tokens", "900", "--rounds", "2", "--threads", "1", "--json", str(out)]
    assert main(["bench", "first-text", *options]) == 0
    document = json.loads(out.read_text("utf-8"))
    assert {*document["first_text_s"], "ready"} == set(KINDS)
    assert 300 < document["prompt_tokens"] <= document["longest_prompt_tokens"]
    # A process has to import at least, so it is never there at once.
    assert 0.2 < min(document["ready_s_all"]) <= document["ready_s"]
    times = document["first_text_s_all"]
    for known in ("warm", "edited", "restarted"):
        assert min(times[known]) < max(times["cold"])


def test_forwards_are_timed_by_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--threads", "1", "--context", "64", "--seconds", "0.1", "--json"]
    assert main(["bench", "forward", *options]) == 0
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)["forward_ms"]["redraft"]
    assert figures["threads"] == 1
    assert 0 < figures["1"] < figures["64"]


@pytest.mark.parametrize(
    "wrong",
    [
        ["first-text", "--tokens", "0"],
        ["first-text", "--file", "/none"],
        ["forward", "--context", "0"],
        ["forward", "--peer", "llama-cpp"],
        ["typing", "--file", "/none"],
        ["--file", "/none"],
    ],
    ids=" ".join,
)
def test_options_that_cannot_be(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *wrong]) == 1
    said = capsys.readouterr().err
    assert said.startswith("redraft: ")
    assert said.count("\n") == 1


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
