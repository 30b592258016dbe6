"""``redraft bench adaptive``: what adaptive tokens bring, alone and beside retrieval.

Rows: plain decoding, SDSAT's two steps and our one forward by k, the default drafter with and
without adaptive tokens at equal rows of a forward (nodes and mask rows together) and as planned for
this machine. Cases are told apart by how much their text repeats itself, since a source that looks
back needs repetition and adaptive tokens do not.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.bench.completion import add_case_arguments, add_model_arguments, load_cases
from lsp_server.errors import BenchError

if TYPE_CHECKING:
    from accel.engine import Engine
    from accel.mask_tokens import MaskTokens
    from accel.sampling import Sampling
    from lsp_server.bench.cases import CompletionCase
    from lsp_server.bench.completion_model import Decoder
    from lsp_server.bench.measurement import Measurement

NOVEL = "at most a fifth of the 16-grams repeated"
REPEATED = "more repeated"
ROW_COUNTS = (8, 16, 32, 64)
"""Rows of a forward, nodes and mask rows together, at which retrieval is compared."""
GOALS = {"sdsat": 1.5, "adaptive": 1.3, "combined": 1.15}
COLUMNS = {
    "cases": "cases",
    "tokens": "tokens",
    "tokens_per_forward": "tokens/forward",
    "accept_rate": "accept rate",
    "nodes_per_forward": "nodes",
    "mask_rows_per_forward": "mask rows",
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
    add_case_arguments(parser)
    add_model_arguments(parser)
    parser.set_defaults(target="model", common="none", max_tokens=96)
    parser.add_argument("--k", default="1,2,4,8", help="mask rows of a group, by comma")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")
    parser.add_argument("--top-p", type=float, default=1.0, help="nucleus of sampling")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="the paper's figures 3 and 4")


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the document. Raises BenchError."""
    from accel.sampling import Sampling
    from lsp_server.bench import report

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
    document["reached"] = reached(document) | ordinary_rows(args, cases)
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
    from accel.engine import Engine
    from lsp_server.bench.completion_targets import decoded, load_datastores

    engine = Engine.load(args.model, dtype=args.dtype, threads=args.threads, device=args.device)
    mask_tokens = engine.model.mask_tokens
    if mask_tokens is None:
        raise BenchError(
            f"{engine.name} has no adaptive tokens; make some with `redraft train adaptive`"
        )
    datastores = load_datastores(args, engine.tokenizer, progress)
    decoders = _decoders(args, engine, mask_tokens, sizes, sampling)
    measurements = decoded(args, cases, decoders, datastores, engine, progress)
    return _by_repetition(measurements), engine.name, engine.dtype


def _decoders(
    args: argparse.Namespace,
    engine: Engine,
    mask_tokens: MaskTokens,
    sizes: list[int],
    sampling: Sampling,
) -> dict[str, Decoder]:
    from accel.sources import default_drafter, with_adaptive
    from accel.sources.adaptive import AdaptiveDrafter
    from accel.sources.mixture import warm_up
    from accel.sources.sdsat import SdsatDrafter
    from lsp_server.bench.completion_model import EngineDecoder
    from lsp_server.bench.methods import PLAIN, MakeDrafter

    warm_up()

    def decoder(make: MakeDrafter, *, plan: bool = False, nodes: int = args.max_nodes) -> Decoder:
        return EngineDecoder(engine, make, plan=plan, max_nodes=nodes, sampling=sampling)

    made: dict[str, Decoder] = {PLAIN: decoder(lambda: None)}
    for k in sizes:
        made[f"sdsat k={k}"] = decoder(
            lambda k=k: SdsatDrafter(mask_tokens, k, sampling)  # type: ignore[misc]
        )
    if mask_tokens.sampler is None:
        return made
    for k in sizes:
        if k <= mask_tokens.count:
            made[f"adaptive k={k}"] = decoder(
                lambda k=k: AdaptiveDrafter(mask_tokens, size=k)  # type: ignore[misc]
            )

    def both(rows: int = 0) -> AdaptiveDrafter:
        return AdaptiveDrafter(mask_tokens, default_drafter(engine.tokenizer), rows=rows)

    for rows in ROW_COUNTS:
        made[f"retrieval {rows}"] = decoder(lambda: default_drafter(engine.tokenizer), nodes=rows)
        made[f"combined {rows}"] = decoder(
            lambda rows=rows: both(rows),  # type: ignore[misc]
            nodes=rows,
        )
    made["retrieval planned"] = decoder(lambda: default_drafter(engine.tokenizer), plan=True)
    made["combined planned"] = decoder(
        lambda: with_adaptive(default_drafter(engine.tokenizer), mask_tokens, math.inf), plan=True
    )
    return made


def _by_repetition(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The measurements in two groups, by how much the plain text of their case repeats itself."""
    from lsp_server.bench.measurement import hardly_repeats
    from lsp_server.bench.methods import PLAIN

    novel = {
        each.case: hardly_repeats(each.tokens) for each in measurements if each.method == PLAIN
    }
    for each in measurements:
        each.group = NOVEL if novel[each.case] else REPEATED
    return list(measurements)


def _add_figures(figures: dict[str, dict[str, Any]], measurements: Sequence[Measurement]) -> None:
    """Accept rate (accepted guesses over k), mask rows, and speed against plain decoding."""
    from lsp_server.bench.methods import PLAIN

    for name, fields in figures.items():
        found = [each.statistics for each in measurements if each.method == name]
        rows = sum(each.mask_rows for each in found)
        accepted = sum(each.sources["adaptive"] for each in found)
        k = int(name.rsplit("=", 1)[1]) if "k=" in name else 0
        loops = fields["forwards"]
        if name.startswith("sdsat"):
            # Every forward of the first kind carries one group.
            loops = rows // k
        fields["accept_rate"] = accepted / (loops * k) if loops and k else None
        fields["mask_rows_per_forward"] = rows / max(fields["forwards"], 1)
        fields["speedup"] = fields["tokens_per_s"] / max(figures[PLAIN]["tokens_per_s"], 1e-9)


def reached(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Ratios of tokens per forward, each with its goal: SDSAT's at its best k and ours over all
    cases, retrieval's with and without adaptive tokens over those that hardly repeat themselves;
    and the share of texts that are plain decoding's, by the method that has least."""

    def ratio(figures: dict[str, dict[str, Any]], one: str, other: str) -> float:
        return float(figures[one]["tokens_per_forward"] / figures[other]["tokens_per_forward"])

    every, novel = document["methods"], document["groups"].get(NOVEL, {})
    of_k = {name.removeprefix("sdsat "): name for name in every if name.startswith("sdsat ")}
    best = max(of_k.values(), key=lambda name: ratio(every, name, "plain"))
    found = {f"{best} / plain": (ratio(every, best, "plain"), GOALS["sdsat"])}
    for k, published in of_k.items():
        if f"adaptive {k}" in every:
            one = f"adaptive {k}"
            found[f"{one} / {published}"] = ratio(every, one, published), GOALS["adaptive"]
    for name in novel:
        rows = name.removeprefix("combined ")
        if rows != name:
            other = f"retrieval {rows}"
            found[f"{name} / {other}, {NOVEL}"] = ratio(novel, name, other), GOALS["combined"]
    equal = [fields["identical"] / fields["cases"] for fields in every.values()]
    found["texts equal to plain decoding's"] = min(equal), 1.0
    return {name: {"value": value, "goal": goal} for name, (value, goal) in found.items()}


def ordinary_rows(args: argparse.Namespace, cases: Sequence[CompletionCase]) -> dict[str, Any]:
    """Loss of ordinary tokens without and with mask rows beside them, and whether all logits are
    equal to the last bit. Empty where no case is long enough."""
    from accel.loading import find_folder
    from accel.training.ordinary_rows import losses_on_texts

    texts = [case.prefix + case.reference for case in cases]
    found = losses_on_texts(find_folder(args.model), texts)
    if not found:
        return {}
    return {
        "ordinary loss with mask rows": {
            "value": found["ordinary_loss_after"],
            "goal": found["ordinary_loss_before"],
        },
        "equal to the last bit": {"value": int(found["ordinary_bits_equal"]), "goal": 1},
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
    for method in ("sdsat", "adaptive"):
        known = [k for k in sizes if f"{method} k={k}" in figures]
        if not known:
            continue
        rows = [figures[f"{method} k={k}"] for k in known]
        rates.plot(known, [row["accept_rate"] for row in rows], marker="o", label=method)
        speeds.plot(known, [row["tokens_per_s"] for row in rows], marker="o", label=method)
    speeds.axhline(figures["plain"]["tokens_per_s"], color="grey", linewidth=0.8, label="plain")
    rates.set(xlabel="k", ylabel="accept rate", xticks=sizes)
    speeds.set(xlabel="k", ylabel="tokens/s", xticks=sizes)
    rates.legend()
    speeds.legend()
    file = folder / "adaptive_by_k.png"
    figure.savefig(file, dpi=120)
    return file
