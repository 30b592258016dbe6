"""A model's adaptive tokens draft through the real server, and its text stays what it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_model import ADAPTIVE_TOKENS, SMALL_MODEL
from steady_costs import DTYPE, THREADS, keep_costs

from accel.files.adaptive_tokens import FILE

from .client import Driver

pytestmark = pytest.mark.timeout(300)
Connect = Callable[..., Driver]

TEXT = "".join(
    f"{line}\n"
    for line in (
        "class Stack:",
        "    def __init__(self):",
        "        self.items = []",
        "",
        "    def push(self, item):",
        "        self.items.append(item)",
        "",
        "    def pop(self):",
        "        ",
    )
)
PLACES = [(8, 8), (5, 31), (2, 23)]
"""Lines and characters."""


@pytest.fixture
def settings(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Of a server with a model that learnt adaptive tokens and plans with steady costs."""
    model = tmp_path / "adaptive"
    model.mkdir()
    for file in SMALL_MODEL.iterdir():
        if file.is_file():
            shutil.copy(file, model)
    shutil.copy(ADAPTIVE_TOKENS, model / FILE)
    monkeypatch.setenv("XDG_CACHE_HOME", environment["XDG_CACHE_HOME"])
    keep_costs(model)
    return {"path": str(model), "dtype": DTYPE, "threads": THREADS}


def test_adaptive_tokens_draft_and_change_no_text(
    connect: Connect, first: Driver, workspace: Path, settings: dict[str, Any]
) -> None:
    texts: dict[str, list[str]] = {}
    drafted: dict[str, int] = {}
    uri = (workspace / "stack.py").as_uri()
    for use in ("off", "auto", "two-step"):
        options = {"settings": {"model": {**settings, "adaptiveTokens": use}}}
        driver = connect(initializationOptions=options)
        driver.open(uri, TEXT)
        for plain in (False, True):
            answers = [
                driver.request(
                    "redraft/explain",
                    {
                        "textDocument": {"uri": uri},
                        "position": {"line": line, "character": character},
                        "plain": plain,
                    },
                    timeout=240,
                )
                for line, character in PLACES
            ]
            texts[f"{use} {plain}"] = [answer["text"] for answer in answers]
            if not plain:
                drafted[use] = sum(answer["sources"].get("adaptive", 0) for answer in answers)
    assert any(texts["off True"])
    assert set(map(tuple, texts.values())) == {tuple(texts["off True"])}
    assert drafted["off"] == 0
    assert drafted["two-step"] > 0
