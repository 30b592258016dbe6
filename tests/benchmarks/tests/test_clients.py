"""``clients``: real servers, asked at random times."""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from pathlib import Path

import psutil
import pytest

from lsp_server.shared.errors import BenchError
from tests.benchmarks.__main__ import main
from tests.benchmarks.team.shared_forwards import (
    MeasuredAnswer,
    MeasuredServer,
    figures,
    peer_figures,
)

SMALL_MODEL = Path(__file__).parents[2] / "data" / "small_model"


def server() -> MeasuredServer:
    return MeasuredServer("", "", psutil.Process(), 0)


def test_times_and_texts_are_those_of_the_seed() -> None:
    lines = server().arrivals(20.0, 50.0, seed=3)
    assert lines == server().arrivals(20.0, 50.0, seed=3)
    assert lines != server().arrivals(20.0, 50.0, seed=4)
    times = [request.due_s for line in lines for request in line]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(times) == 1000
    assert times == sorted(times)
    assert times[-1] < 50.0
    # Of a Poisson process, whose gaps are spread as far as they are long.
    assert 0.043 < statistics.mean(gaps) < 0.057
    assert 0.04 < statistics.stdev(gaps) < 0.06


def test_refused_requests_are_counted_and_not_waited_for() -> None:
    end = {"tokens": 8, "prompt_tokens": 100, "prompt_tokens_reused": 90}
    found = figures(
        [MeasuredAnswer(0.2, end), MeasuredAnswer(0.5, {}), MeasuredAnswer(0.4, end)], 4.0, 3.0
    )
    assert (found["requests"], found["refused"]) == (3, 1)
    assert found["wait_s"] == pytest.approx(0.3)
    assert found["wait_s_p95"] == 0.4
    assert found["tokens_per_s"] == 4.0
    assert found["cpu_s"] == 1.0
    with pytest.raises(BenchError, match="fewer a second"):
        figures([MeasuredAnswer(0.5, {})], 1.0, 1.0)


def test_a_peer_writes_as_much_after_the_same_texts() -> None:
    asked = []

    class Peer:
        def call(self, method: str, prompts: list[list[list[int]]], tokens: int) -> object:
            asked.append((method, [len(line) for line in prompts], tokens))
            return {"waits": [0.5, 1.5], "seconds": 2.0, "tokens": 2 * tokens}

    lines = server().clients(2, 1)
    ours = {"tokens": 20.4, "tokens_per_s": 80.0, "reused": 90, "prompt_tokens": 100}
    found = peer_figures(Peer(), str(SMALL_MODEL), lines, ours)  # type: ignore[arg-type]
    assert asked == [("answer", [1, 1], 1), ("answer", [1, 1], 20)]
    assert (found["tokens_per_s"], found["wait_s"], found["times"]) == (20.0, 1.0, 4.0)


@pytest.mark.long
def test_two_programs_are_asked_for_the_same(tmp_path: Path) -> None:
    page = tmp_path / "page.json"
    program = str(Path(sys.executable).with_name("redraft"))
    common = ["--model", str(SMALL_MODEL), "--program", program, "--json", str(page)]
    how = ["--prompts", "computed", "--rate", "8", "--seconds", "1", "--tokens", "4", "--seed", "5"]
    assert main(["clients", *common, *how]) == 0
    rows = json.loads(page.read_text("utf-8"))["rows"]
    this = rows["this: computed prompts, 8.0 requests/s"]
    other = rows["other: computed prompts, 8.0 requests/s"]
    assert this["requests"] == other["requests"] == 8
    assert this["prompt_tokens"] == other["prompt_tokens"] > 100
    assert this["reused"] > 0.9 * this["prompt_tokens"]
    assert 0 < this["wait_s_p50"] <= this["wait_s_p95"]
