"""``tests.benchmarks edit``: what each method's drafts are worth on edits with an instruction."""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.shared.errors import BenchError
from tests.benchmarks.completion.command import MODEL_COLUMNS, REPLAY_COLUMNS
from tests.benchmarks.dtypes import settle_dtype
from tests.benchmarks.edits.setup import (
    SAID,
    chosen_cases,
    chosen_methods,
    common_code,
    draft_models,
    group_of,
)
from tests.benchmarks.options import (
    add_case_arguments,
    add_model_arguments,
    add_peer_arguments,
    add_sampling_arguments,
)

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

    from tests.benchmarks.cases import EditCase
    from tests.benchmarks.measurement import Measurement

REPLAY_METHODS = "plain,hf-prompt-lookup,fastfixer,efficientedit,redraft"
MODEL_METHODS = (
    "plain,hf-generate,hf-prompt-lookup,standard-sd,suffix-decoding,fastfixer,"
    "efficientedit-no-draft,efficientedit,redraft"
)
MODEL_TOKENS = 512
EXACT_COLUMNS = {**MODEL_COLUMNS, "exact": "exact", "exact_share": "share"}


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
        choices=("descriptive", "lazy", "both"),
        default="descriptive",
        help="which of a case's two instructions, where it has two; both: one after the other",
    )
    parser.add_argument(
        "--methods",
        metavar="M1,M2,…",
        help=f"methods to compare (replay: {REPLAY_METHODS}; model: {MODEL_METHODS}); "
        "further ones: see the message for an unknown one",
    )
    parser.add_argument(
        "--ablation",
        action="store_true",
        help="measure the rows of EfficientEdit's Tables II and III and its figure 5 instead",
    )
    add_case_arguments(parser, max_nodes=128)
    parser.add_argument(
        "--max-tokens",
        type=int,
        help=f"tokens of an answer at most (replay: the whole reference; model: {MODEL_TOKENS})",
    )
    add_model_arguments(parser)
    add_sampling_arguments(parser)
    add_peer_arguments(parser)
    parser.add_argument(
        "--draft-base", type=Path, metavar="DIR", help="the draft model before its tuning"
    )
    parser.add_argument(
        "--draft-sft", type=Path, metavar="DIR", help="the draft model tuned with --loss all"
    )
    parser.add_argument(
        "--pass-at-1",
        action="store_true",
        help="run the cases' own tests on what the model wrote, in a process with limits",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the document.

    Raises BenchError for wrong options and for a peer that is missing and not in ``--skip``.
    """
    from tests.benchmarks import report
    from tests.benchmarks.peers.gguf_engines import with_peers

    args.methods = with_peers(args.methods, args.peer)
    _check(args)
    settle_dtype(args)
    cases = chosen_cases(args)
    with report.progress() as progress:
        measure = _replayed if args.target == "replay" else _decoded
        document = measure(args, cases, progress)
    report.publish(document, args.json, tables(document))
    return 0


def tables(document: dict[str, Any]) -> list[Table]:
    """A table for all cases, one for each group, and one for plain decoding."""
    from tests.benchmarks import report

    columns = REPLAY_COLUMNS if document["options"]["target"] == "replay" else EXACT_COLUMNS
    heading = "all cases"
    if "references_pass" in document:
        columns = columns | {"pass_at_1": "pass@1"}
        heading += f"; of the references {document['references_pass']:.2f} pass their tests here"
    made = [report.table(heading, document["methods"], columns)]
    groups = {**document["groups"], **document.get("reuse", {})}
    made += [report.table(name, group, columns) for name, group in groups.items()]
    if document.get("plain_decoding"):
        heading = f"plain decoding; fastest: {document['fastest_plain']}"
        made.append(report.table(heading, document["plain_decoding"], MODEL_COLUMNS))
    return made


def _check(args: argparse.Namespace) -> None:
    for name in ("limit", "max_nodes", "max_tokens", "threads", "per_kind"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise BenchError(f"--{name.replace('_', '-')} is {value}; give 1 or more")
    if args.peer and args.target != "model":
        raise BenchError("--peer decodes with a model; add --target model")
    if args.pass_at_1 and args.target != "model":
        raise BenchError("--pass-at-1 tests what a model writes; add --target model")
    if args.pass_at_1 and not args.cases:
        raise BenchError("--pass-at-1 needs cases with tests; give --cases")


def _replayed(
    args: argparse.Namespace, cases: list[EditCase], progress: Progress
) -> dict[str, Any]:
    from accel.models.hub import find_model_path
    from accel.models.model_file import model_file
    from tests.benchmarks import report
    from tests.benchmarks.edits.replay import replay_edits

    folder = find_model_path(args.model)
    tokenizer = model_file(folder).tokenizer
    common, index = common_code(args, tokenizer, progress)
    names = args.methods or REPLAY_METHODS
    methods, missing = chosen_methods(args, names, tokenizer, common, {})
    task = progress.add_task("replaying", total=len(cases))
    measurements = list(
        replay_edits(
            cases,
            methods,
            tokenizer,
            index,
            max_nodes=args.max_nodes,
            max_tokens=args.max_tokens,
            group_of=group_of(args),
            done=lambda: progress.advance(task),
        )
    )
    return report.results(measurements, missing) | _circumstances(args, folder.name, "none")


def _decoded(args: argparse.Namespace, cases: list[EditCase], progress: Progress) -> dict[str, Any]:
    from accel.decoding.engine import Engine
    from tests.benchmarks import report
    from tests.benchmarks.edits.ablation import ABLATION
    from tests.benchmarks.edits.decoders import make_decoders
    from tests.benchmarks.edits.model import decode_edits
    from tests.benchmarks.gguf_peers import add_chains, with_best_chains
    from tests.benchmarks.hf_peers import HF_GENERATE
    from tests.benchmarks.methods import PLAIN, find_draft_model, without_hf
    from tests.benchmarks.tolerance import Tolerance

    args.draft_model = find_draft_model(args.draft_model, args.model)
    engine = Engine.load(
        args.model,
        dtype=args.dtype,
        threads=args.threads,
        device=args.device,
        backend=args.backend,
        kv_type=args.kv_type,
    )
    drafts = draft_models(args)
    common, index = common_code(args, engine.tokenizer, progress)
    default = ",".join(["fastfixer", *ABLATION, "redraft"]) if args.ablation else MODEL_METHODS
    default = without_hf(default) if args.no_hf else default
    names = f"{PLAIN},{args.methods or default}"
    tolerance = Tolerance(args.skip.split(","))
    methods, missing = chosen_methods(
        args, names, engine.tokenizer, common, drafts, engine, tolerance
    )
    decoders = make_decoders(args, engine, methods)
    task = progress.add_task("editing", total=len(cases))
    with closing(decoders.gguf_peers):
        pairs = list(
            decode_edits(
                cases,
                {**decoders.methods, **decoders.baselines},
                engine,
                index,
                max_tokens=args.max_tokens or MODEL_TOKENS,
                group_of=group_of(args),
                hf_plain=decoders.hf_plain,
                checks=decoders.checks,
                tolerance=tolerance,
                done=lambda: progress.advance(task),
            )
        )
    if not pairs:
        raise BenchError("no case fits the model's context; give fewer --max-tokens")
    pairs = [each for each in pairs if each[0].method not in tolerance.failed]
    measured = [measurement for measurement, _ in pairs]
    compared = [each for each in measured if each.method in decoders.methods]
    compared, chain_speeds = with_best_chains(compared)
    document = report.results(compared, missing | tolerance.failed)
    document |= _circumstances(args, engine.name, engine.dtype) | decoders.settings
    add_chains(document, chain_speeds)
    plain = [PLAIN, HF_GENERATE, *decoders.baselines]
    report.add_speedups(document, [each for each in measured if each.method in plain])
    report.add_best_peer(document)
    _add_reuse(document, measured, plain)
    _add_exact_shares(document)
    if args.pass_at_1:
        _add_passes(args, document, pairs)
    return document


def _add_reuse(document: dict[str, Any], measured: list[Measurement], plain: list[str]) -> None:
    """``reuse``: the methods by bins of the reuse rate, where the groups are others."""
    from tests.benchmarks import report
    from tests.benchmarks.edits.cases import reuse_bin

    binned = [replace(each, group=reuse_bin(each.reuse or 0.0)) for each in measured]
    if {each.group for each in binned} & set(document["groups"]):
        return
    bins = report.results([each for each in binned if each.method in document["methods"]], {})
    report.add_speedups(bins, [each for each in binned if each.method in plain])
    document["reuse"] = bins["groups"]


def _add_exact_shares(document: dict[str, Any]) -> None:
    """``exact_share``: of the cases, those whose raw text is the reference."""
    for methods in (
        document["methods"],
        *document["groups"].values(),
        *document.get("reuse", {}).values(),
    ):
        for fields in methods.values():
            if "unavailable" not in fields:
                fields["exact_share"] = fields["exact"] / max(fields["cases"], 1)


def _add_passes(
    args: argparse.Namespace, document: dict[str, Any], pairs: list[tuple[Measurement, str]]
) -> None:
    """Share of the cases whose own tests pass on what each method wrote."""
    from tests.benchmarks.cases import load_edit_cases
    from tests.benchmarks.pass_at_1 import passes, tests_of

    tests = tests_of(args.cases)
    known: dict[tuple[str, str], bool] = {}
    for name, fields in document["methods"].items():
        written = [(each.case, text) for each, text in pairs if each.method == name]
        for case, text in written:
            if (case, text) not in known:
                known[case, text] = passes(text, tests[case.split(SAID)[0]])
        if written:
            fields["pass_at_1"] = sum(known[each] for each in written) / len(written)
    decoded = {each.case.split(SAID)[0] for each, _ in pairs}
    references = [case for case in load_edit_cases(args.cases) if case.id in decoded]
    # Tests may need libraries that are not here: no method can pass more than the references do.
    passing = sum(passes(case.after, tests[case.id]) for case in references)
    document["references_pass"] = passing / max(len(references), 1)


def _circumstances(args: argparse.Namespace, model: str, dtype: str) -> dict[str, Any]:
    from tests.benchmarks import report

    options = ("target", "instruction", "limit", "max_nodes", "max_tokens", "common", "per_kind")
    return {
        **report.circumstances(
            model=model, dtype=dtype, seed=args.seed, cases=args.cases or args.kinds
        ),
        "options": {
            **{name: getattr(args, name) for name in (*options, "temperature", "top_p", "threads")},
            "draft_model": Path(args.draft_model).name if args.draft_model else None,
        },
    }
