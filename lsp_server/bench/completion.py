"""``redraft bench completion``: what each method's drafts are worth on completion cases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.errors import BenchError

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

    from accel.planner import Planner
    from accel.sampling import Sampling
    from accel.tokenizer import Tokenizer
    from lsp_server.bench.cases import CompletionCase
    from lsp_server.bench.datastores import CaseDatastores, TokenFiles
    from lsp_server.bench.measurement import Measurement
    from lsp_server.bench.methods import MakeDrafter

REPLAY_METHODS = "plain,hf-prompt-lookup,rest-rule,fastcoder,redraft"
MODEL_METHODS = "plain,hf-generate,hf-prompt-lookup,fastcoder,redraft"
DTYPES = ("fp32", "bf16")

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
    "verify_ms_p50": "verify ms",
    "tokens_per_s": "tokens/s",
    "speedup": "speed-up",
    "identical": "= plain",
    "identical_hf": "= HF",
    "repeated_16grams": "repeated",
    "edit_similarity": "similarity",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_case_arguments(parser)
    add_model_arguments(parser)
    parser.add_argument(
        "--methods",
        metavar="M1,M2,…",
        help=f"methods to compare (replay: {REPLAY_METHODS}; model: {MODEL_METHODS})",
    )
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")
    parser.add_argument("--top-p", type=float, default=1.0, help="nucleus of sampling")
    parser.add_argument(
        "--skip", metavar="PEERS", default="", help="peers that may be missing, by comma"
    )
    parser.add_argument("--draft-model", metavar="DIR", help="smaller model for standard-sd")
    parser.add_argument(
        "--one-dtype",
        action="store_true",
        help="measure plain decoding in --dtype alone; speed-ups are then against that",
    )
    parser.add_argument(
        "--shape",
        help="in replay: measure forwards of a public shape with random weights on this machine "
        "and project the speed-up (0.5B, 1.3B or 7B)",
    )
    parser.add_argument("--plots", type=Path, metavar="DIR", help="write plots as PNG here")


def add_case_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that say what is completed, and where the results go."""
    parser.add_argument("--cases", type=Path, required=True, help="JSON lines file of cases")
    parser.add_argument(
        "--target",
        choices=("replay", "model"),
        default="replay",
        help="replay: the reference is the model's output; model: a real model decodes",
    )
    parser.add_argument("--limit", type=int, help="take this many cases, evenly spread")
    parser.add_argument("--max-nodes", type=int, default=64, help="nodes of a draft tree at most")
    parser.add_argument("--max-tokens", type=int, default=512, help="tokens of a text at most")
    parser.add_argument(
        "--stop",
        choices=("reference", "length"),
        default="reference",
        help="reference: as many tokens as it has; length: --max-tokens, run-on",
    )
    parser.add_argument(
        "--left-only", action="store_true", help="leave the text after the cursor out"
    )
    parser.add_argument(
        "--common",
        metavar="DIR|none",
        help="common code: a folder, none, or by default the libraries of this environment",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of every random choice")
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="PATH",
        help="write the results as JSON, to standard output without PATH",
    )


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that say which model runs and how."""
    parser.add_argument("--model", metavar="DIR", help="model folder; else the embedded model")
    parser.add_argument("--dtype", choices=DTYPES, default="fp32", help="of weights and KV cache")
    parser.add_argument("--threads", type=int, help="CPU threads; the engine's choice if left out")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the document.

    Raises BenchError for wrong options and for a peer that is missing and not in ``--skip``.
    """
    from lsp_server.bench import plots, report
    from lsp_server.bench.methods import choose

    known = _known(args.target)
    choose(args.methods or "", known, "--methods")
    choose(args.skip, known, "--skip")
    if args.shape and args.target != "replay":
        raise BenchError("--shape projects from a replay; leave --target model out")
    cases = load_cases(args)
    with report.progress() as progress:
        measure = _measure_replay if args.target == "replay" else _measure_model
        document, measurements, tokenizer = measure(args, cases, progress)
    if args.plots:
        plots.draw(document, measurements, tokenizer, args.plots)
    report.publish(document, args.json, tables(document))
    return 0


def tables(document: dict[str, Any]) -> list[Table]:
    """A table for all cases and one for each group."""
    from lsp_server.bench import report

    columns = MODEL_COLUMNS
    if document["options"]["target"] == "replay":
        columns = REPLAY_COLUMNS | (SHAPE_COLUMNS if document["options"]["shape"] else {})
    made = [report.table("all cases", document["methods"], columns)]
    if len(document["groups"]) > 1:
        made += [report.table(name, group, columns) for name, group in document["groups"].items()]
    if document.get("plain_decoding"):
        heading = f"plain decoding; fastest: {document['fastest_plain']}"
        made.append(report.table(heading, document["plain_decoding"], MODEL_COLUMNS))
    return made


def load_cases(args: argparse.Namespace) -> list[CompletionCase]:
    """The cases that the options name. Raises BenchError for options without meaning."""
    from lsp_server.bench.cases import load_completion_cases

    for name in ("limit", "max_nodes", "max_tokens", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise BenchError(f"--{name.replace('_', '-')} is {value}; give 1 or more")
    cases = load_completion_cases(args.cases, args.limit)
    if not cases:
        raise BenchError(f"{args.cases} holds no case; give another file")
    return cases


def _measure_replay(
    args: argparse.Namespace, cases: list[CompletionCase], progress: Progress
) -> tuple[dict[str, Any], list[Measurement], Tokenizer]:
    """Document, measurements and tokenizer of a replay."""
    from accel.loading import find_folder
    from accel.tokenizer import Tokenizer
    from lsp_server.bench import report
    from lsp_server.bench.completion_replay import PROMPT_TOKENS, replay_cases

    folder = find_folder(args.model)
    tokenizer = Tokenizer.from_folder(folder)
    datastores = load_datastores(args, tokenizer, progress)
    planner = _planner(args, progress) if args.shape else None
    methods, missing = _drafters(args, args.methods or REPLAY_METHODS, tokenizer, datastores.common)
    task = progress.add_task("replaying", total=len(cases))
    measurements = list(
        replay_cases(
            cases,
            methods,
            datastores,
            tokenizer,
            max_nodes=args.max_nodes,
            max_tokens=args.max_tokens,
            left_only=args.left_only,
            planner=planner,
            done=lambda: progress.advance(task),
        )
    )
    document = {
        **report.results(measurements, missing),
        **_circumstances(args, folder.name, args.dtype if args.shape else "none"),
    }
    if planner is not None:
        document["forward_ms"] = {
            rows: planner.seconds(rows, PROMPT_TOKENS) * 1e3 for rows in (1, 2, 4, 8, 16, 32, 64)
        }
    return document, measurements, tokenizer


def _measure_model(
    args: argparse.Namespace, cases: list[CompletionCase], progress: Progress
) -> tuple[dict[str, Any], list[Measurement], Tokenizer]:
    """Document, measurements and tokenizer of a run with a real model."""
    from accel.engine import Engine
    from lsp_server.bench import report
    from lsp_server.bench.completion_decoders import make_decoders
    from lsp_server.bench.completion_model import decode_cases
    from lsp_server.bench.methods import PLAIN

    engine = Engine.load(args.model, dtype=args.dtype, threads=args.threads, device=args.device)
    datastores = load_datastores(args, engine.tokenizer, progress)
    names = args.methods or MODEL_METHODS
    drafters, missing = _drafters(args, f"{PLAIN},{names}", engine.tokenizer, datastores.common)
    decoders, baselines = make_decoders(args, engine, drafters, _sampling(args))
    task = progress.add_task("decoding", total=len(cases))
    measurements = list(
        decode_cases(
            cases,
            {**decoders, **baselines},
            datastores,
            engine,
            stop=args.stop,
            max_tokens=args.max_tokens,
            left_only=args.left_only,
            hf_decoder="hf-generate"
            if "hf-generate" in decoders and not args.temperature
            else None,
            done=lambda: progress.advance(task),
        )
    )
    compared = [each for each in measurements if each.method in decoders]
    document = {
        **report.results(compared, missing),
        **_circumstances(args, engine.name, engine.dtype),
    }
    plain = [each for each in measurements if each.method in (PLAIN, "hf-generate", *baselines)]
    report.add_speedups(document, plain)
    return document, compared, engine.tokenizer


def _known(target: str) -> list[str]:
    """Methods of a target; the names alone, nothing is loaded."""
    from lsp_server.bench.methods import DECODABLE, REPLAYABLE

    return REPLAYABLE if target == "replay" else DECODABLE


def _drafters(
    args: argparse.Namespace,
    names: str,
    tokenizer: Tokenizer,
    common: TokenFiles,
) -> tuple[dict[str, MakeDrafter], dict[str, str]]:
    """A maker of drafters for each method, and why methods named in ``--skip`` are missing.

    Methods that transformers decodes draft nothing in our engine.
    """
    from accel.errors import PeerUnavailable
    from lsp_server.bench.methods import DRAFTERS, PLAIN, MethodSetup, choose

    setup = MethodSetup(tokenizer, common, args.seed)
    known = _known(args.target)
    skipped = choose(args.skip, known, "--skip")
    made: dict[str, MakeDrafter] = {}
    missing: dict[str, str] = {}
    for name in choose(names, known, "--methods"):
        try:
            if name == "standard-sd" and not args.draft_model:
                raise PeerUnavailable("standard-sd needs a smaller model; give --draft-model DIR")
            made[name] = DRAFTERS.get(name, DRAFTERS[PLAIN])(setup)
        except PeerUnavailable as error:
            if name not in skipped:
                raise BenchError(f"{error}; or leave it out with --skip {name}") from error
            missing[name] = str(error)
    return made, missing


def load_datastores(
    args: argparse.Namespace, tokenizer: Tokenizer, progress: Progress
) -> CaseDatastores:
    """Datastores of the cases with the common code that ``--common`` names."""
    from lsp_server.bench.datastores import CaseDatastores, common_token_files

    if args.common == "none":
        return CaseDatastores(tokenizer, {})
    task = progress.add_task("reading common code", total=None)
    files = common_token_files(
        tokenizer,
        Path(args.common) if args.common else None,
        lambda done, total: progress.update(task, completed=done, total=total),
    )
    progress.remove_task(task)
    return CaseDatastores(tokenizer, files)


def _planner(args: argparse.Namespace, progress: Progress) -> Planner:
    from accel.shapes import planner_of_shape

    task = progress.add_task(f"timing forwards of the {args.shape} shape", total=None)
    planner = planner_of_shape(args.shape, args.dtype, args.threads)
    progress.remove_task(task)
    return planner


def _sampling(args: argparse.Namespace) -> Sampling:
    from accel.sampling import Sampling

    return Sampling(temperature=args.temperature, top_p=args.top_p, seed=args.seed)


def _circumstances(args: argparse.Namespace, model: str, dtype: str) -> dict[str, Any]:
    from lsp_server.bench import report

    options = ("target", "limit", "max_nodes", "max_tokens", "stop", "left_only", "common")
    return {
        **report.circumstances(model=model, dtype=dtype, seed=args.seed, cases=args.cases),
        "options": {
            name: getattr(args, name)
            for name in (*options, "temperature", "top_p", "threads", "shape")
        },
    }
