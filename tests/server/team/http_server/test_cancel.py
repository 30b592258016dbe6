"""A client that leaves frees the engine."""

from __future__ import annotations

import httpx2
import pytest
from served import LONG_EDIT, OTHER_KEY, Served, events_of, metric, stream, wait_until_free

SHORT = {"prompt": "x = 1\ny = ", "max_tokens": 1}
PATIENCE_S = 0.25


def test_a_stream_that_is_closed_ends_its_generation(server: Served) -> None:
    with stream(server.url, "/redraft/v1/edit", LONG_EDIT) as response:
        # An iterator that is let go closes the connection.
        events = events_of(response.iter_lines())
        next(events)
        assert metric(server, "engine_queue") == 1
    wait_until_free(server)
    assert server.post("/v1/completions", SHORT).status_code == 200


def test_an_answer_in_one_piece_that_nobody_waits_for_ends_too(server: Served) -> None:
    """A prompt of thousands of tokens takes longer to compute than the client waits."""
    asked = {"prompt": " ".join(map(str, range(700))), "max_tokens": 2000}
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(
            f"{server.url}/v1/completions",
            json=asked,
            headers=server.headers,
            timeout=httpx2.Timeout(60, read=PATIENCE_S),
        )
    wait_until_free(server)


def test_a_short_request_of_another_key_goes_between(server: Served) -> None:
    with stream(server.url, "/redraft/v1/edit", LONG_EDIT) as response:
        # An iterator that is let go closes the connection.
        events = events_of(response.iter_lines())
        next(events)
        with stream(server.url, "/v1/completions", SHORT, OTHER_KEY) as other:
            assert other.read()
        assert metric(server, "engine_queue") == 1
    wait_until_free(server)
