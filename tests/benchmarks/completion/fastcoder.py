"""``tests.benchmarks fastcoder``: the paper's ablations, sweeps and resource table, rerun.

Table II in its own rows: components added to REST with D_c. Sweeps of the retrieval probability p
at skip positions and of the cache's activation size l (section V-D). Table V: memory and CPU.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.benchmarks.completion.command import (
    add_completion_arguments,
    add_penalty_arguments,
    load_cases,
)
from tests.benchmarks.completion.targets import decoded, load_datastores, replayed, sampling_of
from tests.benchmarks.dtypes import settle_dtype
from tests.benchmarks.options import add_model_arguments, add_sampling_arguments

if TYPE_CHECKING:
    from rich.progress import Progress

    from accel.text.tokenizer import Tokenizer
    from tests.benchmarks.measurement import Measurement
    from tests.benchmarks.methods import MakeDrafter
    from tests.benchmarks.published.fastcoder import FastCoderParameters

PARTS = ("ablation", "p", "l", "resources")
PROBABILITIES = (0.1, 0.3, 0.5, 0.7, 0.9)
ACTIVATION_SIZES = (10, 25, 50, 75, 100)
COMPONENTS = {
    "baseline": (),
    "+ datastore D": ("repository",),
    "+ retrieval strategy": ("retrieval_strategy",),
    "+ CACHE": ("cache",),
    "+ datastore D & retrieval strategy": ("repository", "retrieval_strategy"),
    "+ retrieval strategy & CACHE": ("retrieval_strategy", "cache"),
    "+ datastore D & CACHE": ("repository", "cache"),
    "FastCoder": ("repository", "retrieval_strategy", "cache"),
}
"""The rows of Table II and the components that each has."""

COLUMNS = {
    "tokens_per_forward": "AccLen",
    "nodes_per_forward": "nodes",
    "draft_us_p50": "draft µs p50",
    "retrievals_per_forward": "retrievals/forward",
    "from_cache": "from cache",
    "skipped": "skipped",
    "known_misses": "known misses",
}
MODEL_COLUMNS = {"ms_per_token": "ms/token", "speedup": "speed-up", "identical": "= plain"}
RESOURCE_COLUMNS = {"memory_mb": "memory MB", "cpu_percent": "CPU %", "tokens_per_s": "tokens/s"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_completion_arguments(parser)
    add_model_arguments(parser)
    add_sampling_arguments(parser)
    add_penalty_arguments(parser)
    parser.add_argument("--part", choices=(*PARTS, "all"), default="ablation", help="what to rerun")


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the document. Raises BenchError."""
    from tests.benchmarks import report

    args.target = args.target or "replay"
    settle_dtype(args)
    cases = load_cases(args)
    parts = PARTS if args.part == "all" else (args.part,)
    rows = {part: _rows(args, cases, part) for part in parts}
    document = {
        "part": args.part,
        "target": args.target,
        "rows": rows if args.part == "all" else rows[args.part],
        **report.circumstances(
            model=str(args.model), dtype=args.dtype, seed=args.seed, cases=args.cases
        ),
    }
    tables = [report.table(f"FastCoder, {part}", rows[part], _columns(args, part)) for part in rows]
    report.publish(document, args.json, tables)
    return 0


def _rows(args: argparse.Namespace, cases: list[Any], part: str) -> dict[str, Any]:
    if part == "resources":
        from tests.benchmarks.completion.resources import measure_resources

        return measure_resources(args)
    return _measure(args, cases, part)


def _columns(args: argparse.Namespace, part: str) -> dict[str, str]:
    if part == "resources":
        return RESOURCE_COLUMNS
    return COLUMNS | (MODEL_COLUMNS if args.target == "model" else {})


def variants(part: str, published: FastCoderParameters) -> dict[str, FastCoderParameters]:
    """Row name to parameters. ``published`` are the paper's."""
    if part == "p":
        return {f"p = {p}": replace(published, retrieval_probability=p) for p in PROBABILITIES}
    if part == "l":
        return {
            f"l = {size}": replace(published, activation_size=size) for size in ACTIVATION_SIZES
        }
    return {
        row: replace(
            published,
            repository="repository" in components,
            retrieval_strategy="retrieval_strategy" in components,
            cache="cache" in components,
        )
        for row, components in COMPONENTS.items()
    }


def _measure(args: argparse.Namespace, cases: list[Any], part: str) -> dict[str, Any]:
    """Figures of every variant, all on the same cases in one run."""
    from tests.benchmarks import report
    from tests.benchmarks.methods import PLAIN

    measure = _replayed if args.target == "replay" else _decoded
    with report.progress() as progress:
        measured, makers = measure(args, cases, part, progress)
    rows: dict[str, Any] = report.results(measured, {})["methods"]
    plain = rows.pop(PLAIN, None)
    for name, fields in rows.items():
        fields.update(makers[name].counts())
        if plain:
            fields["ms_per_token"] = 1e3 / fields["tokens_per_s"]
            fields["speedup"] = fields["tokens_per_s"] / plain["tokens_per_s"]
    return rows


class CountingMaker:
    """Makes drafters of one variant and adds up what they counted."""

    def __init__(self, parameters: FastCoderParameters) -> None:
        self._parameters = parameters
        self._made: list[Any] = []

    def __call__(self) -> Any:
        """A drafter that has learnt nothing yet."""
        from tests.benchmarks.published.fastcoder import FastCoderDrafter

        self._made.append(FastCoderDrafter(self._parameters))
        return self._made[-1]

    def counts(self) -> dict[str, float]:
        """Shares of all steps."""
        counts = [drafter.counts for drafter in self._made]
        steps = max(sum(each.steps for each in counts), 1)

        def share(name: str) -> float:
            return sum(getattr(each, name) for each in counts) / steps

        return {
            "retrievals_per_forward": share("from_stores") + share("fruitless"),
            "from_cache": share("from_cache"),
            "skipped": share("skipped"),
            "known_misses": share("known_misses"),
        }


def _makers(args: argparse.Namespace, tokenizer: Tokenizer, part: str) -> dict[str, CountingMaker]:
    from tests.benchmarks.methods import MethodSetup, fastcoder_parameters

    published = fastcoder_parameters(MethodSetup(tokenizer, {}, args.seed))
    return {name: CountingMaker(each) for name, each in variants(part, published).items()}


def _replayed(
    args: argparse.Namespace, cases: list[Any], part: str, progress: Progress
) -> tuple[list[Measurement], dict[str, CountingMaker]]:
    from accel.models.hub import find_model_path
    from accel.models.model_file import model_file

    tokenizer = model_file(find_model_path(args.model)).tokenizer
    datastores = load_datastores(args, tokenizer, progress)
    makers = _makers(args, tokenizer, part)
    return replayed(args, cases, makers, datastores, tokenizer, progress), makers


def _decoded(
    args: argparse.Namespace, cases: list[Any], part: str, progress: Progress
) -> tuple[list[Measurement], dict[str, CountingMaker]]:
    from accel.decoding.engine import Engine
    from tests.benchmarks.completion.model import EngineDecoder
    from tests.benchmarks.methods import PLAIN

    engine = Engine.load(args.model, dtype=args.dtype, threads=args.threads, device=args.device)
    datastores = load_datastores(args, engine.tokenizer, progress)
    makers = _makers(args, engine.tokenizer, part)
    methods: dict[str, MakeDrafter] = {PLAIN: lambda: None, **makers}
    sampling = sampling_of(args)
    decoders = {
        name: EngineDecoder(engine, make, plan=False, max_nodes=args.max_nodes, sampling=sampling)
        for name, make in methods.items()
    }
    return decoded(args, cases, decoders, datastores, engine, progress), makers
