"""The laboratory's table of an engine's starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lsp_server.shared.errors import BenchError
from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks.starts import FIGURES, rows_of


def start(seconds: float, text: str = "x") -> dict[str, Any]:
    return {"text": text} | dict.fromkeys(FIGURES, seconds)


def test_checkouts_are_beside_each_other_by_their_middle_and_least() -> None:
    rows = rows_of({"here": [start(3), start(1), start(2)], "beside": [start(5), start(9)]})
    assert [(name, row["ready_s"]) for name, row in rows.items()] == [
        ("here, median", 2),
        ("here, least", 1),
        ("beside, median", 7),
        ("beside, least", 5),
    ]


def test_a_checkout_that_writes_another_text_is_no_comparison() -> None:
    with pytest.raises(BenchError, match="different texts"):
        rows_of({"here": [start(1)], "beside": [start(1, "y")]})


def test_a_real_start_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(Path(__file__).parents[2] / "data" / "small_model")
    assert benchmarks.main(["starts", "--model", model, "--starts", "1"]) == 0
    assert "ready_s" in capsys.readouterr().out


def test_a_start_that_fails_says_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert benchmarks.main(["starts", "--model", str(tmp_path / "none.gguf"), "--starts", "1"])
    assert "there is nothing of that name" in capsys.readouterr().err
