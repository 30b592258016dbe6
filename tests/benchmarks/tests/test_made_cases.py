"""Text that no datastore knows, and the ratio of interleaved pairs."""

from __future__ import annotations

import pytest

from accel.execution.statistics import Statistics
from tests.benchmarks import report
from tests.benchmarks.made_cases import CASES, MADE, made_cases
from tests.benchmarks.measurement import Measurement, pair_ratio


@pytest.mark.parametrize("kind", MADE)
def test_made_cases_are_the_same_for_a_seed_and_differ_between_seeds(kind: str) -> None:
    cases = made_cases(kind, None, seed=3)
    assert cases == made_cases(kind, None, seed=3)
    assert cases != made_cases(kind, None, seed=4)
    assert len({case.id for case in cases}) == len(cases) == CASES
    assert len({case.reference for case in cases}) == CASES
    assert len(made_cases(kind, 5, seed=3)) == 5
    for case in cases:
        assert len(case.reference) > 100
        assert case.prefix.endswith("\n")
        assert case.repository is None
        assert not case.suffix


def test_random_text_repeats_nothing() -> None:
    words = " ".join(case.reference for case in made_cases("random", None, 0)).split()
    long = [word for word in words if len(word) > 3]
    assert len(set(long)) == len(long)


def test_prose_is_no_code() -> None:
    for case in made_cases("prose", None, 0):
        lines = (case.prefix + case.reference).splitlines()
        assert not any(line.startswith((" ", ">>>")) for line in lines)
        assert sum(" the " in f" {line} " for line in lines) > 3


def measured(method: str, decode_s: float, group: str = "a", tokens: int = 10) -> Measurement:
    statistics = Statistics(tokens=tokens, forwards=tokens, decode_s=decode_s, prefill_s=0.5)
    return Measurement(method, group, "case", statistics, [], 0, wall_s=1.0, prompt_s=0.25)


def test_pairs_by_hand() -> None:
    plain = [measured("plain", seconds) for seconds in (1.0, 2.0, 4.0)]
    ours = [measured("ours", seconds) for seconds in (1.1, 1.0, 2.0)]
    assert pair_ratio(ours, plain) == pytest.approx(0.5)
    twice = [measured("ours", 1.0, tokens=20)]
    assert pair_ratio(twice, [measured("plain", 1.0)]) == pytest.approx(0.5)
    assert pair_ratio([], []) == 0


def test_pairs_and_whole_times_of_a_document() -> None:
    measurements = [
        *(measured("plain", 1.0, "a"), measured("ours", 0.5, "a")),
        *(measured("plain", 1.0, "b"), measured("ours", 2.0, "b")),
    ]
    document = report.results(measurements, {"away": "not installed"})
    report.add_pairs(document, measurements, "plain")
    report.add_whole_times(document, "plain")
    ours = document["methods"]["ours"]
    assert ours["pair_ratio"] == pytest.approx(1.25)
    assert document["groups"]["a"]["ours"]["pair_ratio"] == pytest.approx(0.5)
    assert document["methods"]["plain"]["pair_ratio"] == 1
    # Two cases: prompts 0.5 s, prefill 1 s, decoding 2.5 s; plain decodes in 2 s.
    assert (ours["prompt_s"], ours["generation_s"], ours["total_s"]) == (0.5, 3.5, 4.0)
    assert ours["total_speedup"] == pytest.approx(3.5 / 4.0)
    assert document["methods"]["away"] == {"unavailable": "not installed"}
