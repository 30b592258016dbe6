"""An ingress and two replicas on a cluster of this machine, asked over HTTP as editors do."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace

import httpx2
import psutil
import pytest
import pytest_asyncio
from asking import ask, body_of, events_of, path_of
from deployed import APPLICATION, KEY, OTHER_KEY
from sample_jobs import completion_jobs, edit_jobs

from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import CompletionJob, EditJob, GenerateJob
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.team.http_server.fields import read_fields
from lsp_server.team.http_server.openai_completions import CompletionFields
from lsp_server.team.ray_serve.session import session_id

pytestmark = [pytest.mark.long, pytest.mark.asyncio]

LINES = "".join(f"total_{number} = compute(first_{number}, {number})\n" for number in range(60))
LONG_EDIT = EditJob("", "a.py", "add comments", LINES, max_tokens=1500, plain=True)
SIMPLE = CompletionJob("", "a.py", "def add(a, b):\n    return ", "\n")
START_S = 300.0
COMPLETIONS, EDITS = 200, 100
CLIENTS = 50
REQUESTS_PER_SECOND = float(os.environ.get("REDRAFT_TEST_RATE", "25"))
"""Of all clients together, while a replica is killed; a slow machine carries fewer."""
UNDER_LOAD_S = 5.0


async def states(server) -> dict[int, int]:
    """Requests that the replicas hold, by the process id of their engine."""

    async def state():
        return await server.replicas.describe.remote()

    told = await asyncio.gather(*(state() for _ in range(24)), return_exceptions=True)
    # One that has just died does not tell.
    return {one["status"]["pid"]: one["queue_length"] for one in told if isinstance(one, dict)}


async def until(condition, what: str, seconds: float = 60.0) -> None:
    """Wait for what must come."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        if await condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{what} did not come within {seconds} s")


@pytest_asyncio.fixture
async def client():
    async with httpx2.AsyncClient(timeout=120) as made:
        yield made


async def test_texts_are_those_of_a_local_engine(server, client):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    local = EngineService(EngineOptions(path=server.options.path, threads=1))
    try:
        for job in completion_jobs(COMPLETIONS, rng):
            answer = await ask(client, server.url, KEY, job)
            assert answer.result["text"] == local.write(job).text, job
        for job in edit_jobs(EDITS, rng):
            answer = await ask(client, server.url, OTHER_KEY, job)
            assert answer.result["text"] == local.write(job).text, job
            assert answer.events[0][0] == "spans"
    finally:
        local.close()


OBEYED = [
    {"repeat_penalty": 1.5},
    {"presence_penalty": 1.5, "frequency_penalty": 0.5},
    {"repetition_penalty": 1.3, "temperature": 0.9, "seed": 5},
    {"logit_bias": [[40, 8.0], [41, False], [" return", -5]]},
    {"ignore_eos": True, "stop_token_ids": [40]},
    {"min_p": 0.3, "temperature": 1.2, "seed": 11},
]


async def test_fields_that_change_a_text_reach_the_replicas(server, client):
    local = EngineService(EngineOptions(path=server.options.path, threads=1))
    changed = 0
    try:
        for fields in ({}, *OBEYED):
            asked = {"prompt": LINES[:200], "max_tokens": 24, **fields}
            headers = {"authorization": f"Bearer {KEY}"}
            answer = await client.post(f"{server.url}/v1/completions", json=asked, headers=headers)
            job = read_fields(CompletionFields, asked).job(256)
            job = replace(job, text=LINES[:200], plain=True)
            text = local.write(job).text
            assert answer.json()["choices"][0]["text"] == text, fields
            changed += text != local.write(GenerateJob(text=LINES[:200], max_tokens=24)).text
    finally:
        local.close()
    assert changed > 3


async def test_nothing_is_answered_without_a_key(server, client):
    for path in ("/redraft/v1/complete", "/redraft/v1/model", "/nowhere"):
        assert (await client.post(server.url + path, json={})).status_code == 401
    assert (await ask(client, server.url, "rd-foreign", SIMPLE)).status == 401
    assert (await client.get(server.url + "/health")).status_code == 200


async def test_requests_of_one_document_go_to_one_replica(server, client):
    for number in range(4):
        job = replace(LONG_EDIT, path=f"{number}.py")
        asked = [asyncio.ensure_future(ask(client, server.url, KEY, job)) for _ in range(3)]

        async def are_there() -> bool:
            return sum((await states(server)).values()) == 3

        await until(are_there, "three requests")
        assert sorted((await states(server)).values()) == [0, 3]
        for task in asked:
            task.cancel()

        async def are_free() -> bool:
            return sum((await states(server)).values()) == 0

        await until(are_free, "the end of cancelled requests", 10.0)


async def test_sessions_are_spread_over_the_replicas(server):
    pids = []
    for number in range(40):
        session = session_id(b"secret", "key", f"repository{number}")
        handle = server.replicas.options(session_id=session)
        told = {(await handle.describe.remote())["pid"] for _ in range(3)}
        assert len(told) == 1
        pids += told
    # With 100 places each on the ring a replica has 40 % of it or more, and then fewer than 4 of 40
    # sessions less than once in a hundred thousand times.
    assert sorted(pids.count(pid) for pid in set(pids))[0] >= 4
    assert len(set(pids)) == 2


async def test_a_client_that_leaves_frees_the_engine(server, client):
    headers = {"authorization": f"Bearer {KEY}"}
    async with client.stream(
        "POST", server.url + path_of(LONG_EDIT), json=body_of(LONG_EDIT), headers=headers
    ) as answer:
        async for text in answer.aiter_text():
            if found := events_of(text):
                assert found[0][0] == "spans"
                # Leaving the loop closes the connection.
                assert sum((await states(server)).values()) == 1
                break

    async def is_free() -> bool:
        return sum((await states(server)).values()) == 0

    await until(is_free, "the end of the forward", 5.0)


async def test_an_accepted_suggestion_reaches_the_replica_that_drafts_from_it(server, client):
    headers = {"authorization": f"Bearer {KEY}"}
    for number in range(4):
        prefix = f"def kumquat_jam_{number}(kumquats, sugar):\n    kettle = "
        job = CompletionJob("", f"jam{number}.py", prefix, "\n", max_tokens=24)
        alone = (await ask(client, server.url, KEY, replace(job, plain=True))).result
        taken = {"path": job.path, "before": prefix, "text": alone["text"]}
        body = {"protocol": 1, "taken": taken}
        told = await client.post(f"{server.url}/redraft/v1/accepted", json=body, headers=headers)
        assert told.status_code == 200, told.text
        # What the replicas are asked now stands behind it.
        await states(server)
        result = (await ask(client, server.url, KEY, job)).result
        assert result["text"] == alone["text"]
        assert "history" in result["sources"], result["sources"]


async def test_an_error_of_the_engine_is_told_and_the_replica_goes_on(server, client):
    before = await states(server)
    answer = await ask(client, server.url, KEY, replace(SIMPLE, prefix="", suffix=""))
    assert answer.events[-1][0] == "error"
    assert answer.events[-1][1]["kind"] == "NothingToContinue"
    assert (await ask(client, server.url, KEY, SIMPLE)).result["tokens"]
    assert (await states(server)).keys() == before.keys()


async def keep_asking(
    client, server, ended: asyncio.Event, failures: list, number: int, every_s: float
) -> int:
    """Ask until ``ended``, on average ``every_s``; what fails is tried again once. Returns the
    number of answers."""
    rng = random.Random(number)
    answers = 0
    while not ended.is_set():
        for job in completion_jobs(10, rng):
            await asyncio.sleep(rng.expovariate(1 / every_s))
            if ended.is_set():
                break
            answer = await ask(client, server.url, KEY, job)
            if answer.failed:
                failures.append((1, answer))
                answer = await ask(client, server.url, KEY, job)
            if answer.failed:
                failures.append((2, answer))
            answers += 1
    return answers


async def test_a_killed_replica_costs_no_client_an_error_after_one_retry(server, client):
    before = await states(server)
    killed = min(before)
    ended, failures = asyncio.Event(), []
    asking = [
        asyncio.ensure_future(
            keep_asking(client, server, ended, failures, number, CLIENTS / REQUESTS_PER_SECOND)
        )
        for number in range(CLIENTS)
    ]
    began = time.monotonic()
    await asyncio.sleep(UNDER_LOAD_S)
    psutil.Process(killed).parent().kill()

    async def is_replaced() -> bool:
        now = await states(server)
        return len(now) == 2 and killed not in now

    await until(is_replaced, "another replica", START_S)
    await asyncio.sleep(UNDER_LOAD_S)
    ended.set()
    answers = sum(await asyncio.gather(*asking))
    rate = answers / (time.monotonic() - began)
    first = [answer for tries, answer in failures]
    print(f"answers {answers}, {rate:.1f} a second, first failures {len(first)}: {first[:3]}")
    assert answers > 20
    assert [answer for tries, answer in failures if tries == 2] == []
    # Its engine ends with the replica.
    assert not psutil.pid_exists(killed)


async def test_a_rolling_update_fails_no_request(server, client):
    from ray import serve

    from lsp_server.team.ray_serve.application import application

    before = set(await states(server))
    ended, failures = asyncio.Event(), []
    asking = [
        asyncio.ensure_future(keep_asking(client, server, ended, failures, number, 0.2))
        for number in range(4)
    ]
    options = replace(server.options, threads=2)
    await asyncio.to_thread(serve.run, application(options), name=APPLICATION, route_prefix="/")

    async def are_new() -> bool:
        now = set(await states(server))
        return len(now) == 2 and not now & before

    await until(are_new, "new replicas", START_S)
    ended.set()
    answers = sum(await asyncio.gather(*asking))
    print("answers", answers)
    assert failures == []


async def test_a_later_deployment_says_where_the_first_one_listens(server, client):
    import ray

    command = [sys.executable, "-m", "lsp_server", "deploy", "--ray", "--threads", "1"]
    command += ["--address", ray.get_runtime_context().gcs_address]
    command += ["--keys", server.options.keys, "--port", "1"]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"url": server.url}
    assert (await ask(client, server.url, KEY, SIMPLE)).result["tokens"]
