"""Functions in a child process: what they return and raise, several at once, and too long ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from lsp_server.shared.errors import EditRefused, WorkTakesTooLong
from lsp_server.shared.processes import function_process
from lsp_server.shared.processes.function_process import FunctionProcess
from lsp_server.text.documents.document import Document, split_lines


@pytest.fixture
async def process() -> AsyncIterator[FunctionProcess]:
    started = FunctionProcess()
    yield started
    await started.close()


async def test_what_a_function_returns_comes_back(process: FunctionProcess) -> None:
    assert await process.call(split_lines, "a\nb\ud800\n") == ["a\n", "b\ud800\n", ""]
    document = Document("file:///a", "python", 1, "a = 1\n")
    assert await process.call(document.position_at, 3) == document.position_at(3)
    pid = process.pid
    assert await asyncio.gather(*(process.call(pow, 2, n) for n in range(50))) == [
        2**n for n in range(50)
    ]
    assert process.pid == pid is not None


async def test_what_a_function_raises_is_raised(process: FunctionProcess) -> None:
    with pytest.raises(EditRefused, match="no"):
        await process.call(raise_refusal)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        await process.call(divmod, 1, 0)
    assert await process.call(abs, -1) == 1


async def test_a_call_that_is_cancelled_just_as_its_frame_comes_ends() -> None:
    for turns in range(6):
        frames = asyncio.Queue[bytes | None]()
        waiting = asyncio.create_task(function_process._next_of(frames, 600.0))
        for _ in range(4):
            await asyncio.sleep(0)
        frames.put_nowait(b"loaded")
        for _ in range(turns):
            await asyncio.sleep(0)
        if waiting.cancel():
            with pytest.raises(asyncio.CancelledError):
                await waiting
        else:
            assert await waiting == b"loaded"


def raise_refusal() -> None:
    from lsp_server.shared.errors import EditRefused

    raise EditRefused("no")


async def test_a_long_call_holds_nobody_up_and_is_given_up(
    process: FunctionProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_longest_s", 3.0)
    await process.call(abs, -1)
    long = asyncio.create_task(process.call(time.sleep, 600.0))
    assert await process.call(abs, -2) == 2
    with pytest.raises(WorkTakesTooLong, match="3 s"):
        await long
    assert await process.call(abs, -3) == 3


class Slow:
    """Loads slowly in the other process."""

    def __reduce__(self) -> tuple[object, ...]:
        return time.sleep, (1.0,)


async def test_the_clock_starts_once_all_is_loaded() -> None:
    process = FunctionProcess(longest_s=0.5)
    try:
        assert await process.call(repr, Slow()) == "None"
    finally:
        await process.close()


async def test_it_ends_when_nobody_calls_and_starts_again(
    process: FunctionProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function_process, "IDLE_S", 0.2)
    for number in range(3):
        long = asyncio.create_task(process.call(time.sleep, 0.7))
        assert await process.call(abs, -number) == number
        assert await long is None
        assert process.pid is not None
        while process.pid is not None:
            await asyncio.sleep(0.02)


async def test_whoever_leaves_is_not_waited_for(process: FunctionProcess) -> None:
    await process.call(abs, -1)
    long = asyncio.create_task(process.call(time.sleep, 600.0))
    await asyncio.sleep(0)
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert await process.call(abs, -2) == 2
