"""The front does not end more often than an editor forgives."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.daemon import front


def test_ends_are_spread_so_that_no_editor_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    ends: list[float] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(front.time, "time", lambda: now)
    monkeypatch.setattr(front.time, "sleep", sleep)
    for _ in range(20):
        now += 1.0
        front._wait_to_be_forgiven(tmp_path / "ends")
        ends.append(now)
    for first in ends:
        within = [end for end in ends if first <= end < first + front.FORGIVING_S]
        assert len(within) <= front.FORGIVEN_EXITS
    assert ends[2] < 1010, "the first ones are told at once"


def test_a_damaged_record_is_no_obstacle(tmp_path: Path) -> None:
    record = tmp_path / "ends"
    record.write_text("nonsense")
    front._wait_to_be_forgiven(record)
    assert float(record.read_text()) > 0
