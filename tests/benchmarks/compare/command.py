"""``tests.benchmarks compare``: methods side by side on one page, measured in one run.

Runs the benches for completion and for edits one after another, with the same options, and puts
their results into one table. ``--page`` says which: all drafting systems, sampling at several
temperatures, or whether drafts ever cost more than they save.
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

from lsp_server.shared.errors import BenchError
from tests.benchmarks.compare.page import written
from tests.benchmarks.dtypes import CHOICES, FASTEST, STORED, is_gguf_file

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One bench with its options. ``given``: the option that takes ``file``."""

    heading: str
    bench: str
    file: str
    limit: int
    options: tuple[str, ...] = ()
    given: str = "--cases"


@dataclass(frozen=True, slots=True)
class Page:
    """What is measured for one page, on rows of methods."""

    rows: tuple[str, ...]
    columns: tuple[Column, ...]


REPOEVAL, HUMANEVAL = "completion_repoeval.jsonl", "completion_humaneval.jsonl"
INFILLING = "completion_infilling.jsonl"
LEFT = ("--left-only",)
"""A model that was given the suffix ends its text, and benches go on behind the end."""
RUN_ON = (*LEFT, "--stop", "length", "--max-tokens", "256")
OURS_ALONE = ("--no-hf", "--one-dtype")
ADVERSE = (*OURS_ALONE, "--max-tokens", "256", "--repeat", "2")
SAMPLED = (*OURS_ALONE, *LEFT, "--top-p", "0.95", "--temperature")

PAGES = {
    "systems": Page(
        (
            *("plain", "hf-generate", "hf-prompt-lookup", "standard-sd", "draft-model"),
            *("self-speculative", "rest", "suffix-decoding", "fastcoder", "fastfixer"),
            *("efficientedit", "sdsat", "redraft"),
        ),
        (
            Column("completion, run-on", "completion", REPOEVAL, 6, RUN_ON),
            Column("completion to the function's end", "completion", REPOEVAL, 16, LEFT),
            Column("infilling", "completion", INFILLING, 24),
            Column("edits", "edit", "repos", 12, ("--max-tokens", "256"), "--kinds"),
        ),
    ),
    "sampling": Page(
        ("plain", "fastcoder", "sdsat", "redraft"),
        tuple(
            Column(
                f"{name}, temperature {temperature}",
                "completion",
                file,
                16,
                (*SAMPLED, temperature),
            )
            for name, file in (("RepoEval", REPOEVAL), ("HumanEval", HUMANEVAL))
            for temperature in ("0", "0.2", "1")
        ),
    ),
    "never-slower": Page(
        ("plain", "redraft"),
        (
            *(
                Column(
                    f"{kind}, temperature {temperature}",
                    "completion",
                    kind,
                    24,
                    (*ADVERSE, "--temperature", temperature),
                )
                for kind in ("random", "prose")
                for temperature in ("0", "1")
            ),
            Column("code", "completion", REPOEVAL, 24, (*ADVERSE, *LEFT)),
            Column("infilling", "completion", INFILLING, 48, ADVERSE),
        ),
    ),
}
"""systems: standard-sd is transformers' own, draft-model the same rule in our engine. The limits
are meant for five minutes of two quiet cores for the first page and two for the others."""
MADE = ("random", "prose")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--cases", type=Path, required=True, help="folder of the case files")
    parser.add_argument(
        "--page",
        choices=tuple(PAGES),
        default="systems",
        help="systems: all that draft; sampling: temperatures 0, 0.2 and 1; never-slower: time "
        "against plain decoding in pairs, on text that no datastore knows and on code",
    )
    parser.add_argument("--model", metavar="DIR", help="folder or GGUF file; else the chosen one")
    parser.add_argument("--draft-model", metavar="DIR", help="smaller model of the same tokenizer")
    parser.add_argument("--dtype", choices=CHOICES, help="of weights; else what the engine takes")
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
    parser.add_argument("--columns", metavar="TEXT", help="only columns whose heading holds this")
    parser.add_argument("--limit", type=int, help="cases in each column instead of the page's own")
    parser.add_argument("--max-tokens", type=int, help="tokens of a text at most, as of the page")
    parser.add_argument("--common", metavar="DIR|none", help="common code, as in bench completion")
    parser.add_argument("--seed", type=int, default=0, help="seed of every random choice")
    parser.add_argument("--markdown", type=Path, metavar="PATH", help="write the page here, too")
    parser.add_argument("--json", metavar="PATH", help="write all results as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure all columns, print the page and write it; 1 where a column could not be measured.

    Raises BenchError.
    """
    from tests.benchmarks.methods import choose, find_draft_model

    chosen = PAGES[args.page]
    known = list(PAGES["systems"].rows)
    rows = choose(args.rows, known, "--rows") if args.rows else list(chosen.rows)
    columns = [each for each in chosen.columns if (args.columns or "") in each.heading]
    if not columns:
        headings = "; ".join(each.heading for each in chosen.columns)
        raise BenchError(f"--columns {args.columns} is in no heading; there are: {headings}")
    if not args.cases.is_dir():
        raise BenchError(f"{args.cases} is no folder; give the folder of the case files")
    args.draft_model = find_draft_model(args.draft_model, args.model)
    stored = STORED if is_gguf_file(args.model) else None
    args.dtype = args.dtype or stored or _dtype_taken(args)
    documents: dict[str, Document] = {}
    for column in columns:
        documents[column.heading] = _kept(column, args, rows)
        # After every column, so that what was measured outlives a later failure.
        text = written(documents, rows, pairs=args.page == "never-slower")
        if args.markdown:
            args.markdown.write_text(text, "utf-8")
        if args.json:
            Path(args.json).write_text(json.dumps(documents, indent=2) + "\n", "utf-8")
    print(text, end="")
    return int(any("failed" in document for document in documents.values()))


def _dtype_taken(args: argparse.Namespace) -> str:
    from accel.decoding.engine import Engine

    return Engine.load(args.model, threads=args.threads, device=args.device).dtype


def _kept(column: Column, args: argparse.Namespace, rows: list[str]) -> Document:
    """The document of a column, or why there is none: the other columns shall be measured."""
    try:
        return _measured(column, args, rows)
    except Exception as error:
        message = " ".join(str(error).split())
        return {"failed": f"{type(error).__name__}: {message}", "bench": column.bench}


def _measured(column: Column, args: argparse.Namespace, rows: list[str]) -> Document:
    """The document of a column's bench, which prints on standard error meanwhile."""
    known, bench_of = _known(column.bench)
    methods = [row for row in rows if row in known]
    file = Path(column.file) if column.file in MADE else args.cases / column.file
    limit = args.limit or column.limit
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "column.json")
        command = [column.given, str(file), "--target", "model", "--json", str(out)]
        command += ["--methods", ",".join(methods), "--skip", ",".join(methods)]
        command += ["--limit", str(limit), "--dtype", args.dtype, "--device", args.device]
        command += ["--hf-dtype", FASTEST, "--seed", str(args.seed), *column.options]
        for name in ("model", "draft_model", "threads", "common"):
            value = getattr(args, name)
            if value is not None:
                command += [f"--{name.replace('_', '-')}", str(value)]
        if column.bench == "completion":
            command += ["--repetition-penalty", str(args.repetition_penalty)]
        if args.max_tokens and "--max-tokens" in column.options:
            command += ["--max-tokens", str(args.max_tokens)]
        parser = argparse.ArgumentParser()
        bench_of.add_arguments(parser)
        with redirect_stdout(sys.stderr):
            bench_of.run(parser.parse_args(command))
        document: Document = json.loads(out.read_text("utf-8"))
    return document | {"bench": column.bench}


def _known(bench: str) -> tuple[list[str], Any]:
    """Methods that a bench knows, and the bench."""
    if bench == "edit":
        from tests.benchmarks.edits import command as edit
        from tests.benchmarks.edits.methods import edit_methods
        from tests.benchmarks.methods import HF_METHODS

        return [*edit_methods(None), *HF_METHODS], edit
    from tests.benchmarks.completion import command as completion
    from tests.benchmarks.methods import DECODABLE

    return DECODABLE, completion
