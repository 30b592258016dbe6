"""Percentiles of many times, against the obvious way."""

from __future__ import annotations

import math
import random

from tests.benchmarks.keystrokes.measured_daemon import STEP_S, Histogram


def test_percentiles_are_those_of_the_sorted_times() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    times = [rng.expovariate(200) for _ in range(5000)]
    histogram = Histogram()
    for one in times:
        histogram.add(one)
    told = histogram.as_json()
    ordered = sorted(times)
    for name, percent in (("p50", 50), ("p95", 95), ("p999", 99.9)):
        true = ordered[math.ceil(len(times) * percent / 100) - 1]
        assert 0 <= told[name] - true <= STEP_S, (seed, name)
    assert told["max"] == max(times)
    assert told["count"] == len(times)


def test_nothing_and_clocks_that_go_back() -> None:
    histogram = Histogram()
    assert histogram.as_json() == {"count": 0, "p50": 0.0, "p95": 0.0, "p999": 0.0, "max": 0.0}
    histogram.add(-0.5)
    assert histogram.percentile(99) == 0.0
