"""Output of benches: one JSON document and tables for people."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from rich.table import Table

from accel.native.processor import processor
from lsp_server.commands.cli.terminal import terminal
from lsp_server.shared.printable import say
from lsp_server.shared.version import VERSION
from operating_system.machine import cores, total_bytes

STANDARD_OUTPUT = "-"
PLAIN_WIDTH = 200
"""Columns of a table that goes to a file or a pipe."""
LIBRARIES = ("torch", "transformers", "tokenizers", "numpy", "numba")


def machine() -> dict[str, Any]:
    """Return the machine in words and numbers."""
    memory = total_bytes()
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": cores(),
        "memory_gb": round(memory / 1e9, 1),
        "load_average": round(psutil.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Versions of ourselves, Python and the libraries that do the arithmetic."""
    versions_by_name = {"redraft": VERSION, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            versions_by_name[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            versions_by_name[library] = "not installed"
    return versions_by_name


def publish(document: dict[str, Any], target: str | None, tables: Sequence[Table]) -> None:
    """Write the document where ``--json`` says and show the tables. With ``-`` standard output
    holds the document alone and the tables go to standard error."""
    text = json.dumps(document, indent=2, allow_nan=False)
    if target == STANDARD_OUTPUT:
        say(text)
    elif target is not None:
        Path(target).write_text(text + "\n", "utf-8")
    console = terminal(stderr=target == STANDARD_OUTPUT)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    for table in tables:
        console.print(table)


def table(
    title: str, figures: dict[str, dict[str, Any]], columns: dict[str, str], first: str = "method"
) -> Table:
    """One row for each name; ``columns``: field of the document to heading."""
    shown_table = Table(title=title, title_justify="left")
    shown_table.add_column(first, overflow="fold")
    for heading in columns.values():
        shown_table.add_column(heading, justify="right")
    for name, fields in figures.items():
        shown_table.add_row(name, *(_shown(fields.get(key)) for key in columns))
    return shown_table


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def _processor() -> str:
    lines = processor().splitlines()
    named = (line.partition(":")[2] for line in lines if line.startswith("model name"))
    return next(named, lines[0]).strip()
