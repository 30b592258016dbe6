"""One request under way: who wins, what begins by itself, what is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from lsp_server.editor.in_flight import InFlight
from lsp_server.shared.contract.calls import Calls


class Step:
    """Work that knows whether it was cancelled."""

    def __init__(self) -> None:
        self.cancelled = 0

    def cancel(self) -> None:
        self.cancelled += 1


@pytest.fixture
def flight() -> InFlight[Step]:
    return InFlight()


async def test_a_newer_request_wakes_the_older_one_which_sees_that_it_lost(
    flight: InFlight[Step],
) -> None:
    async def asked() -> bool:
        mine = flight.begin()
        await flight.wait()
        return flight.newest is mine

    older = asyncio.ensure_future(asked())
    await asyncio.sleep(0)
    newer = asyncio.ensure_future(asked())
    assert not await older
    flight.wake()
    assert await newer


async def test_work_for_a_request_takes_the_place_of_all_other(flight: InFlight[Step]) -> None:
    first, ahead, second = Step(), Step(), Step()
    flight.run(first)
    flight.run_ahead(ahead)
    assert list(flight) == [first, ahead]
    flight.run(second)
    assert (first.cancelled, ahead.cancelled, second.cancelled) == (1, 1, 0)
    flight.ended(second)
    assert list(flight) == []
    flight.stop()
    assert second.cancelled == 0


async def test_work_for_the_next_request_takes_the_place_of_what_ran_ahead(
    flight: InFlight[Step],
) -> None:
    running, first, second = Step(), Step(), Step()
    flight.run(running)
    flight.run_ahead(first)
    flight.run_ahead(second)
    assert list(flight) == [running, second]
    assert (running.cancelled, first.cancelled, second.cancelled) == (0, 1, 0)


@pytest.mark.parametrize("what", ["begin", "stop", "close", "soon"])
async def test_what_would_begin_by_itself_does_not_once_something_else_comes(
    flight: InFlight[Step], what: str
) -> None:
    begun: list[str] = []
    flight.soon(0.0, lambda: begun.append("first"))
    if what == "soon":
        flight.soon(0.0, lambda: begun.append("second"))
    else:
        getattr(flight, what)()
    for _ in range(5):
        await asyncio.sleep(0)
    assert begun == (["second"] if what == "soon" else [])


async def test_a_wait_ends_when_its_time_is_up_and_closing_ends_all(flight: InFlight[Step]) -> None:
    await flight.wait(0.0)
    mine = flight.begin()
    waiting = asyncio.ensure_future(flight.wait())
    await asyncio.sleep(0)
    flight.close()
    await waiting
    assert flight.newest is not mine


async def test_whoever_stops_waiting_for_a_call_cancels_it() -> None:
    calls, cancelled = Calls(), []
    call = calls.begin(0, None, cancelled.append)
    waiting = asyncio.ensure_future(call.result())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cancelled == [call]
    assert not call.future.done(), "the engine says when it has stopped"
    other = calls.begin(0, None, cancelled.append)
    calls.finish(other, "text")
    assert await other.result() == "text"
