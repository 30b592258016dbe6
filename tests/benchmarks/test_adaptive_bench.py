"""The adaptive bench: its options and the figures of the paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel.statistics import Statistics
from lsp_server.bench.adaptive import GOALS, NOVEL, _add_figures, _sizes, draw, reached
from lsp_server.bench.measurement import Measurement
from lsp_server.errors import BenchError


def measured(method: str, **counts: int) -> Measurement:
    accepted = counts.pop("adaptive", 0)
    statistics = Statistics(**counts)
    statistics.sources["adaptive"] = accepted
    return Measurement(method, "all", "one", statistics, [1, 2], 2, 1.0)


def test_numbers_of_mask_rows_are_read_and_others_refused() -> None:
    assert _sizes("4,1,4") == [1, 4]
    for text in ("0", "two", "-1,3"):
        with pytest.raises(BenchError, match="--k"):
            _sizes(text)


def test_the_accept_rate_counts_guesses_of_loops_and_of_forwards() -> None:
    figures = {
        "plain": {"forwards": 20, "tokens_per_s": 10.0},
        "sdsat k=2": {"forwards": 10, "tokens_per_s": 15.0},
        "adaptive k=2": {"forwards": 8, "tokens_per_s": 20.0},
    }
    _add_figures(
        figures,
        [
            measured("plain"),
            measured("sdsat k=2", mask_rows=10, adaptive=6),
            measured("adaptive k=2", mask_rows=30, adaptive=8),
        ],
    )
    assert figures["sdsat k=2"]["accept_rate"] == pytest.approx(6 / 10)
    assert figures["adaptive k=2"]["accept_rate"] == pytest.approx(8 / 16)
    assert figures["plain"]["accept_rate"] is None
    assert figures["adaptive k=2"]["speedup"] == pytest.approx(2.0)


def test_figures_three_and_four_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    row = {"accept_rate": 0.5, "tokens_per_s": 12.0}
    figures = {"plain": {"tokens_per_s": 10.0}, "sdsat k=1": row, "adaptive k=1": row}
    assert draw(figures, [1], tmp_path / "plots").stat().st_size > 1000


def test_a_model_as_published_has_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure
    drawn = []
    monkeypatch.setattr(figure, "savefig", lambda found, *_, **__: drawn.append(found))
    row = {"accept_rate": 0.5, "tokens_per_s": 12.0}
    draw({"plain": {"tokens_per_s": 10.0}, "sdsat k=1": row, "sdsat k=4": row}, [1, 4], tmp_path)
    rates, speeds = drawn[0].axes
    assert [text.get_text() for text in rates.get_legend().get_texts()] == ["sdsat"]
    assert [text.get_text() for text in speeds.get_legend().get_texts()] == ["sdsat", "plain"]
    assert list(rates.get_xticks()) == list(speeds.get_xticks()) == [1, 4]


def test_what_must_be_reached_stands_beside_what_was() -> None:
    def row(tokens_per_forward: float) -> dict[str, float]:
        return {"tokens_per_forward": tokens_per_forward, "cases": 4, "identical": 4}

    every = {
        "plain": row(1.0),
        "sdsat k=2": row(1.6),
        "sdsat k=8": row(1.7),
        "adaptive k=2": row(2.4),
        "retrieval 16": row(4.0),
        "combined 16": row(5.0),
    }
    novel = every | {"retrieval 16": row(2.0), "combined 16": row(2.4)}
    found = reached({"methods": every, "groups": {NOVEL: novel}})
    assert {name: figures["value"] for name, figures in found.items()} == pytest.approx(
        {
            "sdsat k=8 / plain": 1.7,
            "adaptive k=2 / sdsat k=2": 1.5,
            f"combined 16 / retrieval 16, {NOVEL}": 1.2,
            "texts equal to plain decoding's": 1.0,
        }
    )
    assert {figures["goal"] for figures in found.values()} == {1.0, *GOALS.values()}
    every["sdsat k=2"]["identical"] = 3
    other = reached({"methods": every, "groups": {}})
    assert other["texts equal to plain decoding's"]["value"] == 0.75
    assert not any("combined" in name for name in other)
