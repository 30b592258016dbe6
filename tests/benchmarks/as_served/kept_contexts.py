"""``kept-contexts``: prompts behind one key, asked in turn and then once more: of how many the
server kept what it had computed, and in how many bytes."""

from __future__ import annotations

import argparse
import http.client
import json
import tempfile
from pathlib import Path
from typing import Any

from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError
from tests.benchmarks.as_served.doors import server_door
from tests.benchmarks.team.shared_forwards import prompt_text

CHARACTERS = 3
"""Of a token, on average."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", required=True, help="folder or GGUF file that is served")
    parser.add_argument("--contexts", type=int, default=200, help="prompts")
    parser.add_argument("--tokens", type=int, default=500, help="of a prompt, as a limit")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Ask and print; return 1 where a prompt was computed anew. Raises BenchError."""
    from tests.benchmarks import report

    with (
        tempfile.TemporaryDirectory(prefix="redraft-contexts-") as folder,
        server_door(args.model, Path(folder), compiled=True) as door,
    ):
        rounds = []
        for _ in range(2):
            usages = []
            for number in range(args.contexts):
                text = f"# {number}\n{prompt_text(number)}"[: CHARACTERS * args.tokens]
                usages.append(_usage(door.address, door.key, text))
            rounds.append(usages)
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in rounds[1]]
    prompts = [usage["prompt_tokens"] for usage in rounds[1]]
    figures = {
        "contexts": len(cached),
        "kept": sum(each > 0 for each in cached),
        "prompt_tokens": sum(prompts),
        "cached_tokens": sum(cached),
    }
    document = {"rows": {"second round": figures}, "machine": report.machine()}
    columns = {name: name.replace("_", " ") for name in figures}
    table = report.table("prompts asked again behind one key", document["rows"], columns, "round")
    report.publish(document, args.json, [table])
    return 0 if figures["kept"] == len(cached) else 1


def _usage(address: str, key: str, text: str) -> dict[str, Any]:
    """Return the usage of a completion of one token after ``text``. Raises BenchError."""
    connection = http.client.HTTPConnection(address)
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    body = json.dumps({"prompt": text, "max_tokens": 1})
    connection.request("POST", "/v1/completions", body, headers)
    answer = connection.getresponse()
    whole = json.loads(answer.read())
    connection.close()
    if answer.status != 200:
        raise BenchError(f"the server answered {answer.status} {whole}")
    usage: dict[str, Any] = whole["usage"]
    return usage
