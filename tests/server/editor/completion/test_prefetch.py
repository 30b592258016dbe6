"""What a provider asks for before anybody asked it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from staged_engine import PREFIX, Session, settle, texts

from lsp_server.editor.completion import provider as provider_module


async def test_the_suggestion_after_this_one_is_fetched_ahead(session: Session) -> None:
    asked = session.ask()
    await settle()
    session.fresh[0].end("path.join(path)")
    await asked
    await settle()
    assert session.ahead[0].job.prefix == PREFIX + "path.join(path)"
    session.ahead[0].end(" + rest")
    await settle()
    answer = await session.ask("path.join(path)")
    assert answer is not None
    assert answer.without_model
    assert answer.texts == [" + rest"]


@pytest.mark.parametrize("settings", [{"completion": {"prefetch": False}}, {"power": "low"}])
async def test_nothing_is_fetched_ahead_when_the_user_does_not_want_it(settings: Any) -> None:
    session = Session(**settings)
    asked = session.ask()
    await settle()
    session.fresh[0].end("path")
    await asked
    assert session.ahead == []


async def test_nothing_is_fetched_ahead_once_the_user_has_gone_on(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "AHEAD_S", 0.02)
    asked = session.ask()
    await settle()
    session.fresh[0].end("path")
    await asked
    session.ask("x")
    await asyncio.sleep(0.1)
    assert session.ahead == []


async def test_what_is_fetched_ahead_makes_way(session: Session) -> None:
    asked = session.ask()
    await settle()
    session.fresh[0].end("path")
    await asked
    await settle()
    session.ask("x")
    await settle()
    assert session.ahead[0].cancelled


async def test_finished_lines_are_shown_before_the_rest_is_written(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "PATIENCE_S", 0.02)
    asked = session.ask(prefix="def f():\n    ")
    await settle()
    session.fresh[0].write("one()\n    two()\n    thr")
    assert texts(await asked) == ["one()\n    two()"]
    assert not session.fresh[0].cancelled
    session.fresh[0].end("ee()")
    await settle()
    assert texts(await session.ask(prefix="def f():\n    one")) == ["()\n    two()\n    three()"]
