"""Text of other files: what is imported first, within the budget, in an order that stays."""

from __future__ import annotations

from lsp_server.completion.context import CHARACTERS_PER_TOKEN, imported_names, snippets_for
from lsp_server.completion.request import (
    PREFIX_CHARACTERS,
    STEP,
    SUFFIX_CHARACTERS,
    Ask,
    windowed_prefix,
    windowed_suffix,
)
from lsp_server.documents import Documents
from lsp_server.folders import Folders
from lsp_server.settings import ContextSettings


def documents() -> Documents:
    made = Documents()
    body = "def {0}_function():\n    pass\n" * 12
    for name in ("zebra", "apple", "mango"):
        made.open(f"file:///w/{name}.py", "python", 1, body.format(name))
    made.open("file:///w/other.lua", "lua", 1, body.format("lua"))
    made.open("file:///w/here.py", "python", 1, "from zebra import x\n")
    return made


def ask(prefix: str = "from zebra import x\n") -> Ask:
    return Ask("file:///w/here.py", "here.py", "/w", "python", prefix, "")


def paths(tokens: int, prefix: str = "from zebra import x\n") -> list[str]:
    settings = ContextSettings(tokens=tokens)
    return [one.path for one in snippets_for(ask(prefix), documents(), Folders(), settings)]


def test_what_is_imported_stands_next_to_the_text_and_other_languages_nowhere() -> None:
    assert paths(10_000) == ["mango.py", "apple.py", "zebra.py"]


def test_the_budget_is_kept() -> None:
    for tokens in (0, 50, 100, 300, 1000):
        settings = ContextSettings(tokens=tokens)
        found = snippets_for(ask(), documents(), Folders(), settings)
        assert sum(len(one.text) for one in found) <= tokens * CHARACTERS_PER_TOKEN


def test_switched_off() -> None:
    settings = ContextSettings(cross_file=False)
    assert snippets_for(ask(), documents(), Folders(), settings) == []


def test_typing_changes_nothing() -> None:
    assert paths(300) == paths(300, "from zebra import x\n\ndef f():\n    return ")


def test_imports_of_several_languages() -> None:
    text = """import os.path
from .shapes import Circle
import {a} from './lib/tools'
#include "geometry.h"
"""
    assert {"path", "shapes", "tools", "geometry"} <= imported_names(text)


def test_the_window_of_a_long_text_begins_at_a_line_and_stays_while_typing() -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    starts = {windowed_prefix(text + "x" * typed)[:20] for typed in range(0, STEP // 2, 50)}
    assert len(starts) <= 2
    window = windowed_prefix(text)
    assert window.startswith("line ")
    assert text.endswith(window)
    assert len(window) <= PREFIX_CHARACTERS
    after = windowed_suffix(text)
    assert text.startswith(after)
    assert after.endswith("\n")
    assert len(after) <= SUFFIX_CHARACTERS
    assert (windowed_prefix("short"), windowed_suffix("short")) == ("short", "short")
