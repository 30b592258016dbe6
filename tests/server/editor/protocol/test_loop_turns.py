"""Long turns of an event loop are told with the handler's name; others are not."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from lsp_server.editor.protocol import loop_turns as turns_module
from lsp_server.editor.protocol.loop_turns import LoopTurns


async def slow(seconds: float) -> str:
    """A handler that computes before and behind a wait."""
    _compute(seconds)
    await asyncio.sleep(0)
    _compute(seconds)
    return "done"


def _compute(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def test_a_long_turn_is_told_with_the_name_of_its_handler(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "LONG_TURN_S", 0.2)
    turns = LoopTurns()

    async def scene() -> None:
        turns.watch(asyncio.get_running_loop())
        await asyncio.sleep(0)
        assert await turns.noted("textDocument/quick", slow(0.0)) == "done"
        await asyncio.sleep(0)
        with caplog.at_level(logging.WARNING):
            assert await turns.noted("textDocument/slow", slow(0.3)) == "done"
            await asyncio.sleep(0)

    asyncio.run(scene())
    told = [one.getMessage() for one in caplog.records if "textDocument/slow" in one.getMessage()]
    assert len(told) == 2, "once before the wait, once behind it"
    assert turns.longest_s >= 0.3
    assert "textDocument/slow" in turns.longest_of
    assert not any("quick" in one.getMessage() for one in caplog.records)


def test_errors_and_cancels_pass_through_and_are_noted() -> None:
    turns = LoopTurns()

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def waits(cleaned: list[str]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    async def scene() -> None:
        with pytest.raises(ValueError, match="no"):
            await turns.noted("a", fails())
        cleaned: list[str] = []
        work = turns.noted("b", waits(cleaned))

        async def run() -> None:
            await work

        waiting = asyncio.ensure_future(run())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert cleaned == ["up"]

    asyncio.run(scene())
