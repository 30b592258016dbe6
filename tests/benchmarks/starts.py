"""``starts``: how long an engine takes from the start of its process until its model is ready and
its first completion is written, by turns with another checkout, with caches as they are."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError

HERE = Path(__file__).parents[2]
FIGURES = ("ready_s", "processor_s", "text_s", "rss_mb", "pss_mb", "own_mb")
"""Until the model is ready, of the clock and of the processor; until the first text is there; then
resident memory, the same with what is shared by its parts, and what no file has."""

_PROBE = """
import json, sys, time
began, root, model = float(sys.argv[1]), *sys.argv[2:]
sys.path.insert(0, root)
from accel.native.isolated_start import override_numba_settings
override_numba_settings()
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.engine.service import EngineService

service = EngineService(EngineOptions(path=model), later=True)
service.load()
found = {"ready_s": time.time() - began, "processor_s": time.process_time()}
from lsp_server.shared.contract.jobs import CompletionJob

above, below = "def mean(values):\\n    ", "\\n\\nprint(mean([1, 2]))\\n"
found["text"] = service.write(CompletionJob("", "a.py", above, below, max_tokens=12)).text
found["text_s"] = time.time() - began
import psutil

about = psutil.Process().memory_full_info()
found |= {"rss_mb": about.rss / 1e6, "pss_mb": getattr(about, "pss", about.rss) / 1e6}
found["own_mb"] = (about.rss - getattr(about, "shared", 0)) / 1e6
service.close()
print(json.dumps(found))
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", required=True, help="folder or GGUF file")
    parser.add_argument("--starts", type=int, default=6, help="of each checkout, after one more")
    parser.add_argument(
        "--beside", type=Path, metavar="DIR", help="another checkout with an environment of its own"
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure and print. Raises BenchError."""
    from tests.benchmarks import report

    if args.starts < 1:
        raise BenchError("give --starts 1 or more")
    roots = {"here": HERE} | ({"beside": args.beside.resolve()} if args.beside else {})
    starts: dict[str, list[dict[str, Any]]] = {name: [] for name in roots}
    for turn in range(args.starts + 1):
        for name, root in roots.items():
            found = _start(root, args.model)
            if turn:
                starts[name].append(found)
    rows = rows_of(starts)
    document = {
        "figures": rows,
        "starts": starts,
        "model": args.model,
        "machine": report.machine(),
        "versions": report.versions(),
    }
    title = f"{args.starts} starts each by turns, median and least"
    table = report.table(title, rows, {figure: figure for figure in FIGURES})
    report.publish(document, args.json, [table])
    return 0


def rows_of(starts: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, float]]:
    """The median and the least of each figure, by the name of a checkout. Raises BenchError where
    one writes another text."""
    if len({found["text"] for each in starts.values() for found in each}) > 1:
        raise BenchError("the checkouts write different texts")
    return {
        f"{name}, {kind}": {figure: take([one[figure] for one in found]) for figure in FIGURES}
        for name, found in starts.items()
        for kind, take in (("median", statistics.median), ("least", min))
    }


def _start(root: Path, model: str) -> dict[str, Any]:
    python = next((root / ".venv").glob("bin/python"), Path(sys.executable))
    command = [str(python), "-I", "-c", _PROBE, str(time.time()), str(root), model]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"an engine of {root} did not start: {done.stderr.strip()[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
