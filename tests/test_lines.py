"""The ceilings of the product: they fall alone, and what is above them is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lines import Figures, faults, lowered
from tests.words import stumbling_shares

FIGURES = {"lines": 100.0, "empty names": 0.531}


@pytest.mark.parametrize(
    ("ceilings", "before", "words"),
    [
        (FIGURES, [FIGURES], []),
        ({"lines": 120.0, "empty names": 1.0}, [], []),
        ({"lines": 99.0, "empty names": 1.0}, [], ["lines: 100 is above the ceiling of 99"]),
        ({"lines": 100.0, "empty names": 0.5}, [], ["empty names: 0.531 is above"]),
        (
            {"lines": 101.0, "empty names": 1.0},
            [{"lines": 105.0, "empty names": 1.0}, {"lines": 100.0}, {"lines": 110.0}],
            ["lines: the ceiling was 100 before, and may only fall"],
        ),
        ({"lines": 100.0}, [FIGURES], ["empty names: the ceiling was 0.531 before"]),
    ],
)
def test_faults_name_what_is_above_and_what_rose(
    ceilings: Figures, before: list[Figures], words: list[str]
) -> None:
    messages = faults(FIGURES, ceilings, before)
    assert len(messages) == len(words)
    assert all(word in message for word, message in zip(words, messages, strict=True))


def test_lowering_never_raises_and_leaves_no_fault() -> None:
    ceilings = lowered(FIGURES, {"lines": 99.0, "empty names": 1.0})
    assert ceilings == {"lines": 99.0, "empty names": 0.54}
    assert lowered(FIGURES, {"lines": 120.0, "empty names": 0.54}) == {
        "lines": 100.0,
        "empty names": 0.54,
    }


def test_shares_count_docstrings_and_bound_names(tmp_path: Path) -> None:
    source = '''"""What is in here."""
def first(place, _):
    """Return so many lines."""
    at = place
    for node in at: print(node)
def second(): pass
'''
    file = tmp_path / "module.py"
    file.write_text(source, encoding="utf-8")
    assert stumbling_shares([file]) == {
        "question words": 50.0,
        "loose phrases": 50.0,
        "empty names": pytest.approx(200 / 3),
    }
