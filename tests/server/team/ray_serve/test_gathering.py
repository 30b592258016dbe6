"""What travels from a replica: the first text at once, the rest by a beat, the end at once."""

from __future__ import annotations

import asyncio

import pytest

from lsp_server.team.ray_serve import replica
from lsp_server.team.ray_serve.replica import gathered

END = {"event": "result", "result": None, "forward_s": 0.0}


def spans(*names: str) -> dict:
    return {"event": "spans", "spans": list(names)}


@pytest.fixture(autouse=True)
def long_beat(monkeypatch):
    """So long that it cannot pass by chance."""
    monkeypatch.setattr(replica, "TICK_S", 600.0)


def test_what_comes_within_a_beat_comes_with_the_end():
    async def scene() -> list:
        frames: asyncio.Queue = asyncio.Queue()
        for name in "abc":
            frames.put_nowait(spans(name))
        frames.put_nowait(END)
        return [item async for item in gathered(frames)]

    assert asyncio.run(scene()) == [[spans("a", "b", "c"), END]]


def test_a_request_without_text_has_its_end_alone():
    async def scene() -> list:
        frames: asyncio.Queue = asyncio.Queue()
        frames.put_nowait(END)
        return [item async for item in gathered(frames)]

    assert asyncio.run(scene()) == [[END]]


def test_text_comes_with_the_beat(monkeypatch):
    monkeypatch.setattr(replica, "TICK_S", 0.01)

    async def scene() -> list:
        frames: asyncio.Queue = asyncio.Queue()
        items = gathered(frames)
        frames.put_nowait(spans("a"))
        texts = [await anext(items)]
        frames.put_nowait(spans("b"))
        texts.append(await asyncio.wait_for(anext(items), 60))
        frames.put_nowait(END)
        return [*texts, *[item async for item in items]]

    assert asyncio.run(scene()) == [[spans("a")], [spans("b")], [END]]
