"""``tests.benchmarks projection``: what measured forwards and replayed drafts come to.

The forwards are those of ``tests.benchmarks forward --peer llama-cpp``, of any file, with random
weights, too; the drafts are replayed on real texts. So a large model is compared without running
it for hours. The bound is what drafts of one width could bring over llama.cpp's plain decoding:
the largest E(T) · t_llama(1) / t(T) over widths T, E being tokens per forward.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError
from tests.benchmarks.options import add_common_code_argument

if TYPE_CHECKING:
    from collections import Counter

    from rich.progress import Progress

    from tests.benchmarks.forwards.projection_texts import ProjectedTexts

WIDTHS = (1, 2, 4, 8, 12, 16, 32, 64)
OURS, PEER = "redraft", "llama-cpp"
COLUMNS = {
    "bound": "bound",
    "bound_rows": "at rows",
    "tokens_per_forward": "tokens/forward",
    "tokens_per_s": "tokens/s",
    "llama_cpp_tokens_per_s": "llama.cpp",
    "llama_cpp_ngram_tokens_per_s": "n-gram",
    "over_llama_cpp": "× llama.cpp",
    "over_best_peer": "× the faster",
    "share_of_bound": "of the bound",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--forwards", type=Path, nargs="+", required=True, metavar="JSON",
                        help="documents of bench forward --peer llama-cpp")  # fmt: skip
    parser.add_argument("--cases", type=Path, metavar="FILE", help="completion cases")
    parser.add_argument("--edits", type=Path, nargs="+", default=[], metavar="FILE",
                        help="files of edit cases")  # fmt: skip
    parser.add_argument("--model", metavar="PATH", help="whose tokenizer cuts the texts; else the "
                        "chosen model's")  # fmt: skip
    parser.add_argument("--limit", type=int, help="cases of each file, evenly spread")
    parser.add_argument("--max-tokens", type=int, default=512, help="tokens of a completion")
    parser.add_argument("--left-only", action="store_true",
                        help="leave the text after the cursor out")  # fmt: skip
    add_common_code_argument(parser)
    parser.add_argument("--backend", choices=("own", "llama-cpp"), default="own",
                        help="llama-cpp: all forwards of a text have one number of rows, as its "
                        "texts have for lossless drafts")  # fmt: skip
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Replay, project, print a table for each kind of text and write the document. Raises
    BenchError."""
    from tests.benchmarks import report

    if not args.cases and not args.edits:
        raise BenchError("there is no text to project for; give --cases or --edits")
    forwards = {file.stem: read_forwards(file) for file in args.forwards}
    with report.progress() as progress:
        kinds = _texts(args, progress)
        projected = {}
        for name, texts in kinds.items():
            task = progress.add_task(f"replaying {name}", total=len(WIDTHS) + len(forwards))
            is_edit = name in [file.stem for file in args.edits]
            projected[name] = projections(
                texts,
                forwards,
                lambda task=task: progress.advance(task),
                edits=is_edit,
                has_fixed_widths=args.backend == "llama-cpp",
            )
    tables = [report.table(name, fields["forwards"], COLUMNS) for name, fields in projected.items()]
    circumstances = {"machine": report.machine(), "versions": report.versions()}
    report.publish({"texts": projected, **circumstances}, args.json, tables)
    return 0


def projections(
    texts: ProjectedTexts,
    forwards: dict[str, Any],
    done: Any = lambda: None,
    *,
    edits: bool = False,
    has_fixed_widths: bool = False,
) -> dict[str, Any]:
    """``tokens_per_forward`` by width, and what that comes to by each document of ``forwards``.

    ``has_fixed_widths``: all forwards of a text have one number of rows, which earlier texts
    decide, from what is typical on.
    """
    from tests.benchmarks.peers.gguf_engine import CHAINS

    by_width: dict[int, float] = {}
    for rows in WIDTHS:
        by_width[rows] = texts.tokens_per_forward(rows)
        done()
    chains = {count: texts.looked_up_rows(count) for count in (0, *CHAINS)}
    found = {}
    for name, document in forwards.items():
        fixed_for = edits if has_fixed_widths else None
        found[name] = _projected(texts, document, by_width, chains, fixed_for)
        done()
    return {
        "texts": len(texts.texts),
        "tokens": texts.tokens,
        "tokens_per_forward": {str(rows): value for rows, value in by_width.items()},
        "forwards": found,
    }


def _projected(
    texts: ProjectedTexts,
    document: Any,
    by_width: dict[int, float],
    chains: dict[int, Counter[int]],
    fixed_for: bool | None,
) -> dict[str, Any]:
    from accel.models.llama_cpp.tree_context import LEAVES
    from accel.planning.fixed_batch_planner import FixedBatchPlanner
    from accel.planning.planner import AdaptivePlanner

    ours, theirs = (costs_of(document, name) for name in (OURS, PEER))
    context = ours.contexts[0]
    ms, peer_ms = (1e3 * each.by_rows(context, max(WIDTHS)) for each in (ours, theirs))
    gains = {rows: by_width[rows] * float(peer_ms[1] / ms[rows]) for rows in WIDTHS}
    best_rows = max(gains, key=gains.__getitem__)
    if fixed_for is None:
        ran = texts.planned(AdaptivePlanner(ours).begin, max(WIDTHS))
    else:
        fixed = FixedBatchPlanner(ours)
        ran = texts.planned(lambda: fixed.begin(is_edit=fixed_for), max(WIDTHS), LEAVES)
    speed = texts.tokens / (ran.forwards_s + ran.drafting_s)
    speeds = {
        count: texts.tokens
        / sum(times * float(peer_ms[rows]) / 1e3 for rows, times in each.items())
        for count, each in chains.items()
    }
    plain = speeds.pop(0)
    best_chain = max(speeds, key=speeds.__getitem__)
    return {
        "type": document["forward_ms"][OURS]["type"],
        "bound": gains[best_rows],
        "bound_rows": best_rows,
        "gain_by_rows": {str(rows): gain for rows, gain in gains.items()},
        "tokens_per_forward": texts.tokens / ran.forwards,
        "tokens_per_s": speed,
        "drafting_share": ran.drafting_s / (ran.forwards_s + ran.drafting_s),
        "llama_cpp_tokens_per_s": plain,
        "llama_cpp_ngram_tokens_per_s": speeds[best_chain],
        "llama_cpp_ngram_draft_tokens": best_chain,
        "over_llama_cpp": speed / plain,
        "over_best_peer": speed / max(plain, speeds[best_chain]),
        "share_of_bound": speed / plain / gains[best_rows],
        "fixed_rows": {str(rows): texts for rows, texts in sorted(ran.widths.items()) if rows},
    }


def read_forwards(file: Path) -> dict[str, Any]:
    """A document of ``bench forward --peer``. Raises BenchError for another."""
    try:
        document: dict[str, Any] = json.loads(file.read_text("utf-8"))
        for name in (OURS, PEER):
            costs_of(document, name)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(
            f"{file} is no document of bench forward --peer {PEER} ({type(error).__name__}); "
            "measure it again"
        ) from error
    return document


def costs_of(document: Any, engine: str) -> Any:
    """Measured seconds of an engine's forwards, as the planner takes them."""
    import numpy as np

    from accel.models.costs.forward_costs import ForwardCosts

    figures = document["forward_ms"][engine]
    rows = sorted(int(count) for count in figures if count.isdigit())
    seconds = [[figures[str(count)] / 1e3 for count in rows]]
    if not {1, max(WIDTHS)} <= set(rows):
        raise ValueError("rows are missing")
    return ForwardCosts([int(document["context"])], rows, np.array(seconds, np.float64))


def _texts(args: argparse.Namespace, progress: Progress) -> dict[str, ProjectedTexts]:
    """By name of the file."""
    from accel.models.hub import find_model_path
    from accel.models.model_file import model_file
    from repo_index.datastore import Datastore
    from tests.benchmarks.cases import load_completion_cases, load_edit_cases
    from tests.benchmarks.completion.targets import load_datastores
    from tests.benchmarks.edits.methods import edit_methods
    from tests.benchmarks.forwards import projection_texts
    from tests.benchmarks.methods import DRAFTERS, MethodSetup

    tokenizer = model_file(find_model_path(args.model)).tokenizer
    datastores = load_datastores(args, tokenizer, progress)
    setup = MethodSetup(tokenizer, datastores.common)
    found = {}
    if args.cases:
        cases = load_completion_cases(args.cases, args.limit)
        how = {"left_only": args.left_only, "max_tokens": args.max_tokens}
        texts = list(projection_texts.completions(cases, datastores, tokenizer, **how))
        make: Any = DRAFTERS[OURS](setup)
        found[args.cases.stem] = projection_texts.ProjectedTexts(texts, make, tokenizer)
    known = Datastore.from_token_files({}, datastores.common) if args.edits else None
    index: Any = known.snapshot() if known and datastores.common else None
    for file in args.edits:
        edits = load_edit_cases(file, args.limit)
        texts = list(projection_texts.edits(edits, index, tokenizer))
        make = edit_methods()[OURS](setup).make
        found[file.stem] = projection_texts.ProjectedTexts(texts, make, tokenizer)
    return found
