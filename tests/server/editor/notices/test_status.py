"""What the status says about speed."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from text_cases import data_cases

from accel.errors import NO_MODEL
from lsp_server.commands.cli.status import _page
from lsp_server.editor.notices.reasons import reason_of
from lsp_server.editor.notices.status import NO_FILLING, Performance, _hint, _name, _state
from lsp_server.shared.contract.jobs import JobResult
from lsp_server.shared.contract.status import EngineStatus

RESULT = JobResult("text", [], 12, 3, 0.5, 0.1, {}, "end")


def test_what_drafts_save_is_counted_over_all_completions() -> None:
    performance = Performance()
    assert performance.tokens_per_forward is None
    performance.add(RESULT)
    assert performance.tokens_per_forward == pytest.approx(4.0)
    performance.add(replace(RESULT, tokens=6, seconds=100.0))
    assert performance.tokens_per_forward == pytest.approx(3.0)


@pytest.mark.parametrize(("tokens", "told"), [(100, False), (109, False), (110, True)])
def test_nothing_is_told_of_drafts_that_hardly_save(tokens: int, told: bool) -> None:
    performance = Performance()
    performance.add(replace(RESULT, tokens=tokens, forwards=100))
    assert (performance.tokens_per_forward is not None) == told


def test_times_are_told_where_they_are_asked_for() -> None:
    plain, explained = (_page(a_status(speedup=0.4), explain) for explain in (False, True))
    assert "ms" not in plain
    assert "fast" not in plain
    assert "latency p50 7 ms p95 9 ms" in explained
    assert "0.4 times as fast as plain decoding" in explained


def test_what_is_wrong_with_a_models_prompt_formats_is_said() -> None:
    assert _hint(EngineStatus()) == ""
    wrong = EngineStatus(notice="it lacks <|fim_middle|>")
    assert _hint(wrong) == "about the model: it lacks <|fim_middle|>"
    left = EngineStatus(fills=False, notice="its template is another model's")
    assert "text before the cursor" in _hint(left)
    assert "another model's" in _hint(left)


@data_cases()
def test_an_index_that_is_built_is_told_with_its_files(done: int, total: int, told: str) -> None:
    workspace = SimpleNamespace(state="indexing", done=done, total=total)
    engine = SimpleNamespace(status=EngineStatus("ready"))
    condition: Any = SimpleNamespace(
        engine=engine,
        edit_engine=engine,
        workspaces=[workspace],
        enabled=True,
        paused="",
        inactive="",
    )
    assert _state(condition) == ("indexing", told)


@pytest.mark.parametrize(
    ("engine", "fetching", "told"),
    [
        (EngineStatus("failed", message=NO_MODEL), "", ("inactive", NO_MODEL)),
        (
            EngineStatus("failed", message=NO_MODEL),
            "the model m: 3 of 9",
            ("loading", "the model m: 3 of 9"),
        ),
        (EngineStatus("failed", message="no file"), "the model m: 3 of 9", ("error", "no file")),
    ],
)
def test_a_model_that_is_fetched_is_told_where_there_is_none(
    engine: EngineStatus, fetching: str, told: tuple[str, str]
) -> None:
    condition: Any = SimpleNamespace(
        engine=SimpleNamespace(status=engine),
        edit_engine=SimpleNamespace(status=engine),
        workspaces=[],
        enabled=True,
        paused="",
        inactive="",
        fetching=fetching,
    )
    assert _state(condition) == told


@data_cases()
def test_what_is_wrong_is_a_reason(changes: dict[str, Any], told: str) -> None:
    models = {"completion": {"state": "ready"}}
    status = {"state": "ready", "message": "", "remedy": "", "reason": "", "models": models}
    assert reason_of(status | changes) == told


def a_status(**engine: Any) -> dict[str, Any]:
    """What the daemon says, of one engine."""
    about = {"state": "ready", "message": "", "model": "m", "dtype": "auto", "computed_by": "",
             "server": None, "queue": 0, "requests": 0, "latency_ms_p50": 7, "latency_ms_p95": 9,
             "fills": True, "notice": "", "compiling": "", "speedup": None}  # fmt: skip
    return {"pid": 1, "clients": 0, "uptime_s": 0, "log": "l", "workspaces": [], "acceptance": {},
            "memory": {"held_bytes": 0, "budget_bytes": 0}, "held_back": {},
            "engines": [about | engine]}  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "lines"),
    [
        ({"state": "loading", "message": "loading the model"}, ["loading the model"]),
        ({"state": "failed", "message": "m is damaged"}, ["failed: m is damaged"]),
        ({"state": "ready", "message": ""}, ["ready"]),
        (
            {"state": "ready", "message": "", "fills": False, "notice": "no int8"},
            ["ready", f"note: {NO_FILLING}", "note: no int8"],
        ),
        (
            {"state": "ready", "message": "", "compiling": "what drafts edits"},
            ["ready", "note: what drafts edits is being compiled"],
        ),
    ],
)
def test_the_page_of_the_command_says_how_a_model_stands(
    engine: dict[str, Any], lines: list[str]
) -> None:
    told = [line.strip() for line in _page(a_status(**engine)).splitlines()[2:-1]]
    assert told == [f"engine    m (auto): {lines[0]}", *lines[1:]]


def test_a_model_that_is_not_loaded_yet_has_no_number_format() -> None:
    assert [_name(EngineStatus(model="m", dtype=dtype)) for dtype in ("auto", "Q8_0")] == [
        "m",
        "m Q8_0",
    ]
