"""The result of a bench: one JSON document and a table for people."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from lsp_server.version import VERSION
from tests.benchmarks.measurement import Measurement, hardly_repeats, pair_ratio, summarise
from tests.benchmarks.methods import ORACLE, OURS, PLAIN, PLAIN_DECODING

STANDARD_OUTPUT = "-"
PLAIN_WIDTH = 200
"""Columns of a table that goes to a file or a pipe."""
LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "numba")


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
    document: dict[str, Any], compared: Sequence[Measurement], plain: Sequence[Measurement]
) -> None:
    """Add ``hardly_repeated``: the same figures over the cases whose plain text does not loop.

    The cases are the same for all methods: those where ``plain`` repeats at most 20 % of its
    16-grams. Nothing is added where there is none.
    """
    kept = {each.case for each in plain if each.method == PLAIN and hardly_repeats(each.tokens)}
    if not kept:
        return
    part = results([each for each in compared if each.case in kept], {})
    add_speedups(part, [each for each in plain if each.case in kept])
    add_pairs(part, [each for each in compared if each.case in kept], PLAIN)
    add_best_peer(part)
    document["hardly_repeated"] = {
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


def machine() -> dict[str, Any]:
    """The machine in words and numbers."""
    memory = psutil.virtual_memory().total
    return {
        "system": platform.system(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9, 1),
        "load_average": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Versions of ourselves, Python and the libraries that do the arithmetic."""
    found = {"redraft": VERSION, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            found[library] = "not installed"
    return found


def publish(document: dict[str, Any], target: str | None, tables: Sequence[Table]) -> None:
    """Write the document where ``--json`` says and show the tables.

    With ``-`` standard output holds the document alone and the tables go to standard error.
    """
    text = json.dumps(document, indent=2, allow_nan=False)
    if target == STANDARD_OUTPUT:
        print(text)
    elif target is not None:
        Path(target).write_text(text + "\n", "utf-8")
    console = Console(stderr=target == STANDARD_OUTPUT)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    for table in tables:
        console.print(table)


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


def table(title: str, figures: dict[str, dict[str, Any]], columns: dict[str, str]) -> Table:
    """One row for each method; ``columns``: field of the document to heading."""
    made = Table(title=title, title_justify="left")
    made.add_column("method")
    for heading in columns.values():
        made.add_column(heading, justify="right")
    for name, fields in figures.items():
        if "unavailable" not in fields:
            made.add_row(name, *(_shown(fields.get(key)) for key in columns))
    absent = [
        f"{name} is unavailable: {fields['unavailable']}"
        for name, fields in figures.items()
        if "unavailable" in fields
    ]
    if absent:
        made.caption, made.caption_justify = "\n".join(absent), "left"
    return made


def _of(measurements: Sequence[Measurement], method: str) -> list[Measurement]:
    return [each for each in measurements if each.method == method]


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


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
