"""Next edits made up from files: what is made, what is due, and that nothing else changes."""

from __future__ import annotations

import ast
import random

import pytest
from text_cases import data_beside

from tests.benchmarks.training import made_histories
from tests.benchmarks.training.made_histories import KINDS, ModuleSource, made_history
from tests.benchmarks.training.samples.code import CodeFile
from tests.benchmarks.training.samples.next_edits import NextEdit

DATA = data_beside(__file__)

TEXT = DATA["TEXT"]
FILE = CodeFile("repository", "pkg/files.py", TEXT)


def histories(kind: made_histories.Kind, monkeypatch: pytest.MonkeyPatch) -> list[NextEdit]:
    monkeypatch.setattr(made_histories, "KINDS", (kind,))
    made = [made_history(FILE, random.Random(seed)) for seed in range(300)]
    return [one for one in made if one is not None]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
def test_each_kind_is_found_and_told_by_a_history(
    kind: made_histories.Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = histories(kind, monkeypatch)
    assert found
    assert any(one.updated != one.current for one in found)
    for one in found:
        assert 1 <= len(one.recent) <= 3
        assert all(old != new for old, new in one.recent)
        assert one.original == one.current
        assert len(one.current.splitlines()) <= 21


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
def test_the_whole_change_leaves_a_file_that_parses(
    kind: made_histories.Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(60):
        places = kind(ModuleSource(TEXT), random.Random(seed))
        if places and not made_histories._overlap(places):
            ast.parse(made_histories.replaced(TEXT, places))


def test_some_windows_have_nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [made_history(FILE, random.Random(seed)) for seed in range(300)]
    left = [one.updated == one.current for one in made if one is not None]
    assert 0 < sum(left) < len(left) / 3


def test_a_file_that_does_not_parse_has_none() -> None:
    assert made_history(CodeFile("r", "a.py", "def f(:\n"), random.Random(1)) is None
