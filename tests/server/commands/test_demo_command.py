"""The demo without a model: how it waits, which places it takes, what it prints."""

from __future__ import annotations

import ast
import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import frozen_corpus
import pytest
from rich.console import Console
from text_cases import data_cases

from lsp_server.commands.cli.main import main
from lsp_server.commands.demo import answers, show
from lsp_server.commands.demo.answers import ShownAnswer, daemon_of_its_own, wait_until_ready
from lsp_server.commands.demo.places import BAKERY, bakery_copy, bakery_places, places_in
from lsp_server.editor.agents.daemon_session import DaemonSession
from lsp_server.editor.daemon.address import socket_path
from lsp_server.shared.errors import RedraftError

READY = {"state": "ready", "message": "", "remedy": "", "compiling": ""}
LOADED = {"models": {"completion": {"state": "ready"}}}


class Session(DaemonSession):
    """A daemon that says how far it is."""

    def __init__(self, *told: dict[str, Any]) -> None:
        self._told = iter(told)

    async def request(self, method: str, params: Any) -> Any:
        assert method == "redraft/status"
        return {**READY, **LOADED, **next(self._told)}


def waited(*told: dict[str, Any]) -> list[str]:
    heard: list[str] = []
    asyncio.run(wait_until_ready(Session(*told), heard.append))
    return heard


def test_it_goes_on_once_model_and_index_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LOOK_S", 0.0)
    assert waited(
        {"models": {"completion": {"state": "idle"}}},
        {"state": "loading", "message": "loading the model"},
        {"state": "indexing", "message": "indexing 3 of 14 files"},
        {"compiling": "what drafts edits"},
        {},
    ) == [
        "starting",
        "loading the model",
        "indexing 3 of 14 files",
        "compiling what drafts edits, this once",
    ]


@data_cases()
def test_what_is_missing_is_said(
    told: dict[str, Any], limit_s: float, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "READY_S", limit_s)
    with pytest.raises(RedraftError, match=message):
        waited(told)


def test_the_demo_has_folders_of_its_own_for_a_while() -> None:
    before = dict(os.environ)
    # Its path is short enough for a socket.
    with tempfile.TemporaryDirectory() as folder, daemon_of_its_own(Path(folder)):
        assert socket_path().is_relative_to(folder)
    assert dict(os.environ) == before


def test_the_places_of_the_bakery_are_lines_and_functions_of_it(tmp_path: Path) -> None:
    typing, edits = bakery_places(bakery_copy(tmp_path))
    assert len(typing) >= 4
    assert len(edits) >= 6
    for place in typing:
        whole = place.path.read_text()
        assert whole.startswith(place.before + place.typed)
        assert whole.endswith("\n" + place.after)
        assert place.typed.strip() or place.typed.endswith(" ")
    for edit in edits:
        lines = edit.document.splitlines()[edit.first_line : edit.end_line]
        assert lines[0].lstrip().startswith("def ")
        assert edit.document == edit.path.read_text()
    assert {path.stem for path in BAKERY.iterdir()} == {"orders.py", "prices.py", "stock.py"}


def test_places_of_other_code_are_found_in_it() -> None:
    typing, edits = places_in(frozen_corpus.FOLDER, 5, 6)
    assert (len(typing), len(edits)) == (5, 6)
    assert len({place.path for place in typing}) > 2
    assert {edit.instruction.split()[0] for edit in edits} == {"rename", "return", "delete"}
    for place in typing:
        rest = place.path.read_text()[len(place.before + place.typed) :].split("\n")[0]
        assert rest.strip()
    for edit in edits:
        ast.parse(edit.document)
    assert places_in(frozen_corpus.FOLDER, 5, 6) == (typing, edits)


def test_code_that_is_none_gives_no_places(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text((BAKERY / "stock.py.txt").read_text())
    assert places_in(tmp_path, 3, 3) == ([], [])


def test_wrong_folders_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", str(tmp_path / "none")]) == 1
    assert "is not a folder; name one with Python code" in capsys.readouterr().err
    assert main(["demo", str(tmp_path), "--model", "x"]) == 1
    assert "no Python function to show" in capsys.readouterr().err


def figures(tokens: int, forwards: int, seconds: float, *spans: tuple[str, str]) -> dict[str, Any]:
    shown = [{"text": text, "source": source} for text, source in spans]
    return {"tokens": tokens, "forwards": forwards, "seconds": seconds, "spans": shown}


def printed(*shown: ShownAnswer) -> str:
    console = Console(record=True, width=100, force_terminal=True)
    for answer in shown:
        show.answer(console, answer)
    console.print(show.summary("the bakery", list(shown)))
    return console.export_text(styles=True)


def test_an_answer_shows_tokens_by_source_and_both_times() -> None:
    spans = ("turn ", "model"), ("total\n```", "original")
    drafted, plain = figures(3, 1, 0.1, *spans), figures(3, 3, 0.4, *spans)
    text = printed(ShownAnswer("a.py:3", drafted, plain, "", typed="    re"))
    assert "3 tokens in 1 forwards: 0.10 s, 0.40 s without drafts" in text
    assert "\x1b[33mtotal\x1b[0m" in text
    assert "```" not in text
    assert "4.0" in text


def test_a_rename_without_the_model_and_a_refusal_are_told() -> None:
    nothing = figures(0, 0, 0.0)
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1,1 +1,1 @@\n-x = 1\n+y = 1\n"
    renamed = ShownAnswer("x.py:1, rename x to y", nothing, nothing, "y = 1\n", diff)
    refused = ShownAnswer("x.py:1, do it", {}, {}, "x = 1\n", refusal="the model said nothing")
    text = printed(renamed, refused)
    assert "known from the syntax tree, no model was asked" in text
    assert "--- a/x.py" not in text
    assert "the model said nothing" in text
