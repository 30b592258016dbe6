"""``clients``: how much a team's server writes for one client, for two, for four and for eight, and
how long each waits; with prompts that are computed already and with cold ones.

It starts ``redraft serve-http`` and asks it over HTTP, as an editor does. With ``--program`` that
is another installation, to compare two of them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

import lsp_server
from lsp_server.errors import BenchError

CHARACTERS = 1500
"""Of a prompt: some 400 tokens."""
SETTLE_S = 4.0
"""Before the first figure, in which the server measures its forwards."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", required=True, help="GGUF file or folder that is served")
    parser.add_argument("--program", default="", help="the redraft to measure; none: this one")
    parser.add_argument("--clients", default="1,2,4,8", help="numbers of clients, with commas")
    parser.add_argument("--rounds", type=int, default=6, help="requests of each client")
    parser.add_argument("--tokens", type=int, default=64, help="of an answer at most")
    parser.add_argument("--json", nargs="?", const="-", metavar="PATH", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Measure and print. Raises BenchError."""
    from tests.benchmarks import report

    numbers = [int(part) for part in args.clients.split(",")]
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, served(args, Path(folder)) as server:
        server.measure("warming up", 1, 2, args.tokens, new_prompts=False)
        time.sleep(SETTLE_S)
        for kind, new_prompts in (("computed prompts", False), ("cold prompts", True)):
            for count in numbers:
                name = f"{kind}, {count} clients"
                rows[name] = server.measure(
                    name, count, args.rounds, args.tokens, new_prompts=new_prompts
                )
    columns = {
        "tokens_per_s": "tokens/s",
        "wait_s": "mean wait, s",
        "cpu_s": "processor s a request",
        "prompt_tokens": "prompt tokens",
        "reused": "of them computed",
        "tokens": "tokens an answer",
    }
    document = {"rows": rows, "machine": report.machine(), "versions": report.versions()}
    report.publish(document, args.json, [report.table("clients of one server", rows, columns)])
    return 0


@dataclass(slots=True)
class MeasuredServer:
    """A server under measurement."""

    address: str
    key: str
    process: psutil.Process
    asked: int = 0
    """Prompts that were made up so far."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def measure(
        self, name: str, clients: int, rounds: int, tokens: int, *, new_prompts: bool
    ) -> dict[str, Any]:
        """Figures of so many clients, each of which asks behind one prompt after another. Those
        that are not new were computed before the clock runs."""
        prompts = [[self._prompt() for _ in range(rounds)] for _ in range(clients)]
        members = [_Client(self) for _ in prompts]
        if not new_prompts:
            for client, own in zip(members, prompts, strict=True):
                for prompt in own:
                    client.prefill(prompt, tokens)
        waits: list[float] = []
        answers: list[dict[str, Any]] = []
        begins = threading.Barrier(clients + 1)

        def work(client: _Client, own: list[tuple[str, str]]) -> None:
            begins.wait()
            for prompt in own:
                started = time.perf_counter()
                answer = client.complete(prompt, tokens)
                with self.lock:
                    waits.append(time.perf_counter() - started)
                    answers.append(answer)

        threads = [
            threading.Thread(target=work, args=arguments)
            for arguments in zip(members, prompts, strict=True)
        ]
        for thread in threads:
            thread.start()
        before = self._cpu_s()
        begins.wait()
        started = time.perf_counter()
        for thread in threads:
            thread.join()
        seconds, cpu_s = time.perf_counter() - started, self._cpu_s() - before
        if len(answers) < clients * rounds:
            raise BenchError(f"{name}: {clients * rounds - len(answers)} requests failed")
        written = sum(answer["tokens"] for answer in answers)
        return {
            "tokens_per_s": written / seconds,
            "wait_s": sum(waits) / len(waits),
            "cpu_s": cpu_s / len(answers),
            "prompt_tokens": sum(answer["prompt_tokens"] for answer in answers) / len(answers),
            "reused": sum(answer["prompt_tokens_reused"] for answer in answers) / len(answers),
            "tokens": written / len(answers),
        }

    def _prompt(self) -> tuple[str, str]:
        """A path and a text that were not asked for before."""
        self.asked += 1
        files = sorted(Path(lsp_server.__file__).parent.rglob("*.py"))
        text = "".join(
            files[(self.asked * 7 + more) % len(files)].read_text("utf-8") for more in range(3)
        )
        return f"file_{self.asked}.py", text[:CHARACTERS].rpartition("\n")[0] + "\n"

    def _cpu_s(self) -> float:
        """Processor time of the server and what it started."""
        family = [self.process, *self.process.children(recursive=True)]
        return sum(sum(each.cpu_times()[:2]) for each in family)


class _Client:
    """One connection, as an editor's daemon has."""

    def __init__(self, server: MeasuredServer) -> None:
        self._server = server
        self._connection = http.client.HTTPConnection(server.address)

    def complete(self, prompt: tuple[str, str], tokens: int) -> dict[str, Any]:
        """The end of the answer to a completion."""
        path, text = prompt
        answer = self._post("complete", path, text, tokens, {"urgency": 0})
        end: dict[str, Any] = json.loads(answer.rpartition("data: ")[2])
        if "tokens" not in end:
            raise BenchError(f"the server answered {answer[-300:]}")
        return end

    def prefill(self, prompt: tuple[str, str], tokens: int) -> None:
        """Have the prompt of a completion computed."""
        answer = self._post("prefill", *prompt, tokens, {"operation": "complete"})
        if answer != "{}":
            raise BenchError(f"the server answered {answer[-300:]}")

    def _post(self, route: str, path: str, text: str, tokens: int, more: dict[str, Any]) -> str:
        job = {"path": path, "prefix": text, "suffix": "", "max_tokens": tokens}
        headers = {
            "authorization": f"Bearer {self._server.key}",
            "content-type": "application/json",
        }
        body = json.dumps({"protocol": 1, "job": job, **more})
        self._connection.request("POST", f"/redraft/v1/{route}", body, headers)
        return self._connection.getresponse().read().decode()


@contextmanager
def served(args: argparse.Namespace, folder: Path) -> Iterator[MeasuredServer]:
    """``redraft serve-http`` with a key of its own."""
    from lsp_server.http_server.keys import own_keys_file

    keys = folder / "keys"
    key = str(own_keys_file(keys, "measured"))
    program = args.program or str(Path(sys.executable).with_name("redraft"))
    command = [program, "serve-http", "--model", args.model, "--keys", str(keys)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, "XDG_STATE_HOME": str(folder)}
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first:
            raise BenchError("the server did not come up; its messages say why")
        url = urlsplit(json.loads(first)["url"])
        yield MeasuredServer(url.netloc, key, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait()
