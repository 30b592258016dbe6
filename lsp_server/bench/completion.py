"""``redraft bench completion``: what each method's drafts are worth on completion cases."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lsp_server.errors import BenchError

COLUMNS = {
    "cases": "cases",
    "tokens": "tokens",
    "tokens_per_forward": "tokens/forward",
    "tokens_per_forward_mean": "mean of cases",
    "bytes_per_forward": "bytes/forward",
    "nodes_per_forward": "nodes/forward",
    "draft_us_p50": "draft µs p50",
    "draft_us_p95": "p95",
}
MODEL_COLUMNS = {
    "verify_ms_p50": "verify ms p50",
    "tokens_per_s": "tokens/s",
    "speedup": "speed-up",
    "identical": "= plain",
    "identical_hf": "= transformers",
    "repeated_16grams": "repeated",
}
REPLAY_METHODS = "plain,hf-prompt-lookup,fastcoder,redraft"
MODEL_METHODS = "plain,hf-generate,hf-prompt-lookup,fastcoder,redraft"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--cases", type=Path, required=True, help="JSON lines file of cases")
    parser.add_argument(
        "--target",
        choices=("replay", "model"),
        default="replay",
        help="replay: the reference is the model's output; model: a real model decodes",
    )
    parser.add_argument(
        "--model", metavar="DIR", help="model folder; the embedded model when left out"
    )
    parser.add_argument(
        "--methods",
        metavar="M1,M2,…",
        help=f"methods to compare ({REPLAY_METHODS} in replay, {MODEL_METHODS} with a model)",
    )
    parser.add_argument(
        "--skip", metavar="PEER", default="", help="peers that may be unavailable, by comma"
    )
    parser.add_argument("--limit", type=int, help="take this many cases, evenly spread")
    parser.add_argument("--max-nodes", type=int, default=64, help="nodes of a draft tree at most")
    parser.add_argument("--max-tokens", type=int, default=512, help="tokens of a text at most")
    parser.add_argument(
        "--left-only", action="store_true", help="leave the text after the cursor out"
    )
    parser.add_argument(
        "--common",
        metavar="DIR|none",
        help="common code: a folder, none, or by default the library of this environment",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of every random choice")
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="PATH",
        help="write the results as JSON, to standard output without PATH",
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the document. Raises BenchError."""
    from lsp_server.bench import report
    from lsp_server.bench.cases import load_completion_cases

    cases = load_completion_cases(args.cases, args.limit)
    if not cases:
        raise BenchError(f"{args.cases} holds no case; give another file or a larger --limit")
    document = replayed(args, cases)
    report.publish(document, args.json, tables(document))
    return 0


def replayed(args: argparse.Namespace, cases: list[Any]) -> dict[str, Any]:
    """The document of a replay."""
    import accel
    from accel.tokenizer import Tokenizer
    from lsp_server.bench import report
    from lsp_server.bench.completion_replay import replay_cases
    from lsp_server.bench.datastores import CaseDatastores

    model = Path(args.model) if args.model else Path(accel.__file__).parent / "default_model"
    tokenizer = Tokenizer.from_folder(model)
    with report.progress() as bar:
        common = common_code(args.common, tokenizer, bar)
        from lsp_server.bench.methods import DRAFTERS, MethodSetup, choose

        setup = MethodSetup(tokenizer, common, args.seed)
        names = choose(args.methods or REPLAY_METHODS, list(DRAFTERS), "--methods")
        methods = {name: DRAFTERS[name](setup) for name in names}
        datastores = CaseDatastores(tokenizer, common)
        task = bar.add_task("replaying", total=len(cases))
        measurements = list(
            replay_cases(
                cases,
                methods,
                datastores,
                tokenizer,
                max_nodes=args.max_nodes,
                max_tokens=args.max_tokens,
                left_only=args.left_only,
                done=lambda: bar.advance(task),
            )
        )
    return {
        **report.results(measurements, {}),
        **report.circumstances(model=model.name, dtype="none", seed=args.seed, cases=args.cases),
    }


def common_code(choice: str | None, tokenizer: Any, bar: Any) -> dict[str, Any]:
    """Token ids of the common code that ``--common`` names."""
    from lsp_server.bench.datastores import common_token_files

    if choice == "none":
        return {}
    task = bar.add_task("reading common code", total=None)
    files = common_token_files(
        tokenizer,
        Path(choice) if choice else None,
        lambda done, total: bar.update(task, completed=done, total=total),
    )
    bar.remove_task(task)
    return files


def tables(document: dict[str, Any]) -> list[Any]:
    """One table for all cases and one for each group."""
    from lsp_server.bench import report

    made = [report.table("all cases", document["methods"], COLUMNS)]
    if len(document["groups"]) > 1:
        made += [report.table(name, group, COLUMNS) for name, group in document["groups"].items()]
    return made
