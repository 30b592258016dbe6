"""``tests.benchmarks completion``: what each method's drafts are worth on completion cases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.shared.errors import BenchError
from tests.benchmarks.completion.targets import (
    MODEL_METHODS,
    REPLAY_METHODS,
    known_methods,
    measure_model,
    measure_own_text,
    measure_replay,
    target_of,
)
from tests.benchmarks.dtypes import settle_dtype
from tests.benchmarks.options import (
    add_case_arguments,
    add_model_arguments,
    add_peer_arguments,
    add_sampling_arguments,
)

if TYPE_CHECKING:
    from rich.table import Table

    from tests.benchmarks.cases import CompletionCase

REPLAY_COLUMNS = {
    "cases": "cases",
    "tokens": "tokens",
    "tokens_per_forward": "tokens/forward",
    "tokens_per_forward_mean": "mean of cases",
    "bytes_per_forward": "bytes/forward",
    "nodes_per_forward": "nodes/forward",
    "draft_us_p50": "draft µs p50",
    "draft_us_p95": "p95",
}
SHAPE_COLUMNS = {
    "projected_tokens_per_forward": "planned tokens/forward",
    "projected_nodes_per_forward": "planned nodes",
    "projected_speedup": "projected speed-up",
}
MODEL_COLUMNS = {
    "cases": "cases",
    "tokens": "tokens",
    "tokens_per_forward": "tokens/forward",
    "nodes_per_forward": "nodes",
    "draft_us_p50": "draft µs",
    "drafting_share": "drafting",
    "verify_ms_p50": "verify ms",
    "ms_per_token": "ms/token",
    "tokens_per_s": "tokens/s",
    "speedup": "speed-up",
    "over_best_peer": "× best peer",
    "identical": "= plain",
    "identical_hf": "= HF",
    "repeated_16grams": "repeated",
    "edit_similarity": "similarity",
    "pair_ratio": "time / plain",
}
WHOLE_COLUMNS = {
    "prompt_s": "prompt s",
    "generation_s": "generation s",
    "total_s": "total s",
    "total_speedup": "speed-up",
    "tokens_per_forward": "tokens/forward",
    "identical": "= plain",
    "edit_similarity": "similarity",
}
"""Columns of the paper's Table III."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_completion_arguments(parser)
    add_model_arguments(parser)
    parser.add_argument(
        "--methods",
        metavar="M1,M2,…",
        help=f"methods to compare (replay: {REPLAY_METHODS}; model: {MODEL_METHODS})",
    )
    add_sampling_arguments(parser)
    add_penalty_arguments(parser)
    add_peer_arguments(parser)
    parser.add_argument(
        "--draft-layers",
        metavar="N|A,B,…",
        help="layers of the model that draft in self-speculative: how many, chosen by measuring, "
        "or which, from 0 (0,1,2: the first three); half of them if left out",
    )
    parser.add_argument(
        "--prompt",
        choices=("file", "repocoder"),
        default="file",
        help="file: the text around the cursor; repocoder: the most similar windows of the "
        "repository before it, retrieved again with what was generated (model only)",
    )
    parser.add_argument(
        "--repeat", type=int, default=1, help="take every case so many times, methods interleaved"
    )
    parser.add_argument(
        "--share-prompts",
        action="store_true",
        help="compute a prompt once for all methods of our engine; saves time, and prefill_s is "
        "then that of the first method",
    )
    parser.add_argument(
        "--similar-bytes",
        type=int,
        default=0,
        help="in replay: draft from what a client sends a server of its datastore, at most this "
        "much; 0: from the whole datastore",
    )
    parser.add_argument(
        "--own-text",
        metavar="MODEL",
        help="in replay: print beside it what this model writes itself, to its end",
    )
    parser.add_argument(
        "--shape",
        help="in replay: measure forwards of a public shape with random weights on this machine "
        "and project the speed-up (0.5B, 1.3B or 7B)",
    )


def add_completion_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that say what is completed, and where the results go."""
    parser.add_argument(
        "--cases",
        type=Path,
        required=True,
        help="JSON lines file of cases; random or prose makes text that no datastore knows",
    )
    parser.add_argument(
        "--target",
        choices=("replay", "model"),
        help="replay: the reference is the model's output; model: a real model decodes; replay "
        "where it is left out, unless a method needs a model",
    )
    parser.add_argument("--max-tokens", type=int, default=512, help="tokens of a text at most")
    parser.add_argument(
        "--stop",
        choices=("reference", "length", "end"),
        default="reference",
        help="reference: as many tokens as it has; length: --max-tokens, run-on; end: the model's "
        "own end (model only)",
    )
    parser.add_argument(
        "--left-only", action="store_true", help="leave the text after the cursor out"
    )
    add_case_arguments(parser, max_nodes=64)


def add_penalty_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of tokens that stand in the text already."""
    parser.add_argument(
        "--repetition-penalty",
        type=float,
        default=1.0,
        metavar="X",
        help="for tokens of the text so far, as in transformers; 1 is none",
    )
    parser.add_argument(
        "--penalise-prompt",
        action="store_true",
        help="the repetition penalty is for tokens of the prompt, too: transformers' default",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the document.

    Raises BenchError for wrong options and for a peer that is missing and not in ``--skip``.
    """
    from tests.benchmarks import report
    from tests.benchmarks.methods import choose
    from tests.benchmarks.peers.gguf_engines import ENGINE_OF, with_peers

    args.methods = with_peers(args.methods, args.peer)
    args.target = target_of(args.target, args.methods)
    settle_dtype(args)
    known = known_methods(args.target)
    choose(args.methods or "", known, "--methods")
    choose(args.skip, known, "--skip")
    if args.shape and args.target != "replay":
        raise BenchError("--shape projects from a replay; leave --target model out")
    if args.prompt != "file" and args.target != "model":
        raise BenchError(
            "--prompt repocoder retrieves with what a model writes; use --target model"
        )
    others = ENGINE_OF.keys() & (args.methods or "").split(",")
    if args.stop == "end" and (args.target == "replay" or others):
        raise BenchError("--stop end is for a model's own end, in our engine or in transformers")
    cases = load_cases(args)
    with report.progress() as progress:
        measure = measure_replay if args.target == "replay" else measure_model
        document = measure(args, cases, progress)
        if args.own_text and args.target == "replay":
            document["own_text"] = measure_own_text(args, cases, progress)
    report.publish(document, args.json, tables(document))
    return 0


def tables(document: dict[str, Any]) -> list[Table]:
    """A table for all cases and one for each group."""
    from tests.benchmarks import report

    columns = MODEL_COLUMNS
    if document["options"]["target"] == "replay":
        columns = REPLAY_COLUMNS | (SHAPE_COLUMNS if document["options"]["shape"] else {})
    made = [report.table("all cases", document["methods"], columns)]
    hardly = document.get("hardly_repeated")
    if hardly:
        heading = (
            f"the {hardly['cases']} of {hardly['of_cases']} cases whose text has at most 20 % "
            f"repeated {hardly['run']}-grams"
        )
        made.append(report.table(heading, hardly["methods"], columns))
    if document["options"].get("prompt") == "repocoder":
        heading = "retrieve, generate, retrieve and generate again"
        made.append(report.table(heading, document["methods"], WHOLE_COLUMNS))
    if len(document["groups"]) > 1:
        made += [report.table(name, group, columns) for name, group in document["groups"].items()]
    if document.get("plain_decoding"):
        heading = f"plain decoding; fastest: {document['fastest_plain']}"
        made.append(report.table(heading, document["plain_decoding"], MODEL_COLUMNS))
    if own := document.get("own_text"):
        made += [report.table("own text", own["methods"], MODEL_COLUMNS), *tables(own)[1:2]]
    return made


def load_cases(args: argparse.Namespace) -> list[CompletionCase]:
    """The cases that the options name. Raises BenchError for options without meaning."""
    from tests.benchmarks.cases import load_completion_cases
    from tests.benchmarks.made_cases import MADE, made_cases

    for name in ("limit", "max_nodes", "max_tokens", "threads", "repeat"):
        value = getattr(args, name, None)
        if value is not None and value < 1:
            raise BenchError(f"--{name.replace('_', '-')} is {value}; give 1 or more")
    if str(args.cases) in MADE and not args.cases.exists():
        return made_cases(str(args.cases), args.limit, args.seed)
    cases = load_completion_cases(args.cases, args.limit)
    if not cases:
        raise BenchError(f"{args.cases} holds no case; give another file")
    return cases
