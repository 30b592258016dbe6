"""``tests.benchmarks forward``: how long one forward takes by rows, alone or beside peers."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError
from tests.benchmarks.dtypes import CHOICES, KV_TYPES, OWN_DTYPES, STORED, gguf_file, is_gguf_file
from tests.benchmarks.options import add_engine_argument

if TYPE_CHECKING:
    from rich.progress import Progress

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
PROMPT_TOKENS = 512
"""Of a prompt that is timed beside a peer."""
BACKENDS = ("own", "llama-cpp")
_BUILDS = {True: "built here", False: "its wheel's", None: ""}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", metavar="PATH", help="folder or GGUF file; else the chosen one")
    parser.add_argument("--shape", help="a public shape with random weights: 0.5B, 1.3B or 7B")
    parser.add_argument("--dtype", choices=(*CHOICES, "both"), help="both of a folder, and a GGUF "
                        "file's weights as they are stored, where it is left out")  # fmt: skip
    parser.add_argument("--kv-type", choices=KV_TYPES, default="f16", help="of keys and values")
    parser.add_argument("--threads", type=int, help="CPU threads; the engine's choice if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    parser.add_argument("--context", type=int, default=1024, help="tokens before the rows")
    parser.add_argument("--seconds", type=float, default=5.0, help="time to measure each dtype")
    add_engine_argument(parser)
    parser.add_argument("--backend", choices=BACKENDS, default="own", help="what computes ours "
                        "beside a peer; llama-cpp: its forwards, our drafts")  # fmt: skip
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the document. Raises BenchError."""
    from tests.benchmarks import report

    if args.context < 1 or args.seconds <= 0:
        raise BenchError("give --context and --seconds above 0")
    if args.shape and args.dtype not in (None, "both", *OWN_DTYPES):
        raise BenchError(f"--shape is computed in {' or '.join(OWN_DTYPES)}; give --dtype one")
    with report.progress() as progress:
        measured = _beside_peer(args, progress) if args.peer else _alone(args, progress)
    document = {
        **measured,
        "context": args.context,
        "model": args.shape or args.model,
        "machine": report.machine(),
        "versions": report.versions(),
    }
    rows = measured["forward_ms"]
    columns = {"threads": "threads"}
    columns |= {count: f"{count} rows" for count in next(iter(rows.values())) if count.isdigit()}
    title = f"ms of one forward after {args.context} tokens"
    tables = [report.table(title, rows, columns)]
    if args.peer:
        others = {
            name: {
                "prefill": measured["prefill_ms"][name][str(PROMPT_TOKENS)],
                "resident": size,
                "built": _BUILDS[measured["engines"][name].get("built_here")],
            }
            for name, size in measured["resident_mb"].items()
        }
        headings = {"prefill": f"prefill of {PROMPT_TOKENS} ms", "resident": "resident MB",
                    "built": "library"}  # fmt: skip
        tables.append(report.table("prompt and memory", others, headings))
    report.publish(document, args.json, tables)
    return 0


def _alone(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """``forward_ms`` by dtype."""
    stored = STORED if is_gguf_file(args.model) and not args.shape else "both"
    chosen = args.dtype or stored
    dtypes = OWN_DTYPES if chosen == "both" else (chosen,)
    task = progress.add_task("timing forwards", total=len(dtypes))
    rows: dict[str, Any] = {}
    for dtype in dtypes:
        rows[dtype] = _measured(args, dtype)
        progress.advance(task)
    return {"forward_ms": rows}


def _measured(args: argparse.Namespace, dtype: Any) -> dict[str, Any]:
    """Number of rows (as text) to milliseconds, and the thread count."""
    from accel.decoding.engine import Engine
    from accel.models.base import Model
    from operating_system.machine import cores
    from tests.benchmarks.forwards.timing import timed_costs
    from tests.benchmarks.model_shapes import model_of_shape
    from tests.benchmarks.peers.hf_generate import set_threads, threads

    if args.shape:
        if args.threads:
            set_threads(args.threads)
        model: Model = model_of_shape(args.shape, dtype)
        model.threads = args.threads or cores()
    else:
        engine = Engine.load(
            args.model,
            dtype=dtype,
            threads=args.threads,
            device=args.device,
            kv_type=args.kv_type,
        )
        model = engine.model
    costs = timed_costs(model, args.seconds, ROWS, (args.context,))
    figures = zip(costs.rows, costs.seconds[0], strict=True)
    return {"threads": model.threads if model.device == "cpu" else threads()} | {
        str(count): float(time_s) * 1e3 for count, time_s in figures
    }


def _beside_peer(args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """``forward_ms``, ``prefill_ms`` and ``resident_mb`` of our engine and the peers."""
    from operating_system.machine import cores
    from tests.benchmarks.forwards.measured_engine import MeasuredEngine
    from tests.benchmarks.forwards.turns import measure_in_turns
    from tests.benchmarks.peers.child_process import ChildProcess
    from tests.benchmarks.peers.gguf_engines import chosen_engines, open_engine

    if args.shape or args.dtype == "both":
        raise BenchError("--peer measures one file as it is; leave --shape and --dtype both out")
    file, threads = gguf_file(args.model), args.threads or cores()
    peers = chosen_engines(args.peer)
    task = progress.add_task("loading", total=None)
    room = args.context + max(*ROWS, PROMPT_TOKENS)
    with ExitStack() as stack:
        ours = ChildProcess("redraft", MeasuredEngine, str(file), args.dtype or STORED, threads,
                            args.backend, args.kv_type)  # fmt: skip
        engines = {"redraft": stack.enter_context(ours)}
        for name in peers:
            engines[name] = stack.enter_context(open_engine(name, file, threads, room))
        progress.update(task, description="timing forwards by turns")
        return measure_in_turns(
            engines,
            rows=ROWS,
            context=args.context,
            prompt=PROMPT_TOKENS,
            seconds=args.seconds,
            turned=lambda: progress.advance(task),
        )
