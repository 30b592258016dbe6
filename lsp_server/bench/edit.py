"""``redraft bench edit``: what each method's drafts are worth on edits with an instruction."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lsp_server.bench.completion import DTYPES, MODEL_COLUMNS, REPLAY_COLUMNS
from lsp_server.errors import BenchError

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

    from accel.engine import Engine
    from accel.sources.protocol import ContinuationIndex
    from accel.tokenizer import Tokenizer
    from lsp_server.bench.cases import EditCase
    from lsp_server.bench.datastores import TokenFiles
    from lsp_server.bench.edit_methods import EditMethod
    from lsp_server.bench.measurement import Measurement

REPLAY_METHODS = "plain,hf-prompt-lookup,fastfixer,efficientedit,redraft"
MODEL_METHODS = "plain,hf-generate,hf-prompt-lookup,fastfixer,efficientedit,redraft"
MODEL_TOKENS = 512
EXACT_COLUMNS = {**MODEL_COLUMNS, "exact": "exact"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--cases", type=Path, help="JSON lines file of {id, instruction, before, after}"
    )
    what.add_argument(
        "--kinds",
        type=Path,
        metavar="DIR",
        help="make edits of every kind of instruction from the repositories (.jsonl) of a folder",
    )
    parser.add_argument("--per-kind", type=int, default=8, help="edits of each kind")
    parser.add_argument(
        "--target",
        choices=("replay", "model"),
        default="replay",
        help="replay: the reference is the model's output; model: a real model edits",
    )
    parser.add_argument(
        "--instruction",
        choices=("descriptive", "lazy"),
        default="descriptive",
        help="which of a case's two instructions, where it has two",
    )
    parser.add_argument(
        "--methods",
        metavar="M1,M2,…",
        help=f"methods to compare (replay: {REPLAY_METHODS}; model: {MODEL_METHODS}); "
        "further ones: see the message for an unknown one",
    )
    parser.add_argument("--limit", type=int, help="take this many cases, evenly spread")
    parser.add_argument("--max-nodes", type=int, default=128, help="nodes of a draft tree at most")
    parser.add_argument(
        "--max-tokens",
        type=int,
        help=f"tokens of an answer at most (replay: the whole reference; model: {MODEL_TOKENS})",
    )
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")
    parser.add_argument("--top-p", type=float, default=1.0, help="nucleus of sampling")
    parser.add_argument("--seed", type=int, default=0, help="seed of every random choice")
    parser.add_argument("--common", metavar="DIR|none", help="common code: a folder, none, or by "
                        "default the libraries of this environment")  # fmt: skip
    parser.add_argument(
        "--skip", metavar="PEERS", default="", help="peers that may be missing, by comma"
    )
    parser.add_argument("--model", metavar="DIR", help="model folder; else the embedded model")
    parser.add_argument("--draft-model", metavar="DIR", help="smaller model of the same tokenizer")
    parser.add_argument("--dtype", choices=DTYPES, default="fp32", help="of weights and KV cache")
    parser.add_argument("--threads", type=int, help="CPU threads; the engine's choice if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    parser.add_argument(
        "--one-dtype",
        action="store_true",
        help="measure plain decoding in --dtype alone; speed-ups are then against that",
    )
    parser.add_argument(
        "--pass-at-1",
        action="store_true",
        help="run the cases' own tests on what the model wrote, in a process with limits",
    )
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write plots as PNG here")
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="PATH",
        help="write the results as JSON, to standard output without PATH",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the document.

    Raises BenchError for wrong options and for a peer that is missing and not in ``--skip``.
    """
    from lsp_server.bench import edit_plot, report

    _check(args)
    cases = _cases(args)
    with report.progress() as progress:
        measure = _replayed if args.target == "replay" else _decoded
        document, measurements = measure(args, cases, progress)
    if args.plots:
        edit_plot.draw(measurements, args.plots)
    report.publish(document, args.json, tables(document))
    return 0


def tables(document: dict[str, Any]) -> list[Table]:
    """A table for all cases, one for each group, and one for plain decoding."""
    from lsp_server.bench import report

    columns = REPLAY_COLUMNS if document["options"]["target"] == "replay" else EXACT_COLUMNS
    if any("pass_at_1" in fields for fields in document["methods"].values()):
        columns = columns | {"pass_at_1": "pass@1"}
    made = [report.table("all cases", document["methods"], columns)]
    made += [report.table(name, group, columns) for name, group in document["groups"].items()]
    if document.get("plain_decoding"):
        heading = f"plain decoding; fastest: {document['fastest_plain']}"
        made.append(report.table(heading, document["plain_decoding"], MODEL_COLUMNS))
    return made


def _check(args: argparse.Namespace) -> None:
    for name in ("limit", "max_nodes", "max_tokens", "threads", "per_kind"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise BenchError(f"--{name.replace('_', '-')} is {value}; give 1 or more")
    if args.pass_at_1 and args.target != "model":
        raise BenchError("--pass-at-1 tests what a model writes; add --target model")
    if args.pass_at_1 and not args.cases:
        raise BenchError("--pass-at-1 needs cases with tests; give --cases")


def _cases(args: argparse.Namespace) -> list[EditCase]:
    from lsp_server.bench.cases import evenly_spread, load_edit_cases
    from lsp_server.bench.edit_cases import made_edits

    if args.kinds:
        return evenly_spread(made_edits(args.kinds, args.per_kind, args.seed), args.limit)
    cases = load_edit_cases(args.cases, args.limit)
    if not cases:
        raise BenchError(f"{args.cases} holds no case; give another file or a larger --limit")
    return cases


def _replayed(
    args: argparse.Namespace, cases: list[EditCase], progress: Progress
) -> tuple[dict[str, Any], list[Measurement]]:
    from accel.loading import find_folder
    from accel.tokenizer import Tokenizer
    from lsp_server.bench import report
    from lsp_server.bench.edit_replay import replay_edits

    folder = find_folder(args.model)
    tokenizer = Tokenizer.from_folder(folder)
    common, index = _common(args, tokenizer, progress)
    methods, missing = _methods(args, args.methods or REPLAY_METHODS, tokenizer, common, None)
    task = progress.add_task("replaying", total=len(cases))
    measurements = list(
        replay_edits(
            cases,
            methods,
            tokenizer,
            index,
            max_nodes=args.max_nodes,
            max_tokens=args.max_tokens,
            instruction_of=_instruction(args),
            group_of=_kind if args.kinds else None,
            done=lambda: progress.advance(task),
        )
    )
    document = report.results(measurements, missing) | _circumstances(args, folder.name, "none")
    return document, measurements


def _decoded(
    args: argparse.Namespace, cases: list[EditCase], progress: Progress
) -> tuple[dict[str, Any], list[Measurement]]:
    from accel.engine import Engine
    from lsp_server.bench import report
    from lsp_server.bench.edit_decoders import make_decoders
    from lsp_server.bench.edit_model import decode_edits
    from lsp_server.bench.methods import PLAIN

    def load(model: str | None) -> Engine:
        return Engine.load(model, dtype=args.dtype, threads=args.threads, device=args.device)

    engine = load(args.model)
    draft = load(args.draft_model) if args.draft_model else None
    common, index = _common(args, engine.tokenizer, progress)
    names = f"{PLAIN},{args.methods or MODEL_METHODS}"
    methods, missing = _methods(args, names, engine.tokenizer, common, draft)
    decoders, baselines = make_decoders(args, engine, methods)
    task = progress.add_task("editing", total=len(cases))
    pairs = list(
        decode_edits(
            cases,
            {**decoders, **baselines},
            engine,
            index,
            max_tokens=args.max_tokens or MODEL_TOKENS,
            instruction_of=_instruction(args),
            group_of=_kind if args.kinds else None,
            hf_decoder="hf-generate"
            if "hf-generate" in decoders and not args.temperature
            else None,
            done=lambda: progress.advance(task),
        )
    )
    if not pairs:
        raise BenchError("no case fits the model's context; give fewer --max-tokens")
    measured = [measurement for measurement, _ in pairs]
    compared = [each for each in measured if each.method in decoders]
    document = report.results(compared, missing)
    document |= _circumstances(args, engine.name, engine.dtype)
    report.add_speedups(
        document, [each for each in measured if each.method in (PLAIN, "hf-generate", *baselines)]
    )
    if args.pass_at_1:
        _add_passes(args, document, pairs)
    return document, compared


def _add_passes(
    args: argparse.Namespace, document: dict[str, Any], pairs: list[tuple[Measurement, str]]
) -> None:
    """Share of the cases whose own tests pass on what each method wrote."""
    from lsp_server.bench.pass_at_1 import passes, tests_of

    tests = tests_of(args.cases)
    known: dict[tuple[str, str], bool] = {}
    for name, fields in document["methods"].items():
        written = [(each.case, text) for each, text in pairs if each.method == name]
        for case, text in written:
            if (case, text) not in known:
                known[case, text] = passes(text, tests[case])
        if written:
            fields["pass_at_1"] = sum(known[each] for each in written) / len(written)


def _methods(
    args: argparse.Namespace,
    names: str,
    tokenizer: Tokenizer,
    common: TokenFiles,
    draft: Engine | None,
) -> tuple[dict[str, EditMethod], dict[str, str]]:
    """Methods by name, and why those named in ``--skip`` are missing."""
    from accel.errors import PeerUnavailable
    from lsp_server.bench.edit_methods import EditMethod, edit_methods
    from lsp_server.bench.methods import HF_METHODS, MethodSetup, choose

    builders = edit_methods(draft)
    known = [*builders, *([] if args.target == "replay" else HF_METHODS)]
    skipped = choose(args.skip, known, "--skip")
    setup = MethodSetup(tokenizer, common, args.seed)
    made: dict[str, EditMethod] = {}
    missing: dict[str, str] = {}
    for name in choose(names, known, "--methods"):
        try:
            if name == "standard-sd" and draft is None:
                raise PeerUnavailable("standard-sd needs a smaller model; give --draft-model DIR")
            made[name] = builders[name](setup) if name in builders else EditMethod(lambda: None)
        except PeerUnavailable as error:
            if name not in skipped:
                raise BenchError(f"{error}; or leave it out with --skip {name}") from error
            missing[name] = str(error)
    return made, missing


def _common(
    args: argparse.Namespace, tokenizer: Tokenizer, progress: Progress
) -> tuple[TokenFiles, ContinuationIndex | None]:
    """Common code that all methods may know, and the index of it for ours."""
    from lsp_server.bench.datastores import common_token_files
    from repo_index.datastore import Datastore

    if args.common == "none":
        return {}, None
    task = progress.add_task("reading common code", total=None)
    files = common_token_files(
        tokenizer,
        Path(args.common) if args.common else None,
        lambda done, total: progress.update(task, completed=done, total=total),
    )
    progress.remove_task(task)
    return files, cast("ContinuationIndex", Datastore.from_token_files({}, files).snapshot())


def _instruction(args: argparse.Namespace) -> Callable[[EditCase], str]:
    if args.instruction == "lazy":
        return lambda case: case.instruction_lazy
    return lambda case: case.instruction


def _kind(case: EditCase) -> str:
    return case.path


def _circumstances(args: argparse.Namespace, model: str, dtype: str) -> dict[str, Any]:
    from lsp_server.bench import report

    options = ("target", "instruction", "limit", "max_nodes", "max_tokens", "common", "per_kind")
    return {
        **report.circumstances(
            model=model, dtype=dtype, seed=args.seed, cases=args.cases or args.kinds
        ),
        "options": {
            name: getattr(args, name)
            for name in (*options, "temperature", "top_p", "threads", "draft_model")
        },
    }
