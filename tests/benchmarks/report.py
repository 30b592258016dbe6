"""The result of a bench: one JSON document and a table for people."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lsp_server.commands.bench.report import machine, publish, versions
from lsp_server.commands.bench.report import table as table_of
from tests.benchmarks.measurement import (
    REPETITION,
    Measurement,
    hardly_repeats,
    pair_ratio,
    summarise,
)
from tests.benchmarks.methods import ORACLE, OURS, PLAIN, PLAIN_DECODING

__all__ = [
    "add_best_peer",
    "add_hardly_repeated",
    "add_pairs",
    "add_speedups",
    "add_whole_times",
    "circumstances",
    "machine",
    "progress",
    "publish",
    "results",
    "table",
    "versions",
]


def table(
    title: str, figures: dict[str, dict[str, Any]], columns: dict[str, str], first: str = "method"
) -> Table:
    """Return the table of what was measured; below it why the rest is unavailable."""
    measured = {name: fields for name, fields in figures.items() if "unavailable" not in fields}
    shown = table_of(title, measured, columns, first)
    absent = [
        f"{name} is unavailable: {fields['unavailable']}"
        for name, fields in figures.items()
        if "unavailable" in fields
    ]
    if absent:
        shown.caption, shown.caption_justify = "\n".join(absent), "left"
    return shown


def results(measurements: Sequence[Measurement], unavailable: dict[str, str]) -> dict[str, Any]:
    """``methods`` and ``groups`` of the document, methods in the order in which they ran."""
    methods = list(dict.fromkeys(each.method for each in measurements))
    groups = sorted({each.group for each in measurements})
    return {
        "methods": {
            **{name: summarise(_of(measurements, name)) for name in methods},
            **{name: {"unavailable": why} for name, why in unavailable.items()},
        },
        "groups": {
            group: {
                name: summarise([each for each in _of(measurements, name) if each.group == group])
                for name in methods
            }
            for group in groups
        },
    }


def add_speedups(document: dict[str, Any], plain: Sequence[Measurement]) -> None:
    """Add ``speedup`` to every method, in total and by group: its decoding speed over that of the
    fastest plain decoding, whose measurements are given under their own names."""
    names = list(dict.fromkeys(each.method for each in plain))
    document["plain_decoding"] = {name: summarise(_of(plain, name)) for name in names}
    _relate(document["methods"], document["plain_decoding"])
    _relate(document["plain_decoding"], document["plain_decoding"])
    document["fastest_plain"] = max(
        names, key=lambda name: document["plain_decoding"][name]["tokens_per_s"]
    )
    for group, methods in document["groups"].items():
        within = [each for each in plain if each.group == group]
        _relate(methods, {name: summarise(_of(within, name)) for name in names})


def add_best_peer(document: dict[str, Any]) -> None:
    """Add ``over_best_peer`` to our own methods, in total and by group: their decoding speed over
    that of the fastest method of others, plain decoding left out."""
    for methods in (document["methods"], *document["groups"].values()):
        fastest = max(_peers(methods).values(), default=0.0)
        for name in OURS & methods.keys() if fastest else ():
            if "unavailable" not in methods[name]:
                methods[name]["over_best_peer"] = methods[name]["tokens_per_s"] / fastest
    peers = _peers(document["methods"])
    document["best_peer"] = max(peers, key=peers.__getitem__, default=None)


def _peers(methods: dict[str, Any]) -> dict[str, float]:
    """Decoding speeds of the methods that draft and are not ours."""
    return {
        name: fields["tokens_per_s"]
        for name, fields in methods.items()
        if name not in (*OURS, *PLAIN_DECODING, ORACLE) and "unavailable" not in fields
    }


def add_hardly_repeated(
    document: dict[str, Any],
    compared: Sequence[Measurement],
    plain: Sequence[Measurement],
    length: int = REPETITION,
) -> None:
    """Add ``hardly_repeated``: the same figures over the cases whose plain text does not loop.

    The cases are the same for all methods: those where ``plain`` repeats at most 20 % of its runs
    of so many tokens. Nothing is added where there is none.
    """
    kept = {
        each.case for each in plain if each.method == PLAIN and hardly_repeats(each.tokens, length)
    }
    if not kept:
        return
    part = results([each for each in compared if each.case in kept], {})
    add_speedups(part, [each for each in plain if each.case in kept])
    add_pairs(part, [each for each in compared if each.case in kept], PLAIN)
    add_best_peer(part)
    document["hardly_repeated"] = {
        "run": length,
        "cases": len(kept),
        "of_cases": len({each.case for each in compared}),
        **{name: part[name] for name in ("methods", "plain_decoding", "fastest_plain")},
    }


def add_pairs(document: dict[str, Any], measurements: Sequence[Measurement], plain: str) -> None:
    """Add ``pair_ratio`` to every method, in total and by group: the median over cases of its time
    per token over that of ``plain``, which ran in turn with it."""
    for group, methods in {None: document["methods"], **document["groups"]}.items():
        within = [each for each in measurements if group in (None, each.group)]
        for name, fields in methods.items():
            if "unavailable" not in fields:
                fields["pair_ratio"] = pair_ratio(_of(within, name), _of(within, plain))


def add_whole_times(document: dict[str, Any], plain: str) -> None:
    """Add what the paper's Table III has: time of making prompts, of generation (prefill and
    decoding), of both, and the speed-up of both over ``plain``."""
    for methods in (document["methods"], *document["groups"].values()):
        measured = {name: each for name, each in methods.items() if "unavailable" not in each}
        for fields in measured.values():
            fields["generation_s"] = fields["prefill_s"] + fields["decode_s"]
            fields["total_s"] = fields["prompt_s"] + fields["generation_s"]
        for fields in measured.values():
            fields["total_speedup"] = measured[plain]["total_s"] / fields["total_s"]


def _relate(methods: dict[str, Any], plain: dict[str, Any]) -> None:
    fastest = max(fields["tokens_per_s"] for fields in plain.values())
    for fields in methods.values():
        if "unavailable" not in fields:
            fields["speedup"] = fields["tokens_per_s"] / fastest if fastest else 0.0


def circumstances(*, model: str, dtype: str, seed: int, cases: Path) -> dict[str, Any]:
    """Under what the figures were measured: the rest of the document."""
    return {
        "machine": machine(),
        "model": model,
        "dtype": dtype,
        "versions": versions(),
        "seed": seed,
        "commit": _commit(),
        "cases_file": cases.name,
    }


def progress() -> Progress:
    """A progress bar on standard error."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )


def _of(measurements: Sequence[Measurement], method: str) -> list[Measurement]:
    return [each for each in measurements if each.method == method]


def _commit() -> str:
    """Commit of the source tree that runs; empty outside of one."""
    try:
        ran = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""
