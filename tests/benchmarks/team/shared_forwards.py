"""``clients``: how much a team's server writes, and how long people wait for it, behind prompts
that are computed already and behind cold ones.

Either so many clients ask, each again as soon as it is answered; or, with ``--rate``, requests come
at random times (a Poisson process), whether or not earlier ones are answered, as from many people
who type. The command starts ``redraft serve-http`` and asks it over HTTP, as an editor does. With
``--program`` it asks another installation by turns with this one, for the same at the same times.
With ``--peer openvino`` its continuous batching writes as many tokens after the same texts, in a
process that is asked without HTTP.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil

import lsp_server
from accel.models.model_file import model_file
from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError
from operating_system.machine import cores
from tests.benchmarks.keystrokes.typist import percentile
from tests.benchmarks.peers.child_process import ChildProcess
from tests.benchmarks.peers.openvino_batches import OpenVinoBatches

CHARACTERS = 1500
"""Of a prompt: some 400 tokens."""
SETTLE_S = 4.0
"""Before the first figure, in which a server measures its forwards."""
TEXTS_A_SEED = 97
REFUSED = 429
COLUMNS = {
    "requests": "requests",
    "refused": str(REFUSED),
    "tokens_per_s": "tokens/s",
    "wait_s": "mean wait, s",
    "wait_s_p50": "p50",
    "wait_s_p95": "p95",
    "cpu_s": "processor s a request",
    "prompt_tokens": "prompt tokens",
    "reused": "of them computed",
    "tokens": "tokens an answer",
    "times": "ours, times as fast",
}
PEER_CONTEXT = 4096


class MeasuredRequest(NamedTuple):
    """What is asked."""

    path: str
    text: str
    due_s: float = 0.0
    """When, from the start on."""


class MeasuredAnswer(NamedTuple):
    """What came of a request."""

    wait_s: float
    end: dict[str, Any]
    """Of the answer; empty where the server refused."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", required=True, help="GGUF file or folder that is served")
    parser.add_argument("--program", type=Path, help="another redraft, asked by turns with this")
    parser.add_argument("--peer", choices=("openvino",), help="measured by turns with this")
    parser.add_argument("--prompts", choices=("computed", "cold", "both"), default="both")
    parser.add_argument("--clients", default="1,2,4,8", help="numbers of clients, with commas")
    parser.add_argument("--rounds", type=int, default=6, help="requests of each client")
    parser.add_argument(
        "--rate", type=float, help="requests a second, at random times: in place of clients"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="in which these come")
    parser.add_argument("--tokens", type=int, default=64, help="of an answer at most")
    parser.add_argument("--seed", type=int, default=0, help="of texts and times")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and print. Raises BenchError."""
    from tests.benchmarks import report

    programs = {"": Path(sys.executable).with_name("redraft")}
    if args.program:
        programs = {"this: ": programs[""], "other: ": args.program}
    kinds = ("computed", "cold") if args.prompts == "both" else (args.prompts,)
    loads = [f"{args.rate} requests/s"] if args.rate else args.clients.split(",")
    rows: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(served(program, args)) for name, program in programs.items()
        }
        peer = stack.enter_context(_peer(args.model)) if args.peer else None
        for server in servers.values():
            server.measure(server.clients(1, 2), args.tokens, computed=False)
        time.sleep(SETTLE_S)
        for kind in kinds:
            for load in loads:
                for name, server in servers.items():
                    if args.rate:
                        lines = server.arrivals(args.rate, args.seconds, args.seed)
                    else:
                        lines = server.clients(int(load), args.rounds)
                    row = f"{name}{kind} prompts, {load}{'' if args.rate else ' clients'}"
                    rows[row] = server.measure(lines, args.tokens, computed=kind == "computed")
                    print(f"{row}: {rows[row]['tokens_per_s']:.1f} tokens/s", file=sys.stderr)
                    if peer is not None:
                        rows[f"{args.peer}, {row}"] = peer_figures(
                            peer, args.model, lines, rows[row]
                        )
    document = {
        "rows": rows,
        "seed": args.seed,
        "machine": report.machine(),
        "versions": report.versions(),
    }
    title = f"one server, asked by many (seed {args.seed})"
    report.publish(document, args.json, [report.table(title, rows, COLUMNS)])
    return 0


def _peer(model: str) -> ChildProcess:
    return ChildProcess("openvino", OpenVinoBatches, Path(model), cores(), PEER_CONTEXT)


def peer_figures(
    peer: ChildProcess, model: str, lines: list[list[MeasuredRequest]], ours: dict[str, Any]
) -> dict[str, Any]:
    """Return what a peer needs for the texts of ``lines``, as many tokens each as ``ours`` had on
    average. Its prefixes are computed before where ours were."""
    encode = model_file(Path(model)).tokenizer.encode
    prompts = [[encode(request.text) for request in line] for line in lines]
    if ours["reused"] > ours["prompt_tokens"] / 2:
        peer.call("answer", prompts, 1)
    answer = peer.call("answer", prompts, round(ours["tokens"]))
    waits, seconds = answer["waits"], answer["seconds"]
    return {
        "requests": len(waits),
        "refused": 0,
        "tokens_per_s": answer["tokens"] / seconds,
        "wait_s": sum(waits) / len(waits),
        "wait_s_p50": percentile(waits, 50),
        "wait_s_p95": percentile(waits, 95),
        "prompt_tokens": sum(len(each) for line in prompts for each in line) / len(waits),
        "tokens": answer["tokens"] / len(waits),
        "times": ours["tokens_per_s"] * seconds / answer["tokens"],
    }


@dataclass(slots=True)
class MeasuredServer:
    """A server under measurement."""

    address: str
    key: str
    process: psutil.Process
    texts: int
    """How many texts were taken so far."""

    def clients(self, count: int, rounds: int) -> list[list[MeasuredRequest]]:
        """Lines of requests, each asked one after another."""
        return [[self._request() for _ in range(rounds)] for _ in range(count)]

    def arrivals(self, rate: float, seconds: float, seed: int) -> list[list[MeasuredRequest]]:
        """Requests at random times, each a line of its own: as those of a Poisson process of whose
        requests ``rate`` a second came."""
        rng = random.Random(seed)
        times = sorted(rng.uniform(0.0, seconds) for _ in range(round(rate * seconds)))
        return [[self._request(due_s)] for due_s in times]

    def measure(
        self, lines: list[list[MeasuredRequest]], tokens: int, *, computed: bool
    ) -> dict[str, Any]:
        """Figures of lines that are asked side by side, behind prompts that are computed before the
        clock runs or are not. Raises BenchError where a request fails."""
        if computed:
            before = _Client(self, tokens)
            for request in (request for line in lines for request in line):
                before.prefill(request)
        answers: list[MeasuredAnswer] = []
        failed: list[Exception] = []
        begins = threading.Barrier(len(lines) + 1)

        def work(line: list[MeasuredRequest]) -> None:
            client = _Client(self, tokens)
            begins.wait()
            try:
                for request in line:
                    time.sleep(max(0.0, started + request.due_s - time.perf_counter()))
                    answers.append(client.complete(request))
            except (OSError, http.client.HTTPException, BenchError) as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(line,)) for line in lines]
        for thread in threads:
            thread.start()
        cpu_s, started = self._cpu_s(), time.perf_counter()
        begins.wait()
        for thread in threads:
            thread.join()
        if failed:
            raise BenchError(f"{len(failed)} requests failed: {failed[0]}")
        seconds, cpu_s = time.perf_counter() - started, self._cpu_s() - cpu_s
        found = figures(answers, seconds, cpu_s)
        if computed and found["reused"] < found["prompt_tokens"] / 2:
            raise BenchError(
                "the server had let go of prompts that were computed before; ask for fewer requests"
            )
        return found

    def _request(self, due_s: float = 0.0) -> MeasuredRequest:
        """A path and a text that were not asked for before."""
        self.texts += 1
        return MeasuredRequest(f"file_{self.texts}.py", prompt_text(self.texts), due_s)

    def _cpu_s(self) -> float:
        """Processor time of the server and what it started."""
        family = [self.process, *self.process.children(recursive=True)]
        return sum(sum(each.cpu_times()[:2]) for each in family)


def figures(answers: list[MeasuredAnswer], seconds: float, cpu_s: float) -> dict[str, Any]:
    """Of answers that took so long in all. Raises BenchError where there are none."""
    ends = [answer.end for answer in answers if answer.end]
    waits = [answer.wait_s for answer in answers if answer.end]
    if not ends:
        raise BenchError("the server refused all requests; ask for fewer a second")

    def mean(name: str) -> float:
        return float(sum(end[name] for end in ends) / len(ends))

    return {
        "requests": len(answers),
        "refused": len(answers) - len(ends),
        "requests_per_s": len(ends) / seconds,
        "tokens_per_s": mean("tokens") * len(ends) / seconds,
        "wait_s": sum(waits) / len(waits),
        "wait_s_p50": percentile(waits, 50),
        "wait_s_p95": percentile(waits, 95),
        "cpu_s": cpu_s / len(answers),
        "prompt_tokens": mean("prompt_tokens"),
        "reused": mean("prompt_tokens_reused"),
        "tokens": mean("tokens"),
        "waits_s": waits,
    }


class _Client:
    """One connection, as an editor's daemon has."""

    def __init__(self, server: MeasuredServer, tokens: int) -> None:
        self._server = server
        self._tokens = tokens
        self._connection = http.client.HTTPConnection(server.address)

    def complete(self, request: MeasuredRequest) -> MeasuredAnswer:
        """The end of the answer to a completion. Raises BenchError for an error."""
        started = time.perf_counter()
        status, answer = self._post("complete", request, {"urgency": 0})
        wait_s = time.perf_counter() - started
        if status == REFUSED:
            return MeasuredAnswer(wait_s, {})
        if "\nevent: result\n" not in f"\n{answer}":
            raise BenchError(f"the server answered {status} {answer[-300:]}")
        end: dict[str, Any] = json.loads(answer.rpartition("data: ")[2])
        return MeasuredAnswer(wait_s, end)

    def prefill(self, request: MeasuredRequest) -> None:
        """Have the prompt of a completion computed. Raises BenchError."""
        status, answer = self._post("prefill", request, {"operation": "complete"})
        if status != 200:
            raise BenchError(f"the server answered {answer[-300:]}")

    def _post(self, route: str, request: MeasuredRequest, more: dict[str, Any]) -> tuple[int, str]:
        job = {
            "path": request.path,
            "prefix": request.text,
            "suffix": "",
            "max_tokens": self._tokens,
        }
        headers = {
            "authorization": f"Bearer {self._server.key}",
            "content-type": "application/json",
        }
        body = json.dumps({"protocol": 1, "job": job, **more})
        self._connection.request("POST", f"/redraft/v1/{route}", body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read().decode()


@contextmanager
def served(program: Path, args: argparse.Namespace) -> Iterator[MeasuredServer]:
    """``redraft serve-http`` with a key of its own."""
    from lsp_server.team.http_server.keys import own_keys_file

    with tempfile.TemporaryDirectory(prefix="redraft-clients-") as folder:
        keys = Path(folder) / "keys"
        key = str(own_keys_file(keys, "measured"))
        command = [str(program), "serve-http", "--model", args.model, "--keys", str(keys)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "XDG_STATE_HOME": folder}
        )
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            if not first:
                raise BenchError("the server did not come up; its messages say why")
            address = urlsplit(json.loads(first)["url"]).netloc
            texts = args.seed * TEXTS_A_SEED
            yield MeasuredServer(address, key, psutil.Process(process.pid), texts)
        finally:
            process.terminate()
            process.wait()


def prompt_text(number: int) -> str:
    """A text for each number."""
    files = sorted(Path(lsp_server.__file__).parent.rglob("*.py"))
    text = "".join(files[(number * 7 + more) % len(files)].read_text("utf-8") for more in range(3))
    return text[:CHARACTERS].rpartition("\n")[0] + "\n"
