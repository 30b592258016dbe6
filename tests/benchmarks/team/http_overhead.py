"""``http``: what HTTP adds to a completion, on the loopback, by turns with the engine
asked directly; and how soon a client that leaves frees the engine."""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError

if TYPE_CHECKING:
    from lsp_server.engine.client import EngineClient
    from lsp_server.shared.contract.jobs import CompletionJob

MOST_TOKENS = 24
EDIT_FUNCTIONS = 100
OWNER = "local"
"""Whose key it is: both ways use the same caches."""
START_S = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", default="", help="folder or GGUF file; else the chosen one")
    parser.add_argument("--rounds", type=int, default=200, help="completions each way")
    parser.add_argument("--cancels", type=int, default=50, help="clients that leave")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and print. Raises BenchError."""
    from tests.benchmarks import report

    if args.rounds < 2 or args.cancels < 1:
        raise BenchError("give --rounds 2 or more and --cancels 1 or more")
    with tempfile.TemporaryDirectory(prefix="redraft-http-") as folder:
        found = asyncio.run(_measured(args, Path(folder)))
    rows = {
        name: {"p50": statistics.median(values), "p95": statistics.quantiles(values, n=20)[-1]}
        for name, values in asdict(found).items()
    }
    document = {
        "milliseconds": rows,
        "milliseconds_all": asdict(found),
        "model": args.model,
        "machine": report.machine(),
        "versions": report.versions(),
    }
    title = f"milliseconds, {args.rounds} completions each way and {args.cancels} cancels"
    table = report.table(title, rows, {"p50": "median", "p95": "p95"})
    report.publish(document, args.json, [table])
    return 0


@dataclass(slots=True)
class HttpTimes:
    """Milliseconds."""

    direct: list[float] = field(default_factory=list)
    """A completion asked of the engine's client."""
    over_http: list[float] = field(default_factory=list)
    """The same one over HTTP."""
    added: list[float] = field(default_factory=list)
    """What HTTP took more, by pairs."""
    freed: list[float] = field(default_factory=list)
    """From a closed connection to an engine without work, beyond the forward that ran."""


async def _measured(args: argparse.Namespace, folder: Path) -> HttpTimes:
    from lsp_server.engine.client import EngineClient
    from lsp_server.shared.contract.options import EngineOptions
    from lsp_server.team.http_server.application import app
    from lsp_server.team.http_server.keys import Keys, own_keys_file
    from lsp_server.team.http_server.serving import AdminServer, Listening

    file = folder / "keys"
    key = own_keys_file(file, OWNER)
    engine = EngineClient(
        EngineOptions(path=args.model, common=False, disk_cache_megabytes=0), lambda: None
    )
    at = Listening("127.0.0.1", 0)
    with at.open() as opened:
        server = AdminServer(at.config(app(engine, Keys(file)), lifespan="on"))
        serving = asyncio.ensure_future(server.serve(sockets=[opened]))
        begun = time.monotonic()
        while not server.started:
            if serving.done() or time.monotonic() - begun > START_S:
                raise BenchError("the server did not come up; its log says why")
            await asyncio.sleep(0.1)
        client = _Client(opened, str(key))
        times = HttpTimes()
        await _completions(engine, client, args.rounds, times)
        await _cancels(engine, client, args.cancels, times)
        client.close()
        server.should_exit = True
        await serving
    return times


async def _completions(
    engine: EngineClient, client: _Client, rounds: int, times: HttpTimes
) -> None:
    """The same completions both ways by turns; whoever begins changes with every pair."""

    async def directly(job: CompletionJob) -> str:
        result = await engine.ask(job, "bench").future
        return str(result.text)

    async def over_http(job: CompletionJob) -> str:
        return await asyncio.to_thread(client.complete, job)

    for number in range(rounds):
        job = _job(number)
        await directly(job)
        ways: list[tuple[Callable[[CompletionJob], Any], list[float]]]
        ways = [(directly, times.direct), (over_http, times.over_http)]
        texts = set()
        for ask, kept in ways if number % 2 else reversed(ways):
            started = time.perf_counter()
            texts.add(await ask(job))
            kept.append((time.perf_counter() - started) * 1000)
        assert len(texts) == 1, "HTTP changed a text"
        times.added.append(times.over_http[-1] - times.direct[-1])


async def _cancels(engine: EngineClient, client: _Client, count: int, times: HttpTimes) -> None:
    """Leave in the middle of long edits."""
    for _ in range(count):
        connection = await asyncio.to_thread(client.leave_edit)
        started = time.perf_counter()
        connection.close()
        while engine.calls.queue_length + engine.calls.stopping:
            await asyncio.sleep(0)
        took = time.perf_counter() - started
        times.freed.append((took - engine.calls.cancel_forwards_s[-1]) * 1000)


class _Client:
    """A client with one open connection, as an editor's daemon has."""

    def __init__(self, opened: socket.socket, key: str) -> None:
        self._address = opened.getsockname()
        self._headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        self._connection = http.client.HTTPConnection(*self._address)

    def complete(self, job: CompletionJob) -> str:
        """The text of a completion."""
        values = {name: value for name, value in asdict(job).items() if name != "owner"}
        self._ask(self._connection, "/redraft/v1/complete", values)
        answer = self._connection.getresponse().read().decode()
        return str(json.loads(answer.rpartition("data: ")[2])["text"])

    def leave_edit(self) -> http.client.HTTPConnection:
        """A connection whose long edit has begun to come."""
        function = "def scale_{0}(value):\n    factor = {0}\n    return value * factor + {0}\n\n\n"
        selection = "".join(map(function.format, range(EDIT_FUNCTIONS)))
        connection = http.client.HTTPConnection(*self._address)
        instruction = "rename value to amount"
        job = {"path": "a.py", "instruction": instruction, "selection": selection, "plain": True}
        self._ask(connection, "/redraft/v1/edit", job)
        response = connection.getresponse()
        while b"data:" not in response.readline():
            pass
        return connection

    def close(self) -> None:
        self._connection.close()

    def _ask(self, connection: http.client.HTTPConnection, path: str, job: Any) -> None:
        body = json.dumps({"protocol": 1, "job": job, "urgency": 0})
        connection.request("POST", path, body, self._headers)


def _job(number: int) -> CompletionJob:
    from lsp_server.shared.contract.jobs import CompletionJob

    text = Path(__file__).read_text("utf-8")
    place = 1000 + number * 37 % (len(text) - 2000)
    return CompletionJob(
        "", "a.py", text[:place], text[place : place + 500], max_tokens=MOST_TOKENS, owner=OWNER
    )
