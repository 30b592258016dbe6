"""The adaptive bench: its options and the figures of the paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel.execution.statistics import Statistics
from lsp_server.shared.errors import BenchError
from tests.benchmarks.completion.adaptive import (
    BESIDE,
    BESIDE_GOAL,
    GOAL,
    _add_figures,
    _sizes,
    draw,
    reached,
)
from tests.benchmarks.measurement import Measurement


def measured(method: str, **counts: int) -> Measurement:
    accepted = counts.pop("accepted", 0)
    statistics = Statistics(accepted=[accepted], **counts)
    return Measurement(method, "all", "one", statistics, [1, 2], 2, 1.0)


def test_numbers_of_adaptive_tokens_are_read_and_others_refused() -> None:
    assert _sizes("4,1,4") == [1, 4]
    for text in ("0", "two", "-1,3"):
        with pytest.raises(BenchError, match="--k"):
            _sizes(text)


def test_the_accept_rate_counts_guesses_of_loops() -> None:
    """The first drafted token of a loop was read off the text's own row."""
    figures = {
        "plain": {"forwards": 20, "tokens_per_s": 10.0},
        "sdsat k=2": {"forwards": 5, "tokens_per_s": 15.0},
    }
    _add_figures(figures, [measured("plain"), measured("sdsat k=2", draft_forwards=5, accepted=11)])
    assert figures["sdsat k=2"]["accept_rate"] == pytest.approx(6 / 10)
    assert figures["plain"]["accept_rate"] is None
    assert figures["sdsat k=2"]["speedup"] == pytest.approx(1.5)


def test_figures_three_and_four_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure
    drawn, save = [], figure.savefig

    def note(found: object, *args: object, **options: object) -> None:
        drawn.append(found)
        save(found, *args, **options)

    monkeypatch.setattr(figure, "savefig", note)
    row = {"accept_rate": 0.5, "tokens_per_s": 12.0}
    figures = {"plain": {"tokens_per_s": 10.0}, "sdsat k=1": row, "sdsat k=4": row}
    assert draw(figures, [1, 4], tmp_path / "plots").stat().st_size > 1000
    rates, speeds = drawn[0].axes
    assert [text.get_text() for text in rates.get_legend().get_texts()] == ["sdsat"]
    assert [text.get_text() for text in speeds.get_legend().get_texts()] == ["sdsat", "plain"]
    assert list(rates.get_xticks()) == list(speeds.get_xticks()) == [1, 4]


def test_what_must_be_reached_stands_beside_what_was() -> None:
    def row(tokens_per_forward: float) -> dict[str, float]:
        return {"tokens_per_forward": tokens_per_forward, "cases": 4, "identical": 4}

    every = {"plain": row(1.0), "sdsat k=2": row(1.6), "sdsat k=8": row(1.7)}
    every |= {"redraft": row(2.0), BESIDE: row(2.2)}
    found = reached({"methods": every})
    assert {name: figures["value"] for name, figures in found.items()} == pytest.approx(
        {
            "sdsat k=8 / plain": 1.7,
            f"{BESIDE} / redraft": 1.1,
            "texts equal to plain decoding's": 1.0,
        }
    )
    assert {figures["goal"] for figures in found.values()} == {1.0, GOAL, BESIDE_GOAL}
    every["sdsat k=2"]["identical"] = 3
    assert reached({"methods": every})["texts equal to plain decoding's"]["value"] == 0.75
