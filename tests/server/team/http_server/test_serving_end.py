"""What ends a server, and what is left behind."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from pathlib import Path

import httpx2
from served import CLIENT, FUNCTION, KEY, LONG_EDIT, OTHER_KEY, Served, events_of, stream

SELECTION = "".join(map(FUNCTION.format, range(8)))


def test_nothing_of_a_text_is_in_the_log(server: Served) -> None:
    marker = "planted_marker_value"
    server.post("/v1/completions", {"prompt": f"{marker} = ", "max_tokens": 1})
    server.post("/v1/completions", {"prompt": f"{marker} = ", "best_of": 3})
    for file in server.log.parent.iterdir():
        assert marker not in file.read_text("utf-8")
        assert KEY not in file.read_text("utf-8")
    assert KEY not in server.errors.read_text("utf-8")


def test_what_the_start_waits_for_is_said(server: Served) -> None:
    assert "redraft: loading the model\n" in server.errors.read_text("utf-8")


def test_metrics_count_requests_and_tokens(server: Served) -> None:
    server.post("/v1/completions", {"prompt": "x = ", "max_tokens": 2})
    server.get("/a/path/nobody/made")
    text = CLIENT.get(f"{server.admin}/metrics").text
    assert 'redraft_requests_total{route="/v1/completions",status="200"}' in text
    assert 'redraft_requests_total{route="other",status="404"}' in text
    assert 'redraft_request_seconds_bucket{route="/v1/completions",le="+Inf"}' in text
    assert "\nredraft_engine_ready 1\n" in text
    assert "nobody" not in text
    assert CLIENT.get(f"{server.admin}/v1/models").status_code == 404


def test_a_revoked_key_is_none_at_once(server: Served) -> None:
    keys = server.errors.with_name("keys")
    text = keys.read_text("utf-8")
    headers = {"authorization": f"Bearer {OTHER_KEY}"}
    assert CLIENT.get(f"{server.url}/v1/models", headers=headers).status_code == 200
    keys.write_text(text.replace(OTHER_KEY, "changed"), encoding="utf-8")
    assert CLIENT.get(f"{server.url}/v1/models", headers=headers).status_code == 401
    keys.write_text(text, encoding="utf-8")
    assert CLIENT.get(f"{server.url}/v1/models", headers=headers).status_code == 200


def test_told_to_end_the_server_answers_what_is_under_way(server: Served) -> None:
    edit = {**LONG_EDIT, "job": {**LONG_EDIT["job"], "selection": SELECTION}}
    with stream(server.url, "/redraft/v1/edit", edit) as response:
        *_, whole = events_of(response.iter_lines())
    with stream(server.url, "/redraft/v1/edit", edit) as response:
        events = events_of(response.iter_lines())
        first = next(events)
        server.process.send_signal(signal.SIGTERM)
        last = [first, *events][-1]
    assert last[0] == "result", last
    assert last[1]["text"] == whole[1]["text"]
    assert last[1]["stopped_by"] == whole[1]["stopped_by"] in ("end", "length")
    assert server.process.wait(60) == 0
    assert "Traceback" not in server.errors.read_text("utf-8")


def test_a_second_interrupt_ends_the_server_at_once(server: Served) -> None:
    with stream(server.url, "/redraft/v1/edit", LONG_EDIT) as response:
        events = events_of(response.iter_lines())
        next(events)
        server.process.send_signal(signal.SIGINT)
        while _is_answered(server):
            time.sleep(0.01)
        assert next(events)[0] == "spans", "after one it answers what is under way"
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        started = [int(pid) for pid in children.read_text().split()] if children.exists() else []
        server.process.send_signal(signal.SIGINT)
        # Told that the engine ended, or cut off.
        kinds = []
        with suppress(httpx2.HTTPError):
            for kind, _ in events:
                kinds.append(kind)
        assert "result" not in kinds
    assert server.process.wait(60) == 0
    for file in (server.errors, server.log):
        assert "Traceback" not in file.read_text("utf-8")
    while any(Path(f"/proc/{pid}").exists() for pid in started):
        time.sleep(0.01)


def _is_answered(server: Served) -> bool:
    try:
        httpx2.get(f"{server.url}/health", timeout=60)
    except (httpx2.ConnectError, httpx2.RemoteProtocolError, httpx2.ReadError):
        # Refused, or taken in the moment in which the server stopped listening.
        return False
    return True
