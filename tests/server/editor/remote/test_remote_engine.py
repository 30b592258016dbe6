"""The engine at a server: what is sent there, what comes back, and what happens without it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from typing import Any

import pytest
from engine_stand_in import EngineStandIn
from server_stand_in import KEY, MODEL, Server, event, served
from text_cases import data_cases

from lsp_server.commands.cli.status import _server
from lsp_server.editor.hub.hub import Hub
from lsp_server.editor.remote.address import ServerAddress
from lsp_server.editor.remote.discovery import checked_server
from lsp_server.editor.remote.engine import RemoteEngine
from lsp_server.editor.remote.resumed_spans import ResumedSpans
from lsp_server.editor.remote.similar import SimilarText
from lsp_server.engine.client import EngineClient
from lsp_server.engine.key import EngineKey
from lsp_server.engine.similar_text import similar_text
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    EDIT,
    PREFILL,
    AcceptedText,
    CompletionJob,
    ContextSnippet,
    EditJob,
    JobResult,
    Span,
)
from lsp_server.shared.contract.notes import OpenWorkspace
from lsp_server.shared.errors import EngineFailed, EngineUnavailable, ModelUnavailable
from lsp_server.shared.processes import back_off
from lsp_server.shared.settings import read_settings


def local_engine() -> EngineStandIn:
    """Stands for the engine of this machine."""
    return EngineStandIn(lambda job: "total += local", model="small", dtype="int8", pid=1)


def engine_at(url: str, key: str = KEY, local: bool = False, **server: Any) -> RemoteEngine:
    values = {"server": {"url": url, "key": key, **server}}
    settings = read_settings(values).settings.server
    return RemoteEngine(settings, lambda: None, local_engine() if local else None)


def completion(**more: Any) -> CompletionJob:
    return CompletionJob("/home/u/work", "shapes.py", "total = 0\n", "\n", "python", **more)


def edit_job(**more: Any) -> EditJob:
    return EditJob("/home/u/work", "shapes.py", "rename a to b", "a = 1\n", **more)


@asynccontextmanager
async def a_pair(**options: Any) -> Any:
    """A server and an engine that asks it."""
    server = Server()
    async with served(server) as url:
        engine = engine_at(url, **options)
        yield server, engine
        await engine.close()


async def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit, "it did not happen"
        await asyncio.sleep(0.005)


async def test_a_completion_comes_span_by_span_and_whole() -> None:
    async with a_pair() as (server, engine):
        spans: list[Span] = []
        call = engine.ask(completion(), "c", spans.extend)
        result = await call.future
        assert result.text == "total += area"
        assert [span.text for span in spans] == server.pieces
        assert (result.tokens, result.forwards, result.stopped_by) == (3, 2, "end")
        assert (engine.status.state, engine.status.model, engine.status.dtype) == (
            "ready",
            "small",
            "fp32",
        )
        assert engine.status.server["answers"] == "server"
        assert engine.status.prompt_length.tokens(60.0) == 20 * 64
        assert len(engine.calls.latencies_s) == 1


async def test_edits_and_prefills_go_to_their_own_paths() -> None:
    async with a_pair() as (server, engine):
        assert (await engine.ask(edit_job(), "c", None, EDIT).future).text
        assert await engine.prefill(completion(), "c", PREFILL).future is None
        assert await engine.prefill(edit_job(), "c", PREFILL).future is None
        (edit,) = server.bodies("/redraft/v1/edit")
        assert edit["urgency"] == EDIT
        assert edit["job"]["instruction"] == "rename a to b"
        operations = [one["operation"] for one in server.bodies("/redraft/v1/prefill")]
        assert operations == ["complete", "edit"]


async def test_a_lossy_edit_is_not_asked_of_a_server() -> None:
    async with a_pair() as (server, engine):
        with pytest.raises(EngineFailed, match=r"redraft\.edit\.verification to exact"):
            await engine.ask(edit_job(entropy_k=3), "c", None, EDIT).future
        assert (await engine.ask(edit_job(), "c", None, EDIT).future).text
        (edit,) = server.bodies("/redraft/v1/edit")
        assert "entropy_k" not in edit["job"], "servers of earlier versions know no such field"


async def test_no_path_of_this_machine_is_sent() -> None:
    async with a_pair() as (server, engine):
        snippets = [ContextSnippet("/home/u/other/lib.py", "x"), ContextSnippet("a/b.py", "y")]
        await engine.ask(completion(snippets=snippets), "c").future
        await engine.ask(edit_job(), "c", None, EDIT).future
        sent = json.dumps(server.asked)
        assert "/home" not in sent
        assert "lib.py" in sent
        assert "a/b.py" in sent
        assert "shapes.py" in sent
        assert "c" not in [body.get("client") for _, _, body in server.asked if body]


class SimilarStandIn:
    """Finds the same text for every job."""

    def for_job(self, job: CompletionJob | EditJob, most_bytes: int) -> list[ContextSnippet]:
        assert job.workspace == "/home/u/work"
        return [ContextSnippet("lib.py", f"{job.operation} {most_bytes}")]


@pytest.mark.parametrize(
    ("limit", "sent"), [(None, None), (0, None), (300, 300), (1 << 20, 1 << 16)]
)
async def test_similar_text_goes_along_where_the_server_takes_it(
    limit: int | None, sent: int | None
) -> None:
    async with a_pair() as (server, engine):
        engine.similar = SimilarStandIn()
        if limit is not None:
            server.model = {**MODEL, "similar_bytes": limit}
        await engine.ask(completion(), "c").future
        await engine.ask(edit_job(), "c", None, EDIT).future
        await engine.prefill(completion(), "c", PREFILL).future
        jobs = [body["job"] for _, _, body in server.asked if body]
        texts = [f"{operation} {sent}" for operation in ("complete", "edit", "complete")]
        expected = [[{"path": "lib.py", "text": text}] for text in texts] if sent else [None] * 3
        assert [job.get("similar") for job in jobs] == expected


async def test_similar_text_is_chosen_for_each_line_beside_the_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(*arguments: str) -> tuple[ContextSnippet, list[ContextSnippet]]:
        asked.append(arguments)
        return ContextSnippet("", f"next {len(asked)}"), [ContextSnippet("a.py", f"{len(asked)}")]

    async def call(function: object, *arguments: str) -> Any:
        assert function is similar_text
        return found(*arguments)

    asked: list[tuple[str, ...]] = []
    stores: dict[str, tuple[str, str]] = {}
    similar = SimilarText(stores.get)
    monkeypatch.setattr(similar._lookups, "call", call)

    async def texts(job: CompletionJob | EditJob) -> list[str]:
        similar.for_job(job, 1 << 16)
        await asyncio.sleep(0.01)
        return [snippet.text for snippet in similar.for_job(job, 1 << 16)]

    assert await texts(completion()) == []
    assert asked == []
    stores["/home/u/work"] = "store", "model"
    assert await texts(completion()) == ["next 1", "1"]
    assert asked == [("store", "model", "shapes.py", "total = 0\n", "\n")]
    assert await texts(completion()) == ["next 1", "1"]
    further = replace(completion(), prefix="\n" * 40)
    assert await texts(further) == ["next 2", "1"], "places stay while the cursor is near"
    assert await texts(replace(completion(), prefix="\n" * 60)) == ["next 3", "3"]
    similar.forget("/home/u/work")
    assert similar.for_job(further, 1 << 16) == []
    assert similar.for_job(replace(completion(), workspace=""), 1 << 16) == []
    await similar.close()


async def test_an_accepted_suggestion_is_told_to_the_server_unless_it_may_hold_secrets() -> None:
    async with a_pair() as (server, engine):
        await engine.ask(completion(), "c").future
        engine.tell(AcceptedText("/home/u/work", "key.py", "a = ", "1", secret=True))
        engine.tell(AcceptedText("/home/u/work", "shapes.py", "total ", "+= area"))
        await until(lambda: bool(server.bodies("/redraft/v1/accepted")))
        (told,) = server.bodies("/redraft/v1/accepted")
        taken = {"workspace": "", "path": "shapes.py"}
        assert told["taken"] == {**taken, "before": "total ", "text": "+= area"}


async def test_a_server_that_takes_no_accepted_suggestions_goes_on_being_asked() -> None:
    async with a_pair() as (server, engine):
        await engine.ask(completion(), "c").future
        server.status = 404
        engine.tell(AcceptedText("/home/u/work", "shapes.py", "total ", "+= area"))
        await until(lambda: bool(server.bodies("/redraft/v1/accepted")))
        server.status = 200
        assert (await engine.ask(completion(), "c").future).text == "total += area"
        assert engine.status.server["answers"] == "server"


@pytest.mark.parametrize("local", [False, True])
async def test_what_may_be_secret_never_leaves_the_machine(local: bool) -> None:
    async with a_pair(local=local) as (server, engine):
        calls = [
            engine.ask(completion(secret=True), "c"),
            engine.ask(edit_job(secret=True), "c", None, EDIT),
            engine.prefill(completion(secret=True), "c", PREFILL),
        ]
        for call in calls:
            if local:
                written = "" if call is calls[-1] else "total += local"
                assert (await call.future).text == written
            else:
                with pytest.raises(EngineUnavailable, match="may hold secrets"):
                    await call.future
        assert server.asked == []


async def test_a_cancel_closes_the_connection() -> None:
    async with a_pair() as (server, engine):
        server.pause.clear()
        begun = asyncio.Event()
        call = engine.ask(completion(), "c", lambda spans: begun.set())
        await begun.wait()
        call.cancel()
        assert await call.future is None
        await server.closed.wait()
        server.pause.set()
        assert (await engine.ask(completion(), "c").future).text
        assert not engine.calls.busy


async def test_a_call_that_is_cancelled_at_once_is_answered_and_sent_nowhere() -> None:
    async with a_pair() as (server, engine):
        call = engine.ask(completion(), "c")
        call.cancel()
        assert await call.future is None
        assert not engine.calls.busy
        assert server.asked == []


async def test_an_error_of_one_job_is_told_and_the_server_goes_on_being_asked() -> None:
    async with a_pair() as (server, engine):
        await engine.start()
        server.status = 400
        with pytest.raises(EngineFailed, match="refuses \\(400\\)") as told:
            await engine.ask(completion(), "c").future
        assert KEY not in str(told.value)
        server.status = 200
        assert (await engine.ask(completion(), "c").future).text


async def test_a_server_that_is_busy_for_a_moment_misses_one_request() -> None:
    async with a_pair() as (server, engine):
        await engine.start()
        server.status, server.headers = 429, {"Retry-After": "1"}
        with pytest.raises(EngineFailed, match="too many requests"):
            await engine.ask(completion(), "c").future
        assert engine.status.server["answers"] == "server"
        server.status = 200
        assert (await engine.ask(completion(), "c").future).text


@data_cases()
async def test_what_the_server_refuses_is_told_plainly(
    status: int, says: str, least_s: float
) -> None:
    async with a_pair() as (server, engine):
        await engine.start()
        server.status = status
        if status in (429, 503):
            server.headers = {"Retry-After": "7"}
        if status == 302:
            server.headers = {"Location": "http://127.0.0.1:9/elsewhere"}
        began = time.monotonic()
        with pytest.raises(EngineUnavailable) as told:
            await engine.ask(completion(), "c").future
        assert began + least_s <= engine._next_try <= time.monotonic() + least_s
        assert says in str(told.value)
        assert KEY not in str(told.value)
        assert (engine.status.state, engine.status.server["answers"]) == ("failed", "nothing")
        assert 0 <= engine.status.server["nextTryS"] <= least_s
        assert says in engine.refused


async def test_the_local_engine_answers_while_the_server_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(back_off, "FIRST_S", 0.02)
    async with a_pair(local=True) as (server, engine):
        await engine.start()
        server.status = 503
        assert (await engine.ask(completion(), "c").future).text == "total += local"
        assert engine.status.server["answers"] == "local"
        assert "fails (503)" in engine.status.server_note
        assert engine.status.model == "small"
        server.status = 200
        await until(lambda: engine.status.server["answers"] == "server")
        assert (await engine.ask(completion(), "c").future).text == "total += area"
        assert engine.status.server_note == ""


async def test_an_answer_that_breaks_off_is_finished_here_and_no_text_is_told_twice() -> None:
    async with a_pair(local=True) as (server, engine):
        server.breaks_off = True
        spans: list[Span] = []
        result = await engine.ask(completion(), "c", spans.extend).future
        assert result.text == "total += local"
        assert "".join(span.text for span in spans) == "total += local"
        assert spans[0].text == "total "


async def test_a_server_that_is_not_there_is_asked_again_with_back_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(back_off, "FIRST_S", 0.02)
    async with served(Server()) as url:
        pass
    engine = engine_at(url)
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await engine.start()
    port = int(url.rpartition(":")[2])
    async with served(Server(), port):
        await until(lambda: engine.status.state == "ready")
        assert (await engine.ask(completion(), "c").future).text
    await engine.close()


async def test_requests_one_after_another_share_a_connection() -> None:
    async with a_pair() as (server, engine):
        for _ in range(3):
            await engine.ask(completion(), "c").future
            await engine.ask(edit_job(), "c", None, EDIT).future
            await engine.prefill(completion(), "c", PREFILL).future
        assert len(server.asked) == 10
        assert len(server.connections) == 1


async def test_a_kept_connection_that_was_closed_there_costs_no_answer() -> None:
    """A server that closes every connection at its second request, as one that is replaced does."""
    asked: list[str] = []
    result = asdict(JobResult("area", [Span("area", "model")], 1, 1, 0.1, 0.0, {}, "end"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(2):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            asked.append(head.split()[1])
            length = re.search(r"(?i)content-length: (\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            if number:
                break
            own = asked[-1].endswith("model")
            kind = "application/json" if own else "text/event-stream"
            body = json.dumps(MODEL) if own else event("result", result)
            told = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
            writer.write(f"{told}\r\n\r\n{body}".encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    engine = engine_at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert (await engine.ask(completion(), "c").future).text == "area"
    assert asked == ["/redraft/v1/model", *["/redraft/v1/complete"] * 2]
    await engine.close()
    server.close()


async def test_a_server_that_nobody_wants_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(back_off, "FIRST_S", 0.02)
    async with a_pair() as (server, engine):
        server.status = 503
        with pytest.raises(ModelUnavailable):
            await engine.start()
        await until(lambda: len(server.asked) > 1)
        engine.rest()
        assert engine.status.state == "idle"
        count = len(server.asked)
        await asyncio.sleep(0.2)
        assert len(server.asked) <= count + 1
        server.status = 200
        assert (await engine.ask(completion(), "c").future).text


async def test_the_engine_of_this_machine_is_shared_and_told_of_what_is_open() -> None:
    hub = Hub()
    model = {"path": "/m"}
    values = {"server": {"url": "https://example.com"}, "model": model}
    remote = hub.engine(read_settings(values).settings)
    local = hub.engine(read_settings({"model": model}).settings)
    assert isinstance(remote, RemoteEngine)
    assert remote._local is local
    remote.set_buffer("/w", "a.py", lambda: "text")
    remote.tell(OpenWorkspace("/w"))
    assert isinstance(local, EngineClient)
    assert list(local._buffers) == [("/w", "a.py")]
    assert list(local._workspaces) == ["/w"]


class Opened:
    """Stands for the indexer and notes what it is to index."""

    def __init__(self) -> None:
        self.models: list[str] = []

    def open_workspace(self, folder: str, model: str, options: dict[str, Any]) -> None:
        self.models.append(model)


@data_cases()
def test_workspaces_are_indexed_for_models_of_this_machine(
    values: dict[str, Any], models: list[str]
) -> None:
    hub, indexer = Hub(), Opened()
    hub.indexer = indexer  # type: ignore[assignment]
    hub.use_workspace("/nowhere", read_settings(values).settings)
    assert indexer.models == models


def test_waits_double_up_to_a_minute_and_a_server_may_want_longer_ones() -> None:
    waits = back_off.BackOff()
    assert [waits.next_s() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert waits.next_s(90.0) == 90
    waits.forget()
    assert waits.next_s() == 1


async def test_another_version_of_the_protocol_is_told() -> None:
    async with a_pair() as (server, engine):
        server.model = {**server.model, "protocol": 2}
        with pytest.raises(EngineUnavailable, match="version 2 of the protocol"):
            await engine.ask(completion(), "c").future


@data_cases()
async def test_addresses_that_may_not_be_used_are_refused(url: str, problem: str) -> None:
    with pytest.raises(ModelUnavailable, match=problem) as told:
        ServerAddress.of(url)
    assert "secret" not in str(told.value)
    engine = engine_at(url)
    with pytest.raises(ModelUnavailable, match=problem):
        await engine.start()
    assert engine.status.state == "failed"
    await engine.close()


@data_cases()
def test_addresses_are_taken_with_and_without_what_stands_after_the_host(
    url: str, shown: str
) -> None:
    assert ServerAddress.of(url).url == shown


async def test_the_key_stands_in_no_log_no_status_and_no_representation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with a_pair() as (server, engine):
        await engine.start()
        assert server.keys == [f"Bearer {KEY}"]
        for status in (400, 401, 500):
            server.status = status
            with pytest.raises(EngineUnavailable if status > 400 else EngineFailed):
                await engine.ask(completion(), "c").future
        told = [
            engine.status.server,
            engine.status.message,
            engine.refused,
            engine.status.server_note,
            engine._settings,
        ]
        assert KEY not in repr(told)
        assert KEY not in str(asdict(engine.status))
    # uvicorn, which the server runs in, is no part of what is tested.
    assert KEY not in caplog.text


def test_engines_of_other_keys_are_others_and_this_machine_answers_only_where_wanted() -> None:
    def key(**values: Any) -> EngineKey:
        return EngineKey.of(read_settings(values).settings)

    server = {"url": "https://example.com", "key": "a"}
    assert key(server=server) != key(server={**server, "key": "b"})
    assert key(server={"key": "a"}) == key()
    assert key(server=server).local is None
    assert key(server=server, model={"path": "/m"}).local == key(model={"path": "/m"})
    assert key(server={**server, "fallback": "none"}, model={"path": "/m"}).local is None


async def test_a_server_is_checked_for_reach_key_and_version() -> None:
    server = Server()
    async with served(server) as url:
        assert "small fp32, protocol version 1" in await checked_server(url, KEY)
        with pytest.raises(ModelUnavailable, match="does not take the key"):
            await checked_server(url, "wrong-plum")
        with pytest.raises(ModelUnavailable, match="asks for a key"):
            await checked_server(url, "")
        server.model = {**server.model, "protocol": 9}
        with pytest.raises(ModelUnavailable, match="version 9"):
            await checked_server(url, KEY)
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await checked_server(url, KEY)


def test_the_status_page_names_the_server_and_what_answers() -> None:
    there = {"url": "https://a.example.com", "answers": "server", "drafted": False, "reason": ""}
    assert _server(there) == "server https://a.example.com: answered by the server, undrafted"
    gone = {**there, "answers": "local", "drafted": True, "reason": "it fails (503)", "nextTryS": 4}
    assert _server(gone) == (
        "server https://a.example.com: answered by the model on this machine; it fails (503); "
        "next try in 4 s"
    )


def test_spans_that_go_on_from_another_source_are_told_once() -> None:
    told: list[Span] = []
    spans = ResumedSpans(told.extend)
    spans.add([Span("ab", "model"), Span("c", "prompt")])
    spans.begin_again()
    spans.add([Span("a", "model")])
    spans.add([Span("bcd", "model"), Span("e", "prompt")])
    assert told == [
        Span("ab", "model"),
        Span("c", "prompt"),
        Span("d", "model"),
        Span("e", "prompt"),
    ]
    spans.begin_again()
    spans.add([Span("another text", "model")])
    assert len(told) == 4


async def test_urgency_is_told_as_the_scheduler_has_it() -> None:
    async with a_pair() as (server, engine):
        await engine.ask(completion(), "c", None, 2).future
        await engine.ask(completion(), "c", None, COMPLETION).future
        bodies = server.bodies("/redraft/v1/complete")
        assert [body["urgency"] for body in bodies] == [2, COMPLETION]
