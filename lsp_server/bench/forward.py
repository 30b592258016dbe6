"""``redraft bench forward``: how long one forward takes by rows, in either dtype."""

from __future__ import annotations

import argparse
from typing import Any

from lsp_server.bench.dtypes import DTYPES
from lsp_server.errors import BenchError

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", metavar="DIR", help="model folder; else the embedded model")
    parser.add_argument("--shape", help="a public shape with random weights: 0.5B, 1.3B or 7B")
    parser.add_argument("--dtype", choices=(*DTYPES, "both"), default="both")
    parser.add_argument("--threads", type=int, help="CPU threads; the engine's choice if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    parser.add_argument("--context", type=int, default=1024, help="tokens before the rows")
    parser.add_argument("--seconds", type=float, default=5.0, help="time to measure each dtype")
    parser.add_argument("--json", nargs="?", const="-", metavar="PATH", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the document. Raises BenchError."""
    from lsp_server.bench import report

    if args.context < 1 or args.seconds <= 0:
        raise BenchError("give --context and --seconds above 0")
    dtypes = DTYPES if args.dtype == "both" else (args.dtype,)
    with report.progress() as progress:
        task = progress.add_task("timing forwards", total=len(dtypes))
        rows: dict[str, Any] = {}
        for dtype in dtypes:
            rows[dtype] = _measured(args, dtype)
            progress.advance(task)
    document = {
        "forward_ms": rows,
        "context": args.context,
        "model": args.shape or args.model or "embedded",
        "machine": report.machine(),
        "versions": report.versions(),
    }
    counts = next(iter(rows.values()))
    columns = {count: f"{count} rows" for count in counts if count.isdigit()}
    title = f"ms of one forward after {args.context} tokens"
    report.publish(
        document, args.json, [report.table(title, rows, {"threads": "threads"} | columns)]
    )
    return 0


def _measured(args: argparse.Namespace, dtype: Any) -> dict[str, Any]:
    """Number of rows (as text) to milliseconds, and the thread count."""
    from accel.engine import Engine
    from accel.models.random_weights import random_model
    from accel.peers.hf_generate import set_threads, threads
    from accel.planning.measuring import measure

    if args.shape:
        if args.threads:
            set_threads(args.threads)
        model = random_model(args.shape, dtype)
    else:
        engine = Engine.load(args.model, dtype=dtype, threads=args.threads, device=args.device)
        model = engine.model
    costs = measure(model, args.seconds, ROWS, (args.context,))
    figures = zip(costs.rows, costs.seconds[0], strict=True)
    return {"threads": threads()} | {str(count): float(time_s) * 1e3 for count, time_s in figures}
