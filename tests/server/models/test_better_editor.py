"""Which model is named where the one at hand did not make an edit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsp_server.models import speed
from lsp_server.models.better_editor import GOOD_PERCENT, better_editor, smallest_good
from lsp_server.models.card import Speed
from lsp_server.models.fetched import models_folder
from lsp_server.models.manifest import DEFAULT_FILE, EditFigure, OfferedModel, read_manifest

KNOWN = {model.name: model for model in read_manifest()}
QUICK, SLOW = Speed(1.0, 20.0, measured=False), Speed(9.0, 2.0, measured=False)


@pytest.fixture(autouse=True)
def home(bare_home: Path) -> Path:
    return bare_home


def model(name: str, percent: float, nbytes: int, speed: Speed | None = QUICK) -> OfferedModel:
    """One of the list, with another figure, size and speed."""
    known = KNOWN["qwen2.5-coder-1.5b-instruct"]
    figure = EditFigure(percent, "a test", "https://example.org") if percent else None
    return replace(known, name=name, edit_figure=figure, nbytes=nbytes, speed=speed)


SMALL, MIDDLE, LARGE = model("small", 30, 1), model("middle", 55, 2), model("large", 60, 3)
UNKNOWN, STILL = model("unknown", 0, 1), model("still", 55, 1, SLOW)
LIMITED = replace(model("limited", 90, 1), terms="no commercial use")
HUGE = replace(model("huge", 90, 1 << 50))
UNRATED = model("unrated", 90, 1, None)


@pytest.mark.parametrize(
    ("models", "current", "name"),
    [
        ([SMALL, MIDDLE, LARGE], 0, "middle"),
        ([LARGE, MIDDLE, SMALL], 30, "middle"),
        ([SMALL, MIDDLE, LARGE], 55, "large"),
        ([SMALL, MIDDLE, LARGE], 60, ""),
        ([SMALL], 0, "small"),
        ([SMALL], 30, ""),
        ([SMALL, UNKNOWN], 0, "small"),
        ([UNKNOWN], 0, ""),
        ([STILL, SMALL], 0, "small"),
        ([LIMITED, SMALL], 0, "small"),
        ([HUGE, SMALL], 0, "small"),
        ([UNRATED, SMALL], 0, "small"),
        ([SMALL, model("second", 40, 9)], 0, "second"),
        ([], 0, ""),
    ],
)
def test_the_smallest_that_edits_well_here_is_named(
    models: list[OfferedModel], current: float, name: str
) -> None:
    found = smallest_good(models, current)
    assert (found.name if found else "") == name


def test_every_figure_of_the_list_names_its_source() -> None:
    figures = {name: one.edit_figure for name, one in KNOWN.items() if one.edit_figure}
    assert any(figure.percent >= GOOD_PERCENT for figure in figures.values())
    for name, figure in figures.items():
        assert "edit" in KNOWN[name].does
        assert 0 < figure.percent < 100
        assert figure.test
        assert figure.source.startswith("https://")


@pytest.fixture
def rated_at(monkeypatch: pytest.MonkeyPatch) -> dict[str, Speed]:
    """Speeds by name; a model that is missing is slow."""
    speeds: dict[str, Speed] = {}
    monkeypatch.setattr(
        speed, "rated", lambda model: replace(model, speed=speeds.get(model.name, SLOW))
    )
    monkeypatch.setattr(OfferedModel, "fits", lambda *_: True)
    return speeds


def test_the_advice_has_figure_size_speed_and_one_command(rated_at: dict[str, Speed]) -> None:
    assert better_editor(f"/models/{DEFAULT_FILE}") is None, "nothing is quick enough"
    rated_at["qwen2.5-coder-1.5b-instruct"] = QUICK
    better = better_editor(f"/models/{DEFAULT_FILE}")
    assert better is not None
    assert better.advice == (
        "qwen2.5-coder-1.5b-instruct does more of such edits: 31.6 % of Aider's 133 code edits, as "
        "published (1.1 GB, about 20 tokens/s here); `redraft models get "
        "qwen2.5-coder-1.5b-instruct --for edits` fetches and chooses it"
    )
    rated_at["qwen2.5-coder-7b-instruct"] = QUICK
    better = better_editor(DEFAULT_FILE)
    assert better is not None
    assert better.model.name == "qwen2.5-coder-7b-instruct"
    assert better_editor(KNOWN["qwen2.5-coder-7b-instruct"].file) is None
    assert better_editor("/models/my-own.gguf") is None, "nothing is known of it"


def test_one_that_is_here_is_only_chosen(rated_at: dict[str, Speed]) -> None:
    rated_at["qwen2.5-coder-1.5b-instruct"] = QUICK
    models_folder().mkdir(parents=True)
    (models_folder() / KNOWN["qwen2.5-coder-1.5b-instruct"].file).write_bytes(b"")
    better = better_editor(DEFAULT_FILE)
    assert better is not None
    assert "`redraft models use qwen2.5-coder-1.5b-instruct --for edits` chooses" in better.advice
