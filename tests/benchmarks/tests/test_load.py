"""``load``: what its clients count, against a server that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import json
import random

import httpx2
import pytest

from tests.benchmarks.process_memory import MemoryWatch
from tests.benchmarks.team.clients import LoadClient, LoadShape, LoadTally, Member, marks_of
from tests.benchmarks.team.load import load_figures

OWN, FOREIGN = marks_of(2, random.Random(1))
SHAPE = LoadShape(rate=200.0, edits=0.3, leaving=0.0, max_tokens=8)
TEXT = "def area(width, height):\n    return width * height\n" * 10


def result(text: str) -> bytes:
    return (
        f"event: spans\ndata: {json.dumps([{'text': text, 'source': 'model'}])}\n\n"
        f"event: result\ndata: {json.dumps({'text': text, 'tokens': 3, 'seconds': 0.001})}\n\n"
    ).encode()


FAILED = b'event: error\ndata: {"kind": "unavailable", "message": ""}\n\n'


def load(answers: list[tuple[int, bytes]], seconds: float = 0.5) -> tuple[LoadTally, list[str]]:
    """The tally of one client; ``answers`` come one after another, the last one from then on."""
    paths: list[str] = []

    async def app(scope, receive, send):
        paths.append(scope["path"])
        while (await receive()).get("more_body"):
            pass
        assert dict(scope["headers"])[b"authorization"] == b"Bearer rd-key"
        status, body = answers[min(len(paths), len(answers)) - 1]
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def work() -> LoadTally:
        tally = LoadTally()
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://server") as http:
            member = Member("rd-key", OWN, [])
            client = LoadClient(http, member, [TEXT], frozenset([OWN, FOREIGN]), tally, 7)
            await client.work(SHAPE, seconds)
        return tally

    return asyncio.run(work()), paths


def test_good_answers_are_counted_and_timed():
    tally, paths = load([(200, result(f"{OWN} = 3"))])
    figures = load_figures(tally, 0.5)
    assert figures["answers"] == len(paths) > 5
    assert {"/redraft/v1/complete", "/redraft/v1/edit"} == set(paths)
    assert figures["own_marks"] == figures["answers"]
    assert figures["tokens"] == 3 * figures["answers"]
    assert figures["foreign_marks"] == figures["retried"] == figures["status_5xx"] == 0
    assert 0 < figures["first_text_ms_p50"] <= figures["ms_p95"]


@pytest.mark.parametrize("failure", [(503, b"{}"), (429, b"{}"), (200, FAILED)])
def test_what_fails_is_tried_again_once(failure):
    tally, paths = load([failure, (200, result("x"))])
    figures = load_figures(tally, 0.5)
    assert figures["retried"] == 1
    assert figures["failed_after_retry"] == 0
    assert figures["answers"] == len(paths) - 1
    assert figures["status_5xx"] == (failure[0] == 503)
    assert (figures["share_429"] > 0) == (failure[0] == 429)
    assert figures["failed_answers"] == (failure[1] == FAILED)


def test_a_request_that_fails_twice_and_a_foreign_word_are_told():
    tally, _ = load([(503, b""), (503, b""), (200, result(FOREIGN)), (200, result("x"))], 1.0)
    assert tally.failed_after_retry == 1
    assert tally.foreign_marks == 1


def test_memory_is_that_of_a_process_and_its_descendants():
    import os

    async def look() -> MemoryWatch:
        watch = MemoryWatch([os.getpid()])
        task = asyncio.ensure_future(watch.watch())
        while not watch.samples["all"]:
            await asyncio.sleep(0.01)
        task.cancel()
        return watch

    figures = asyncio.run(look()).figures
    assert figures["all"]["first_mb"] > 10
    assert figures["all"]["growth_percent"] == 0.0
