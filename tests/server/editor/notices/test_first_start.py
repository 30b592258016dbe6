"""What an editor is offered where no model is chosen."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types

from lsp_server.editor.notices import first_start
from lsp_server.editor.notices.first_start import CHOOSE, FETCH, NOT_NOW, offer_models, tell_once
from lsp_server.editor.protocol.client_features import ClientFeatures
from lsp_server.models.choices import read_choices
from lsp_server.models.progress import COMPILING
from lsp_server.models.setup_question import SetupQuestion
from lsp_server.shared.errors import RedraftError


class Editor:
    """Stands for the server of an editor whose user presses one button, closes the message (None),
    or goes away (an error)."""

    def __init__(self, pressed: str | BaseException | None, answer: Path) -> None:
        self.pressed, self.shown, self.sent = pressed, list[Any](), list[Any]()
        self.changed, self.fetching = 0, list[str]()
        self.protocol: Any = self
        self.features = ClientFeatures(work_done_progress=True)
        self.hub = SimpleNamespace(
            question=SetupQuestion(answer),
            choices_changed=lambda: setattr(self, "changed", 1),
            set_fetching=self.fetching.append,
        )

    async def ask(self, method: str, params: Any) -> Any:
        self.sent.append((method, params))
        if method != "window/showMessageRequest":
            return None
        assert not self.hub.question.is_open, "one editor asks at a time"
        if isinstance(self.pressed, BaseException):
            raise self.pressed
        return {"title": self.pressed} if self.pressed else None

    def tell(self, method: str, params: Any) -> None:
        self.sent.append((method, params))

    def show_warning(self, message: str) -> None:
        self.shown.append(message)

    def progress(self) -> list[Any]:
        return [params["value"] for method, params in self.sent if method == "$/progress"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_the_default_is_fetched_with_progress_and_chosen(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetched(name: str, report: Any) -> Path:
        assert name == "default"
        assert not editor.hub.question.is_open, "no other editor asks meanwhile"
        report("fetching", 49_000_000, 98_000_000)
        report(COMPILING, 1, 2)
        report("checking", 0, 98_000_000)
        report(COMPILING, 0, 3)
        return home / "default.gguf"

    monkeypatch.setattr(first_start, "fetch_in_process", fetched)
    editor: Any = Editor(FETCH, home / "answer")
    asyncio.run(offer_models(editor))
    assert read_choices().completion == str(home / "default.gguf")
    assert editor.changed
    kinds = [(one["kind"], one.get("percentage"), one.get("message")) for one in editor.progress()]
    assert kinds[1] == ("report", 25, "fetching, 25 %")
    assert [percent for _, percent, _ in kinds[1:-1]] == [25, 45, 45, 45], "one bar, never back"
    assert kinds[-1][0] == "end"
    assert editor.fetching == [
        "fetching the model default",
        "the model default: fetching, 25 %",
        "the model default: compiling, 45 %",
        "the model default: checking, 45 %",
        "the model default: compiling, 45 %",
        "",
    ]
    asyncio.run(offer_models(editor))
    assert [method for method, _ in editor.sent].count("window/showMessageRequest") == 1


def test_who_said_yes_before_there_was_a_server_is_not_asked_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fetched(name: str, report: Any) -> Path:
        return home / f"{name}.gguf"

    monkeypatch.setattr(first_start, "fetch_in_process", fetched)
    editor: Any = Editor(NOT_NOW, home / "answer")
    options = {"redraft": {"chooseModel": True, "fetchModel": True}}
    params = types.InitializeParams(types.ClientCapabilities(), initialization_options=options)
    editor.features = ClientFeatures.of(params)
    asyncio.run(offer_models(editor))
    assert read_choices().completion == str(home / "default.gguf")
    assert "window/showMessageRequest" not in [method for method, _ in editor.sent]


def test_a_fetch_that_fails_is_told_and_nothing_is_chosen(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failed(name: str, report: Any) -> Path:
        raise RedraftError("the index does not answer; try again")

    monkeypatch.setattr(first_start, "fetch_in_process", failed)
    editor: Any = Editor(FETCH, home / "answer")
    asyncio.run(offer_models(editor))
    assert editor.shown == ["Redraft: the index does not answer; try again"]
    assert (read_choices().completion, editor.changed) == ("", 0)
    assert editor.progress()[-1]["kind"] == "end"
    assert editor.fetching[-1] == ""
    assert editor.hub.question.is_open, "whoever wanted the model is asked again"


@pytest.mark.parametrize(("pressed", "told"), [(CHOOSE, 1), (NOT_NOW, 0)])
def test_an_editor_that_lists_no_models_is_told_the_command(
    home: Path, pressed: str, told: int
) -> None:
    editor: Any = Editor(pressed, home / "answer")
    asyncio.run(offer_models(editor))
    assert [("redraft models use" in one) for one in editor.shown] == [True] * told


@pytest.mark.parametrize(
    ("pressed", "told"), [(CHOOSE, ["redraft/chooseModel"]), (NOT_NOW, []), (None, [])]
)
def test_the_offer_is_made_once(home: Path, pressed: str | None, told: list[str]) -> None:
    answer = home / "state" / "setup.json"
    editor: Any = Editor(pressed, answer)
    editor.features = ClientFeatures(choose_model=True)
    assert editor.hub.question.is_open
    asyncio.run(offer_models(editor))
    asyncio.run(offer_models(editor))
    assert [method for method, _ in editor.sent] == ["window/showMessageRequest", *told]
    assert editor.shown == []
    assert not SetupQuestion(answer).is_open, "nor after a restart"


def test_an_editor_that_went_away_gave_no_answer(home: Path) -> None:
    editor: Any = Editor(asyncio.CancelledError(), home / "answer")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(offer_models(editor))
    assert editor.hub.question.is_open
    assert SetupQuestion(home / "answer").is_open


def test_nothing_is_offered_where_no_answer_can_be_kept() -> None:
    editor: Any = Editor(NOT_NOW, Path("unused"))
    editor.hub.question = SetupQuestion()
    asyncio.run(offer_models(editor))
    assert editor.sent == []


@pytest.mark.parametrize(
    ("hours_ago", "told"), [(None, 1), (0, 0), (1, 0), (23, 0), (25, 1), (72, 1), (-5, 1)]
)
def test_that_there_is_no_model_is_told_once_a_day(
    home: Path, hours_ago: float | None, told: int
) -> None:
    """Whichever server or editor told it; a clock that was wrong silences nobody."""
    if hours_ago is not None:
        tell_once(Editor("", home / "answer"))  # type: ignore[arg-type]
        then = time.time() - 3600 * hours_ago
        os.utime(home / "no-model-told", (then, then))
    for _restart in range(3):
        editor: Any = Editor("", home / "answer")
        tell_once(editor)
        assert len(editor.shown) == told
        told = 0


def test_where_it_cannot_be_kept_it_is_told_all_the_same(home: Path) -> None:
    (home / "file").write_text("no folder")
    editor: Any = Editor("", home / "file" / "answer")
    tell_once(editor)
    assert len(editor.shown) == 1
