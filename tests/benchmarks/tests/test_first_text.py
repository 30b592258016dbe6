"""``tests.benchmarks first-text`` tells what a document that is known saves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.forwards.first_text import KINDS


def test_what_is_known_is_not_computed_again(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = ["--tokens", "900", "--rounds", "2", "--threads", "1", "--json", str(out)]
    assert main(["first-text", *options]) == 0
    document = json.loads(out.read_text("utf-8"))
    assert set(document["first_text_s"]) == set(KINDS)
    assert 300 < document["prompt_tokens"] <= document["longest_prompt_tokens"]
    # A process has to import at least, so it is never there at once.
    assert 0.2 < min(document["ready_s_all"]) <= document["ready_s"]
    times = document["first_text_s_all"]
    for known in ("warm", "edited", "restarted"):
        assert min(times[known]) < max(times["cold"])


@pytest.mark.parametrize("wrong", [["--tokens", "0"], ["--rounds", "0"], ["--file", "/none"]])
def test_options_that_cannot_be(wrong: list[str]) -> None:
    assert main(["first-text", *wrong]) != 0
