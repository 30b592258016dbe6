"""``editor-memory``: the memory of all processes of one editor after a first start, which compiles,
and after a second one."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from lsp_server.commands.cli.output import add_json_argument
from tests.benchmarks.as_served.doors import EditorDoor, editor_door
from tests.benchmarks.as_served.requests import COMPLETION, EDIT, ServedRequest
from tests.benchmarks.keystrokes.processes import wait_until_idle

REQUESTS = 4
TOKENS = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", required=True, help="folder or GGUF file")
    parser.add_argument("--starts", type=int, default=2, help="of the editor, in one home")
    parser.add_argument(
        "--compiled", action="store_true", help="take what is compiled for this user already"
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    from tests.benchmarks import report

    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="redraft-memory-") as folder:
        for start in range(1, args.starts + 1):
            with editor_door(args.model, Path(folder), compiled=args.compiled) as door:
                for number in range(REQUESTS):
                    door.write(ServedRequest((COMPLETION, EDIT)[number % 2], number, TOKENS))
                wait_until_idle(door.daemon)
                rows |= {f"start {start}, {name}": row for name, row in memory_of(door).items()}
    columns = {"rss_mb": "resident, MB", "pss_mb": "shared by its parts, MB", "own_mb": "own, MB"}
    document = {"rows": rows, "machine": report.machine(), "versions": report.versions()}
    title = "memory of an editor's processes, once they are idle"
    report.publish(document, args.json, [report.table(title, rows, columns, "process")])
    return 0


def memory_of(door: EditorDoor) -> dict[str, dict[str, float]]:
    """Return the megabytes of each process of an editor by its name, and of all together."""
    status = door.daemon.status()
    names = {
        status["pid"]: "daemon",
        status["indexer_pid"]: "indexer",
        status["functions_pid"]: "functions",
        door.front_pid: "front",
        **{engine["pid"]: "engine" for engine in status["engines"]},
    }
    rows: dict[str, Counter[str]] = {}
    for root in (status["pid"], door.front_pid):
        process = psutil.Process(root)
        for each in [process, *process.children(recursive=True)]:
            try:
                memory: Any = each.memory_full_info()
            except psutil.Error:
                continue
            sizes = {
                "rss_mb": memory.rss / 1e6,
                "pss_mb": getattr(memory, "pss", memory.rss) / 1e6,
                "own_mb": memory.uss / 1e6,
            }
            for name in (names.get(each.pid, "others"), "all"):
                rows.setdefault(name, Counter()).update(sizes)
    return {name: dict(row) for name, row in rows.items()}
