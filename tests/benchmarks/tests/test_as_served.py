"""``as-served``: real servers beside engines in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import main
from tests.benchmarks.as_served.command import Answers, row_of
from tests.benchmarks.as_served.doors import took_part
from tests.benchmarks.as_served.requests import TimedText

SMALL_MODEL = Path(__file__).parents[2] / "data" / "small_model"


def answers(tokens: int, seconds: float, text: str = "x") -> Answers:
    line = Answers()
    line.add([TimedText(text, tokens, 4, 8, seconds, 0.0)])
    return line


def test_a_server_is_compared_with_the_best_number_of_threads() -> None:
    here = {1: answers(100, 1.0), 2: answers(100, 0.5)}
    row = row_of(answers(100, 0.55), here, {0: 2, 1: 1, 2: 2})
    assert (row["here"], row["here_threads"], row["fault"]) == (200.0, 2, "")
    slow = row_of(answers(100, 1.0), here, {0: 1, 1: 1, 2: 2})
    assert (slow["fault"], slow["threads"]) == ("0.50 of the best here", 1)


def test_a_line_of_clients_takes_as_long_as_the_last_of_them() -> None:
    line = Answers()
    line.add([TimedText("", 10, 1, 1, 1.0, 0.0), TimedText("", 30, 1, 1, 2.0, 0.0)])
    assert line.tokens_per_s == 20.0


def test_a_server_that_refuses_all_is_said() -> None:
    assert row_of(Answers(), {1: Answers()}, {0: 1, 1: 1})["unit"] == "refused"


def test_threads_that_only_woke_up_took_no_part() -> None:
    assert took_part({1: 2.0, 2: 1.9, 3: 0.01, 4: 0.0}) == 2


@pytest.mark.slow
def test_a_server_computes_what_an_engine_here_computes(tmp_path: Path) -> None:
    page = tmp_path / "page.json"
    shape = [
        "--doors",
        "server",
        "--starts",
        "1",
        "--after",
        "0",
        "--beside",
        "quiet",
        "--compiled",
    ]
    amount = ["--requests", "2", "--tokens", "12", "--clients", "3"]
    main(["as-served", "--model", str(SMALL_MODEL), *shape, *amount, "--json", str(page)])
    rows = json.loads(page.read_text("utf-8"))["rows"]
    compared = {name: row for name, row in rows.items() if "same_texts" in row}
    assert {name.rpartition(": ")[2] for name in compared} == {
        *("completions", "edits", "next edits", "3 clients"),
    }
    for name, row in compared.items():
        right, _, count = row["same_texts"].partition("/")
        assert right == count, name
        assert row["tokens"] == row["here_tokens"] > 0, name
        assert row["threads"] >= 1, name
