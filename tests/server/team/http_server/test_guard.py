"""What stands before every route: keys, origins, hosts, limits, sizes."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from typing import Any

import pytest
from seeds import Amount
from served import (
    CLIENT,
    CONCURRENT,
    FEW_KEY,
    KEY,
    LONG_EDIT,
    OTHER_KEY,
    Served,
    stream,
    wait_until_free,
)
from starlette.types import Receive, Scope, Send
from text_cases import data_beside, data_cases

from lsp_server.editor.remote.connection import KEEPALIVE_S
from lsp_server.team.http_server.serving import Listening

DATA = data_beside(__file__)
ROUTES = DATA["ROUTES"]


def test_health_needs_no_key_and_tells_nothing(server: Served) -> None:
    answer = CLIENT.get(f"{server.url}/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert "server" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Bearer {KEY[:-1]}"},
        {"authorization": f"Basic {KEY}"},
        {"authorization": KEY},
        {"authorization": "Bearer"},
        {"authorization": "Bearer " + "x" * 5000},
        {"x-api-key": KEY[:-1]},
        {"authorization": "Bearer wrong", "x-api-key": KEY},
        {"cookie": f"key={KEY}"},
    ],
)
def test_without_a_key_there_is_nothing_but_401(server: Served, headers: dict[str, str]) -> None:
    for method, path in ROUTES:
        answer = CLIENT.request(method, f"{server.url}{path}", headers=headers)
        assert answer.status_code == 401, (method, path)
        assert answer.json()["error"]["code"] == "invalid_api_key"


def test_two_keys_at_once_are_none(server: Served) -> None:
    headers = [("authorization", f"Bearer {KEY}"), ("authorization", f"Bearer {OTHER_KEY}")]
    assert CLIENT.get(f"{server.url}/v1/models", headers=headers).status_code == 401


@data_cases()
def test_web_pages_and_forged_names_are_refused(
    server: Served, headers: dict[str, str], status: int
) -> None:
    answer = CLIENT.get(f"{server.url}/v1/models", headers={**server.headers, **headers})
    assert answer.status_code == status
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_unknown_paths_and_methods_have_our_shape(server: Served) -> None:
    assert server.get("/nothing").json()["error"]["code"] == "not_found"
    assert server.get("/v1/completions").status_code == 405


def send(server: Served, body: bytes, **headers: str) -> Any:
    return CLIENT.post(
        f"{server.url}/v1/completions", content=body, headers={**server.headers, **headers}
    )


def test_bodies_are_bounded_and_not_compressed(server: Served) -> None:
    asked = json.dumps({"prompt": "x = ", "max_tokens": 1}).encode()
    assert send(server, asked, **{"content-encoding": "identity"}).status_code == 200
    assert send(server, b" " * (9 << 20)).status_code == 413
    assert send(server, asked, **{"content-encoding": "gzip"}).status_code == 415
    assert send(server, b"[" * 200_000).status_code == 400
    assert send(server, b'{"prompt": NaN}').status_code == 400
    assert send(server, b'{"max_tokens": ' + b"9" * 6000 + b"}").status_code == 400


def test_a_key_that_asks_too_much_is_told_when_to_come_again(server: Served) -> None:
    headers = {"authorization": f"Bearer {FEW_KEY}"}
    with ExitStack() as streams:
        for _ in range(CONCURRENT):
            streams.enter_context(stream(server.url, "/redraft/v1/edit", LONG_EDIT, FEW_KEY))
        answer = CLIENT.get(f"{server.url}/v1/models", headers=headers)
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        assert server.get("/v1/models").status_code == 200
    wait_until_free(server)
    assert CLIENT.get(f"{server.url}/v1/models", headers=headers).status_code == 200


SEEDS: list[dict[str, Any]] = DATA["SEEDS"]
LENGTHS = {"max_tokens", "n_predict"}
"""They stay: long answers would take the test's time."""
POSTS = [path for method, path in ROUTES if method == "POST"]
WILD: list[Any] = [
    *(None, True, -1, 0, 1 << 70, 1e308, -1e308, "", "\0", "\ud800", "é" * 300, [], {}, [[]]),
    *([None], [{}], {"a": {}}, "/etc/passwd", "../..", [1, "x"], ["x"] * 500, 0.5),
]


def mutated(rng: random.Random, value: Any) -> Any:
    """``value`` with something of it replaced, removed or added."""
    names = sorted(set(value) - LENGTHS) if isinstance(value, dict) else []
    if isinstance(value, dict) and names and rng.random() < 0.8:
        name = rng.choice(names)
        changed = dict(value)
        kind = rng.randrange(4)
        if kind == 0:
            del changed[name]
        elif kind == 1:
            changed[rng.choice(["stop", "n", "job", "taken", "logprobs", "suffix", "xyz"])] = (
                rng.choice(WILD)
            )
        else:
            changed[name] = mutated(rng, value[name])
        return changed
    if isinstance(value, list) and value and rng.random() < 0.5:
        return [mutated(rng, one) for one in value]
    return rng.choice(WILD)


def test_mutated_requests_crash_nothing(server: Served, amount: Amount) -> None:
    count = amount(300, 5000)
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    keys = [KEY, KEY, KEY, OTHER_KEY]
    for number in range(count):
        body: Any = rng.choice(SEEDS)
        for _ in range(rng.randint(0, 3)):
            body = mutated(rng, body)
        data = json.dumps(body).encode()
        headers = {"authorization": f"Bearer {rng.choice(keys)}"}
        if rng.randrange(6) == 0:
            place = rng.randrange(len(data) + 1)
            data = data[:place] + bytes([rng.randrange(256)]) + data[place + rng.randint(0, 3) :]
        path = rng.choice(POSTS)
        answer = CLIENT.post(f"{server.url}{path}", content=data, headers=headers)
        # A key that asks this much is told to wait; that is not what is looked at here.
        assert answer.status_code < 500, (number, path, data)
        for trace in ("Traceback", "lsp_server", "accel", "site-packages", ".py\\", "/work/"):
            assert trace not in answer.text, (number, path, data)
    assert CLIENT.get(f"{server.url}/health").status_code == 200
    assert "Traceback" not in server.log.read_text()


def test_a_connection_stays_open_longer_than_an_editor_keeps_it() -> None:
    """A request that meets the end of its connection fails."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError

    assert Listening("127.0.0.1", 0).config(application).timeout_keep_alive > KEEPALIVE_S
