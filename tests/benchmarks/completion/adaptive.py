"""``tests.benchmarks adaptive``: what adaptive tokens bring, as SDSAT publishes them.

Rows: plain decoding, SDSAT's two steps by k, and what workspaces know (``redraft``) without and
with adaptive tokens in the forward that verifies. Cases are told apart by how much their text
repeats itself: adaptive tokens need no repetition.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.shared.errors import BenchError
from tests.benchmarks.completion.command import add_completion_arguments, load_cases
from tests.benchmarks.dtypes import settle_dtype
from tests.benchmarks.options import add_model_arguments, add_sampling_arguments

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.drafting.base import Drafter
    from accel.files.model_options import AdaptiveTokens
    from accel.verification.sampling import Sampling
    from tests.benchmarks.completion.model import CompletionMethod
    from tests.benchmarks.measurement import Measurement

NOVEL = "at most a fifth of the 16-grams repeated"
REPEATED = "more repeated"
BESIDE, BESIDE_GOAL = "redraft adaptive", 1.07
"""Adaptive tokens beside what workspaces know, and what that must bring, tokens per forward."""
GOAL = 1.5
"""Of the tokens per forward at the best k, over plain decoding's."""
COLUMNS = {
    "cases": "cases",
    "tokens": "tokens",
    "tokens_per_forward": "tokens/forward",
    "accept_rate": "accept rate",
    "nodes_per_forward": "nodes",
    "draft_us_p50": "draft µs",
    "verify_ms_p50": "verify ms",
    "tokens_per_s": "tokens/s",
    "speedup": "speed-up",
    "identical": "= plain",
    "repeated_16grams": "repeated",
}
FLOOR_COLUMNS = {"value": "value", "goal": "goal"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_completion_arguments(parser)
    add_model_arguments(parser)
    add_sampling_arguments(parser)
    parser.set_defaults(target="model", common="none", max_tokens=96)
    parser.add_argument("--k", default="1,2,4,8", help="adaptive tokens of a forward, by comma")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="the paper's figures 3 and 4")


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the document. Raises BenchError."""
    from accel.verification.sampling import Sampling
    from tests.benchmarks import report

    settle_dtype(args)
    sizes = _sizes(args.k)
    sampling = Sampling(temperature=args.temperature, top_p=args.top_p, seed=args.seed)
    cases = load_cases(args)
    with report.progress() as progress:
        measurements, name, dtype = _measure(args, cases, sizes, sampling, progress)
    document = report.results(measurements, {})
    document |= report.circumstances(model=name, dtype=dtype, seed=args.seed, cases=args.cases)
    document["options"] = {
        key: getattr(args, key)
        for key in ("k", "temperature", "top_p", "stop", "max_tokens", "max_nodes", "limit")
    }
    for figures, group in [
        (document["methods"], None),
        *((figures, group) for group, figures in document["groups"].items()),
    ]:
        chosen = [each for each in measurements if group is None or each.group == group]
        _add_figures(figures, chosen)
    tables = [report.table("all cases", document["methods"], COLUMNS)]
    tables += [report.table(group, each, COLUMNS) for group, each in document["groups"].items()]
    document["reached"] = reached(document)
    tables.append(report.table("what must be reached", document["reached"], FLOOR_COLUMNS))
    if args.plots:
        draw(document["methods"], sizes, args.plots)
    report.publish(document, args.json, tables)
    return 0


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = [0]
    if sizes[0] < 1:
        raise BenchError(f"--k {text} is no list of numbers above 0; give for example 1,2,4")
    return sizes


def _measure(
    args: argparse.Namespace, cases: Any, sizes: list[int], sampling: Sampling, progress: Any
) -> tuple[list[Measurement], str, str]:
    from accel.decoding.engine import Engine
    from tests.benchmarks.completion.targets import decoded, load_datastores

    engine = Engine.load(args.model, dtype=args.dtype, threads=args.threads, device=args.device)
    if not engine.model.adaptive_tokens:
        raise BenchError(
            f"{engine.name} has no adaptive tokens; make some with "
            "`python -m tests.benchmarks train adaptive`"
        )
    datastores = load_datastores(args, engine.tokenizer, progress)
    decoders = _decoders(args, engine, sizes, sampling)
    measurements = decoded(args, cases, decoders, datastores, engine, progress)
    return _by_repetition(measurements), engine.name, engine.dtype


def _decoders(
    args: argparse.Namespace, engine: Engine, sizes: list[int], sampling: Sampling
) -> dict[str, CompletionMethod]:
    from accel.drafting.sdsat import SdsatDrafter
    from tests.benchmarks.completion.model import EngineDecoder
    from tests.benchmarks.methods import PLAIN, MakeDrafter

    def decoder(make: MakeDrafter) -> CompletionMethod:
        nodes = max(args.max_nodes, 1 + max(sizes))
        return EngineDecoder(engine, make, plan=False, max_nodes=nodes, sampling=sampling)

    made: dict[str, CompletionMethod] = {PLAIN: decoder(lambda: None)}
    for k in sizes:
        made[f"sdsat k={k}"] = decoder(
            lambda k=k: SdsatDrafter(engine, k, sampling)  # type: ignore[misc]
        )
    beside: dict[str, AdaptiveTokens] = {"redraft": "off", BESIDE: "auto"}
    for name, use in beside.items():
        made[name] = EngineDecoder(
            engine, partial(_beside, engine, use), plan=True, max_nodes=64, sampling=sampling
        )
    return made


def _beside(engine: Engine, use: AdaptiveTokens) -> Drafter:
    from accel.decoding.completion_drafter import drafter_of

    engine.adaptive_tokens = use
    return drafter_of(engine)


def _by_repetition(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The measurements in two groups, by how much the plain text of their case repeats itself."""
    from tests.benchmarks.measurement import hardly_repeats
    from tests.benchmarks.methods import PLAIN

    novel = {
        each.case: hardly_repeats(each.tokens) for each in measurements if each.method == PLAIN
    }
    for each in measurements:
        each.group = NOVEL if novel[each.case] else REPEATED
    return list(measurements)


def _add_figures(figures: dict[str, dict[str, Any]], measurements: Sequence[Measurement]) -> None:
    """Accept rate (accepted guesses over k), and speed against plain decoding."""
    from tests.benchmarks.methods import PLAIN

    for name, fields in figures.items():
        found = [each.statistics for each in measurements if each.method == name]
        loops = sum(each.draft_forwards for each in found)
        # A loop's first drafted token is no guess: it was read off the text's own row.
        accepted = sum(sum(each.accepted) for each in found) - loops
        k = int(name.rsplit("=", 1)[1]) if "k=" in name else 0
        fields["accept_rate"] = max(accepted, 0) / (loops * k) if loops and k else None
        fields["speedup"] = fields["tokens_per_s"] / max(figures[PLAIN]["tokens_per_s"], 1e-9)


def reached(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Tokens per forward at the best k over plain decoding's, with its goal, and the share of texts
    that are plain decoding's, by the method that has least."""
    every = document["methods"]
    plain = every["plain"]["tokens_per_forward"]
    ratios = {
        name: float(fields["tokens_per_forward"] / plain)
        for name, fields in every.items()
        if name.startswith("sdsat ")
    }
    best = max(ratios, key=ratios.__getitem__)
    equal = min(fields["identical"] / fields["cases"] for fields in every.values())
    return {
        f"{best} / plain": {"value": ratios[best], "goal": GOAL},
        f"{BESIDE} / redraft": {
            "value": float(
                every[BESIDE]["tokens_per_forward"] / every["redraft"]["tokens_per_forward"]
            ),
            "goal": BESIDE_GOAL,
        },
        "texts equal to plain decoding's": {"value": equal, "goal": 1.0},
    }


def draw(figures: dict[str, dict[str, Any]], sizes: list[int], folder: Path) -> Path:
    """The paper's figures 3 and 4: accept rate and tokens per second by k, as PNG.

    Raises BenchError without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BenchError("plots need matplotlib; install redraft[bench]") from error
    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(10, 4), layout="constrained")
    rates, speeds = figure.subplots(1, 2)
    known = [figures[f"sdsat k={k}"] for k in sizes]
    rates.plot(sizes, [row["accept_rate"] for row in known], marker="o", label="sdsat")
    speeds.plot(sizes, [row["tokens_per_s"] for row in known], marker="o", label="sdsat")
    speeds.axhline(figures["plain"]["tokens_per_s"], color="grey", linewidth=0.8, label="plain")
    rates.set(xlabel="k", ylabel="accept rate", xticks=sizes)
    speeds.set(xlabel="k", ylabel="tokens/s", xticks=sizes)
    rates.legend()
    speeds.legend()
    file = folder / "adaptive_by_k.png"
    figure.savefig(file, dpi=120)
    return file
