"""``tests.benchmarks fidelity``: how far quantised forwards agree with the same file in fp32.

All engines are given the same tokens in windows; nothing is generated. A place counts as *clear*
where fp32's best logit exceeds its second by ``CLEAR_GAP``: elsewhere rounding may choose.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError
from tests.benchmarks.dtypes import CHOICES, KV_TYPES, STORED, gguf_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.progress import Progress

    from accel.draft_tree import TokenArray
    from accel.text.tokenizer import Tokenizer
    from tests.benchmarks.peers.judged import Judged

CLEAR_GAP = 0.2
REFERENCE = "fp32"
PEER = "llama-cpp"
ENDS = (".c", ".cc", ".cpp", ".cs", ".go", ".h", ".hpp", ".java", ".js", ".jsx", ".kt", ".lua",
        ".php", ".py", ".rb", ".rs", ".sh", ".swift", ".ts", ".tsx")  # fmt: skip
"""Of names of files that hold code; ``.jsonl`` ones hold rows of ``{path, content}``."""
SHARES = {
    "greedy_agreement": "greedy agreement %",
    "greedy_agreement_clear": "in clear places %",
}
PERPLEXITY = {"perplexity": "perplexity"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", required=True, metavar="FILE", help="GGUF file")
    parser.add_argument(
        "--text", type=Path, required=True, metavar="FOLDER", help="code, as files or as .jsonl of "
        "{path, content}"
    )  # fmt: skip
    parser.add_argument("--tokens", type=int, default=50_000, help="places to look at, at most")
    parser.add_argument("--window", type=int, default=1024, help="tokens of a window")
    parser.add_argument("--dtype", choices=CHOICES, default=STORED, help="of our engine")
    parser.add_argument("--kv-type", choices=KV_TYPES, default="f16", help="of our KV cache")
    parser.add_argument("--threads", type=int, help="CPU threads; all cores if left out")
    parser.add_argument("--no-peer", action="store_true", help="leave llama.cpp out")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the document. Raises BenchError and accel's errors."""
    from tests.benchmarks import report

    if args.tokens < 1 or args.window < 1:
        raise BenchError("give --tokens and --window above 0")
    file = gguf_file(args.model)
    with report.progress() as progress:
        windows = _windows(args, file)
        judged = _judge(args, file, windows, progress)
    figures, tokens = agreements(judged), sum(len(window) - 1 for window in windows)
    document = {
        **figures,
        "tokens": tokens,
        "model": file.name,
        "machine": report.machine(),
        "versions": report.versions(),
    }
    shown = {
        name: {field: value * (100 if field in SHARES else 1) for field, value in fields.items()}
        for name, fields in figures.items()
    }
    title = f"{tokens} tokens in windows of {args.window}"
    report.publish(document, args.json, [report.table(title, shown, SHARES | PERPLEXITY)])
    return 0


def agreements(judged: dict[str, Judged]) -> dict[str, dict[str, float]]:
    """By engine: ``greedy_agreement`` and ``greedy_agreement_clear`` with the reference, shares of
    1, and ``perplexity``, which the reference has alone."""
    import numpy as np

    reference = judged[REFERENCE]
    clear = reference.gaps >= CLEAR_GAP
    found: dict[str, dict[str, float]] = {}
    for name, each in judged.items():
        perplexity = {"perplexity": float(np.exp(-each.log_likelihoods.mean()))}
        if name == REFERENCE:
            found[name] = perplexity
            continue
        agrees = each.greedy == reference.greedy
        found[name] = {
            "greedy_agreement": float(agrees.mean()),
            "greedy_agreement_clear": float(agrees[clear].mean()) if clear.any() else 1.0,
            **perplexity,
        }
    return found


def code_in(folder: Path) -> list[str]:
    """The texts of the files with code in a folder. Raises BenchError where there is none."""
    from tests.benchmarks.cases import read_repository

    files = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
    texts: list[str] = []
    for file in files:
        if file.suffix == ".jsonl" and file.is_file():
            texts += read_repository(file).values()
        elif file.suffix in ENDS and file.is_file():
            texts.append(file.read_text("utf-8", errors="replace"))
    if not texts:
        raise BenchError(f"{folder} has no files of code; give another folder with --text")
    return texts


def windows_of(
    texts: Sequence[str], tokenizer: Tokenizer, tokens: int, window: int
) -> list[TokenArray]:
    """Windows of ``window`` tokens and the one that follows, int32 [window + 1], from all over the
    texts, as many as ``tokens`` has. Raises BenchError where the texts are too short for one."""
    import numpy as np

    from tests.benchmarks.cases import evenly_spread

    whole = np.concatenate([tokenizer.encode(text) for text in texts]).astype(np.int32)
    count = (len(whole) - 1) // window
    if not count:
        raise BenchError(f"the text has {len(whole)} tokens; give more of it or a shorter --window")
    starts = evenly_spread([place * window for place in range(count)], max(tokens // window, 1))
    return [whole[start : start + window + 1] for start in starts]


def _windows(args: argparse.Namespace, file: Path) -> list[TokenArray]:
    from accel.models.model_file import model_file

    tokenizer = model_file(file).tokenizer
    return windows_of(code_in(args.text), tokenizer, args.tokens, args.window)


def _judge(
    args: argparse.Namespace, file: Path, windows: list[TokenArray], progress: Progress
) -> dict[str, Judged]:
    """What every engine says of the windows, one engine after another, each in a process of its
    own that ends before the next begins."""
    from operating_system.machine import cores
    from tests.benchmarks.forwards.measured_engine import MeasuredEngine
    from tests.benchmarks.peers.child_process import ChildProcess
    from tests.benchmarks.peers.fp32_reference import Fp32Reference
    from tests.benchmarks.peers.judged import Judged
    from tests.benchmarks.peers.llama_cpp import LlamaCpp

    threads = args.threads or cores()
    made: dict[str, tuple[Any, ...]] = {
        "redraft": (MeasuredEngine, str(file), args.dtype, threads, "own", args.kv_type),
        PEER: (LlamaCpp, file, threads, args.window),
        REFERENCE: (Fp32Reference, file),
    }
    if args.no_peer:
        del made[PEER]
    else:
        LlamaCpp.check_installed()
    task = progress.add_task("loading", total=len(made) * len(windows))
    judged: dict[str, Judged] = {}
    for name, (make, *arguments) in made.items():
        progress.update(task, description=f"reading with {name}")
        with ChildProcess(name, make, *arguments) as engine:
            parts = []
            for window in windows:
                parts.append(engine.call("judge", window[:-1], window[1:]))
                progress.advance(task)
        judged[name] = Judged.joined(parts)
    return judged
