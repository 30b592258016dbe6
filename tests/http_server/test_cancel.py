"""A client that leaves frees the engine."""

from __future__ import annotations

import time

from served import CLIENT, KEY, OTHER_KEY, Served, events_of, stream

LONG = {
    "protocol": 1,
    "urgency": 0,
    "job": {
        "path": "a.py",
        "prefix": "def numbers():\n    return [1, 2, 3, 4,",
        "suffix": "]\n",
        "max_tokens": 3000,
        "temperature": 2.0,
        "seed": 3,
    },
}
FREE = {"prompt": "", "max_tokens": 4000, "temperature": 2.0, "seed": 3, "stream": True}
SHORT = {"prompt": "x = 1\ny = ", "max_tokens": 1}
LEAST_S = 1.0
"""The long answers take longer than this by far, and an engine that was freed answers sooner."""


def admin_value(server: Served, name: str) -> int:
    text = CLIENT.get(f"{server.admin}/metrics").text
    line = next(line for line in text.splitlines() if line.startswith(f"redraft_{name} "))
    return int(line.split()[1])


def wait_until_free(server: Served, seconds: float) -> float:
    """Seconds until the engine has nothing to do."""
    started = time.monotonic()
    while admin_value(server, "engine_queue"):
        assert time.monotonic() - started < seconds
    return time.monotonic() - started


def test_a_stream_that_is_closed_ends_its_generation(server: Served) -> None:
    server.post("/v1/completions", SHORT)
    with stream(server.url, "/v1/completions", {**FREE, "prompt": "a = "}) as response:
        next(events_of(response.iter_lines()))
        assert admin_value(server, "engine_queue") == 1
    wait_until_free(server, LEAST_S)
    assert server.post("/v1/completions", SHORT).status_code == 200


def test_an_answer_in_one_piece_that_nobody_waits_for_ends_too(server: Served) -> None:
    import httpx2

    asked = {**FREE, "prompt": "b = ", "stream": False}
    headers = {"authorization": f"Bearer {KEY}"}
    try:
        httpx2.post(f"{server.url}/v1/completions", json=asked, headers=headers, timeout=0.5)
    except httpx2.ReadTimeout:
        wait_until_free(server, LEAST_S)
    else:
        raise AssertionError("the answer came too soon to be given up")


def test_a_short_request_of_another_key_goes_between(server: Served) -> None:
    with stream(server.url, "/v1/completions", {**FREE, "prompt": "c = "}) as response:
        next(events_of(response.iter_lines()))
        with stream(server.url, "/v1/completions", SHORT, OTHER_KEY) as other:
            assert other.read()
        assert admin_value(server, "engine_queue") == 1
    wait_until_free(server, LEAST_S)
