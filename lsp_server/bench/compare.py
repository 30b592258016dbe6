"""``redraft bench compare``: every drafting system on one page, measured in one run.

Runs the benches for completion and for edits one after another, with the same options, and puts
their results side by side.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsp_server.bench.completion import DTYPES, FASTEST
from lsp_server.errors import BenchError

ROWS = (
    *("plain", "hf-generate", "hf-prompt-lookup", "standard-sd", "draft-model", "self-speculative"),
    *("rest", "suffix-decoding", "fastcoder", "fastfixer", "efficientedit", "sdsat"),
    *("redraft", "redraft+adaptive"),
)
"""Rows of the page: standard-sd is transformers' own, draft-model the same rule in our engine."""


@dataclass(frozen=True, slots=True)
class Column:
    """One bench with its options."""

    heading: str
    bench: str
    file: str
    limit: int
    options: tuple[str, ...] = ()


COLUMNS = (
    Column(
        "completion, run-on",
        "completion",
        "completion_repoeval.jsonl",
        6,
        ("--stop", "length", "--max-tokens", "256"),
    ),
    Column("completion to the function's end", "completion", "completion_repoeval.jsonl", 12),
    Column("infilling", "completion", "completion_infilling.jsonl", 24),
    Column("edits", "edit", "edit_canitedit.jsonl", 6),
)
"""The defaults are meant to take about ten minutes on two cores that do nothing else."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    limits = ", ".join(f"{column.limit} for {column.heading}" for column in COLUMNS)
    parser.add_argument("--cases", type=Path, required=True, help="folder of the case files")
    parser.add_argument("--model", metavar="DIR", help="model folder; else the embedded model")
    parser.add_argument("--draft-model", metavar="DIR", help="smaller model of the same tokenizer")
    parser.add_argument(
        "--dtype", choices=DTYPES, help="of weights and KV cache; else the faster one, by timing"
    )
    parser.add_argument(
        "--repetition-penalty",
        type=float,
        default=1.0,
        metavar="X",
        help="in the columns of completion, as in bench completion",
    )
    parser.add_argument("--threads", type=int, help="CPU threads; the engine's choice if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    parser.add_argument("--rows", metavar="M1,M2,…", help="methods to compare instead of all")
    parser.add_argument("--limit", type=int, help=f"cases in each column instead of {limits}")
    parser.add_argument("--max-tokens", type=int, help="tokens of a run-on text instead of 256")
    parser.add_argument("--common", metavar="DIR|none", help="common code, as in bench completion")
    parser.add_argument("--seed", type=int, default=0, help="seed of every random choice")
    parser.add_argument("--markdown", type=Path, metavar="PATH", help="write the page here, too")
    parser.add_argument("--json", metavar="PATH", help="write all results as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure all columns, print the page and write it. Raises BenchError."""
    from lsp_server.bench.methods import choose, find_draft_model

    rows = choose(args.rows, list(ROWS), "--rows") if args.rows else list(ROWS)
    if not args.cases.is_dir():
        raise BenchError(f"{args.cases} is no folder; give the folder of the case files")
    args.draft_model = find_draft_model(args.draft_model, args.model)
    args.dtype = args.dtype or _fastest_dtype(args)
    documents: dict[str, dict[str, Any]] = {}
    for column in COLUMNS:
        documents[column.heading] = _measured(column, args, rows)
        # After every column, so that what was measured outlives a later failure.
        text = page(documents, rows)
        if args.markdown:
            args.markdown.write_text(text, "utf-8")
        if args.json:
            Path(args.json).write_text(json.dumps(documents, indent=2) + "\n", "utf-8")
    print(text, end="")
    return 0


def _fastest_dtype(args: argparse.Namespace) -> str:
    from accel.engine import Engine

    return Engine.load(args.model, threads=args.threads, device=args.device).dtype


def page(documents: dict[str, dict[str, Any]], rows: list[str]) -> str:
    """The page in Markdown: tokens per forward, tokens per second, and what was checked."""
    table = [
        "| tokens/forward · tokens/s (× fastest plain) | " + " | ".join(documents) + " |",
        "| --- |" + " ---: |" * len(documents),
    ]
    for row in rows:
        cells = [_cell(document["methods"].get(row)) for document in documents.values()]
        table.append(f"| {row} | " + " | ".join(cells) + " |")
    notes = [f"{heading}: {_told(document)}" for heading, document in documents.items()]
    notes += _absences(documents, rows)
    return "\n\n".join(["\n".join(table), *notes]) + "\n"


def _cell(fields: dict[str, Any] | None) -> str:
    if fields is None:
        return "–"
    if "unavailable" in fields:
        return "not here"
    cell = f"{fields['tokens_per_forward']:.2f} · {fields['tokens_per_s']:.0f}"
    cell += f" ({fields['speedup']:.2f} ×)"
    same, cases = fields["identical"], fields["cases"]
    return cell if same in (None, cases) else f"{cell}, {same} of {cases} texts as plain"


def _told(document: dict[str, Any]) -> str:
    """One line on what a column was measured on."""
    plain = document["methods"]["plain"]
    options = document["options"]
    length = f"at most {options['max_tokens']} tokens"
    if options.get("stop") == "reference":
        length = "to the reference's length"
    elif options.get("stop") is None:
        length = "to the model's end"
    fastest = document["fastest_plain"]
    speed = document["plain_decoding"][fastest]["tokens_per_s"]
    repeated = 100 * plain["repeated_16grams"]
    return (
        f"{plain['cases']} cases of `{document['cases_file']}`, {length}, {plain['tokens']} tokens "
        f"({repeated:.0f} % of the 16-grams repeated); model {document['model']} in "
        f"{document['dtype']}{_transformers(document)}; fastest plain decoding {speed:.0f} "
        f"tokens/s ({fastest})."
        f"{_best_peer(document)}{_hardly_repeated(document)}"
    )


def _transformers(document: dict[str, Any]) -> str:
    setting = document.get("transformers", {})
    if setting.get("threads") is None:
        return ""
    return (
        f" (threads: {document['threads']}), transformers' methods in {setting['dtype']} "
        f"(threads: {setting['threads']})"
    )


def _best_peer(document: dict[str, Any]) -> str:
    ours = document["methods"].get("redraft", {})
    if "over_best_peer" not in ours:
        return ""
    return f" redraft is {ours['over_best_peer']:.2f} × {document['best_peer']}, the best peer."


def _hardly_repeated(document: dict[str, Any]) -> str:
    part = document.get("hardly_repeated", {})
    ours = part.get("methods", {}).get("redraft")
    if ours is None:
        return ""
    return (
        f" On the {part['cases']} texts with at most 20 % repeated 16-grams redraft has "
        f"{ours['tokens_per_forward']:.2f} tokens/forward and is {ours['speedup']:.2f} × the "
        "fastest plain decoding."
    )


def _absences(documents: dict[str, dict[str, Any]], rows: list[str]) -> list[str]:
    """Why rows are not here, each reason once."""
    reasons: dict[str, str] = {}
    for row in rows:
        found = [each["methods"].get(row) for each in documents.values()]
        if not any(found):
            reasons[row] = "no bench knows this method"
        for fields in found:
            if fields and "unavailable" in fields:
                reasons.setdefault(row, fields["unavailable"])
    return [f"{row}: {why}." for row, why in reasons.items()]


def _measured(column: Column, args: argparse.Namespace, rows: list[str]) -> dict[str, Any]:
    """The document of a column's bench, which prints on standard error meanwhile."""
    known, bench_of = _known(column.bench)
    methods = [row for row in rows if row in known]
    file = args.cases / column.file
    limit = args.limit or column.limit
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "column.json")
        command = ["--cases", str(file), "--target", "model", "--json", str(out)]
        command += ["--methods", ",".join(methods), "--skip", ",".join(methods)]
        command += ["--limit", str(limit), "--dtype", args.dtype, "--device", args.device]
        command += ["--hf-dtype", FASTEST, "--seed", str(args.seed), *column.options]
        for name in ("model", "draft_model", "threads", "common"):
            value = getattr(args, name)
            if value is not None:
                command += [f"--{name.replace('_', '-')}", str(value)]
        if column.bench == "completion":
            command += ["--share-prompts", "--repetition-penalty", str(args.repetition_penalty)]
        if args.max_tokens and "length" in column.options:
            command += ["--max-tokens", str(args.max_tokens)]
        parser = argparse.ArgumentParser()
        bench_of.add_arguments(parser)
        with redirect_stdout(sys.stderr):
            bench_of.run(parser.parse_args(command))
        document: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return document


def _known(bench: str) -> tuple[list[str], Any]:
    """Methods that a bench knows, and the bench."""
    if bench == "edit":
        from lsp_server.bench import edit
        from lsp_server.bench.edit_methods import edit_methods
        from lsp_server.bench.methods import HF_METHODS

        return [*edit_methods(None), *HF_METHODS], edit
    from lsp_server.bench import completion
    from lsp_server.bench.methods import DECODABLE

    return DECODABLE, completion
