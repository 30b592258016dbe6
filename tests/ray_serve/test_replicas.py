"""Two replicas on a cluster of this machine, asked through their handle."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import psutil
import pytest
from sample_jobs import completion_jobs, edit_jobs

from lsp_server.engine.jobs import CompletionJob, EditJob, Span
from lsp_server.engine.process import EngineService
from lsp_server.engine.scheduler import EDIT
from lsp_server.ray_serve.session import session_id

pytestmark = [pytest.mark.long, pytest.mark.asyncio]

SECRET = b"k" * 32
LONG_EDIT = EditJob("", "a.py", "add comments", "x = 1\n" * 400, max_tokens=4000, plain=True)


def engine_of(replicas):
    from lsp_server.ray_serve.engine_replicas import EngineReplicas

    return EngineReplicas(replicas, SECRET)


async def described(replicas, owner: str, repository: str):
    session = session_id(SECRET, owner, repository)
    return await replicas.options(session_id=session).describe.remote()


async def until(condition, what: str, seconds: float = 60.0):
    """Wait for what must come."""
    for _ in range(int(seconds / 0.02)):
        if found := await condition():
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"{what} did not come within {seconds} s")


async def test_texts_are_those_of_a_local_engine(replicas):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    completions, edits = completion_jobs(40, rng), edit_jobs(20, rng)
    local = EngineService(threads=1)
    engine = engine_of(replicas)
    try:
        for number, job in enumerate(completions):
            # Each is of another repository: both replicas answer.
            answer = await engine.complete(job, f"key{number}").future
            assert answer.text == local.complete(job).text, job
        for number, job in enumerate(edits):
            spans: list[Span] = []
            answer = await engine.edit(job, f"key{number}", spans.extend, EDIT).future
            assert answer.text == local.edit(job).text, job
            assert spans
    finally:
        local.close()
        await engine.close()


async def test_a_repository_keeps_to_one_replica_and_all_are_spread(replicas):
    pids = {}
    for number in range(40):
        told = [await described(replicas, "key", f"repository{number}") for _ in range(5)]
        assert len({one.pid for one in told}) == 1
        pids[number] = told[0].pid
    counts = sorted(list(pids.values()).count(pid) for pid in set(pids.values()))
    # With 100 places each on the ring a replica has 40 % of it or more, and then fewer than 4 of 40
    # repositories less than once in a hundred thousand times.
    assert len(counts) == 2
    assert counts[0] >= 4


async def test_a_cancel_frees_the_engine(replicas):
    engine = engine_of(replicas)
    told = await described(replicas, "key", "")
    begun = asyncio.Event()
    call = engine.edit(LONG_EDIT, "key", lambda _: begun.set(), EDIT)
    await asyncio.wait_for(begun.wait(), 60)
    assert (await described(replicas, "key", "")).queue_length == 1
    call.cancel()
    assert (await call.future).stopped_by == "cancelled"

    async def is_free():
        return (await described(replicas, "key", "")).queue_length == 0

    await until(is_free, "the end of the forward", 5.0)
    assert (await described(replicas, "key", "")).pid == told.pid
    await engine.close()


async def test_an_error_of_the_engine_is_told_and_the_replica_goes_on(replicas):
    from lsp_server.errors import EngineFailed

    engine = engine_of(replicas)
    with pytest.raises(EngineFailed) as told:
        await engine.complete(CompletionJob("", "a.py", "", ""), "key").future
    assert told.value.kind == "NothingToContinue"
    assert (await engine.complete(CompletionJob("", "a.py", "x = ", "\n"), "key").future).tokens
    await engine.close()


async def test_a_killed_replica_costs_no_request_an_error_after_one_retry(replicas):
    engine = engine_of(replicas)
    seed = random.randrange(1 << 32)
    print("seed", seed)
    jobs = completion_jobs(60, random.Random(seed))
    errors = retried = 0

    async def ask(number: int) -> None:
        nonlocal errors, retried
        for attempt in range(2):
            job = replace(jobs[number], workspace=f"repository{number % 20}")
            try:
                await asyncio.wait_for(engine.complete(job, "key").future, 60)
                return
            except Exception as error:
                print(type(error), error)
                retried += 1
                errors += attempt

    told = await described(replicas, "key", "repository0")
    asked = [asyncio.ensure_future(ask(number)) for number in range(60)]
    await asyncio.sleep(0.2)
    psutil.Process(told.pid).parent().kill()
    await asyncio.gather(*asked)
    assert errors == 0

    async def is_replaced():
        pids = {(await described(replicas, "key", f"r{number}")).pid for number in range(20)}
        return len(pids - {told.pid}) == 2

    await until(is_replaced, "another replica", 300)
    await engine.close()
