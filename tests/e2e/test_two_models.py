"""Suggestions by one model and edits by another, in one editor."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_model import SMALL_MODEL

from .client import Driver, command, inline

pytestmark = pytest.mark.slow

FUNCTION = "def total(prices):\n    result = sum(prices)\n    return \n"
Connect = Callable[..., Driver]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another model, which writes edits as the first one does."""
    folder = tmp_path / "other"
    shutil.copytree(SMALL_MODEL, folder, ignore=shutil.ignore_patterns("draft"))
    return folder


def engines(environment: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The daemon's engines by model, as ``redraft status`` tells them."""
    told = json.loads(command(environment, "status", "--json").stdout)
    return {engine["model"]: engine for engine in told["engines"]}


def edited(driver: Driver, uri: str) -> dict[str, Any]:
    """The answer to a request for an edit of the whole function."""
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 11}}
    edit = {"textDocument": {"uri": uri, "version": 1}, "range": where}
    asked = {**edit, "instruction": "add type hints"}
    return driver.answer(driver.start("redraft/edit", asked), timeout=240)


def test_each_purpose_is_served_by_its_own_model(
    connect: Connect, environment: dict[str, str], workspace: Path, other: Path
) -> None:
    settings = {"edit": {"model": str(other)}}
    driver = connect(initializationOptions={"settings": settings})
    uri = (workspace / "priced.py").as_uri()
    driver.open(uri, FUNCTION)
    told = driver.request("redraft/status", {})
    assert told["editModel"].startswith(str(other))
    assert not told["model"].startswith(str(other))
    assert told["models"]["edits"]["because"] == "redraft.edit.model"
    before = engines(environment)
    answer = driver.request("textDocument/inlineCompletion", inline(uri, 2, 11), 120)
    assert isinstance(answer["items"], list)
    made = edited(driver, uri)
    assert "result" in made, made
    after = engines(environment)
    others = [name for name in before if name != str(other)]
    (completing,) = (name for name in others if after[name]["requests"] > before[name]["requests"])
    assert after[str(other)]["requests"] == 1
    assert after[str(other)]["pid"] not in (None, after[completing]["pid"])
