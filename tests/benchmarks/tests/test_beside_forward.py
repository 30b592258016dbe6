"""``beside-forward``: which gaps between forwards count."""

from __future__ import annotations

import pytest

from lsp_server.shared.errors import BenchError
from tests.benchmarks.team.beside_forward import MeasuredForward, figures

ONE, BOTH = frozenset({1}), frozenset({1, 2})


def test_gaps_between_forwards_of_the_same_requests_count() -> None:
    forwards = [
        MeasuredForward(0.0, 1.0, 64, ONE, is_prompt=True),
        MeasuredForward(1.5, 2.0, 3, ONE, is_prompt=False),
        MeasuredForward(2.25, 3.0, 3, ONE, is_prompt=False),
        MeasuredForward(9.0, 10.0, 8, BOTH, is_prompt=False),
        MeasuredForward(10.5, 12.0, 4, BOTH, is_prompt=False),
        MeasuredForward(15.0, 16.0, 1, ONE, is_prompt=False),
    ]
    found = figures(forwards)
    assert found["forwards"] == 2
    assert found["rows"] == pytest.approx((3 + 8) / 2)
    assert found["forward_ms"] == pytest.approx(1000 * (0.5 + 1.0) / 2)
    assert found["beside_ms"] == pytest.approx(1000 * (0.25 + 0.5) / 2)
    assert found["request_ms"] == pytest.approx(1000 * (0.25 + 0.5) / 3)


def test_without_such_gaps_it_says_what_to_do() -> None:
    with pytest.raises(BenchError, match="--tokens"):
        figures([MeasuredForward(0.0, 1.0, 1, ONE, is_prompt=False)])
