"""The gate through the real processes: what is sure is shown, the rest when it is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from .client import Driver, inline
from .conftest import profile

TEXT = """from shapes import Rectangle, scale


def double(rectangle):
    width = rectangle.width * 2
    height = rectangle.hei
    area = wi
    re
    print(ar
    values = [
"""
CURSORS = [(number, len(line)) for number, line in enumerate(TEXT.splitlines()) if number > 4]
AUTOMATIC, INVOKED = 2, 1
Connect = Callable[..., Driver]


def suggested(driver: Driver, uri: str, kind: int) -> list[str]:
    """The first suggestion at each cursor, empty where there is none."""
    found = []
    for line, column in CURSORS:
        asked = driver.request("textDocument/inlineCompletion", inline(uri, line, column, kind))
        found.append("".join(item["insertText"] for item in asked["items"][:1]))
    return found


def gated_by(connect: Connect, folder: Path, uri: str, gate: str) -> Driver:
    settings = {
        "completion": {"gate": gate, "alternatives": 1, "multiline": "never", "timeoutMs": 60_000},
        # Prompts hold what an index knows, which grows while answers are compared.
        "index": {"enabled": False},
    }
    driver = connect("neovim", initialize=False)
    driver.configuration = settings
    driver.initialize(profile("neovim"), folder, settings=settings)
    driver.wait_for_state("ready")
    driver.open(uri, TEXT)
    return driver


def test_what_is_sure_is_shown_and_by_hand_all(connect: Connect, tmp_path: Path) -> None:
    uri = (tmp_path / "gated.py").as_uri()
    off, eager = (
        gated_by(connect, tmp_path, uri, "off"),
        gated_by(connect, tmp_path, uri, "eager"),
    )
    whole, sure = suggested(off, uri, AUTOMATIC), suggested(eager, uri, AUTOMATIC)
    assert all(text.startswith(part) for text, part in zip(whole, sure, strict=True))
    assert any(sure)
    assert sum(map(len, sure)) < sum(map(len, whole))
    assert suggested(eager, uri, INVOKED) == suggested(off, uri, INVOKED)


def test_what_is_hidden_comes_into_sight_while_it_is_typed(
    connect: Connect, tmp_path: Path
) -> None:
    uri = (tmp_path / "typed.py").as_uri()
    whole = suggested(gated_by(connect, tmp_path, uri, "off"), uri, AUTOMATIC)
    quiet = gated_by(connect, tmp_path, uri, "quiet")
    sure = suggested(quiet, uri, AUTOMATIC)
    versions = itertools.count(2)
    grown = []
    for (line, column), text, part in zip(CURSORS, whole, sure, strict=True):
        furthest = len(part)
        for typed, character in enumerate(text[:-1]):
            quiet.insert(uri, next(versions), line, column + typed, character)
            place = inline(uri, line, column + typed + 1, AUTOMATIC)
            items = quiet.request("textDocument/inlineCompletion", place)["items"]
            now = items[0]["insertText"] if items else ""
            assert text[typed + 1 :].startswith(now)
            furthest = max(furthest, typed + 1 + len(now) if now else 0)
        grown.append(furthest > len(part))
    assert any(grown)
