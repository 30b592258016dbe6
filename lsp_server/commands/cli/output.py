"""Results of commands as JSON: ``--json`` alone for stdout, ``--json PATH`` for a file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.shared.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from lsp_server.shared.contract.jobs import JobResult


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """``--json`` prints one JSON document on stdout and nothing else there."""
    parser.add_argument(
        "--json",
        nargs="?",
        const="-",
        metavar="PATH",
        help="print one JSON document, or write it to PATH",
    )


def show_notes(console: Console, notes: Iterable[str]) -> None:
    """Print notes about a result, each on a line of its own; empty ones are skipped."""
    for note in filter(None, notes):
        console.print(f"note: {note}", style="yellow", highlight=False)


def cost_of(result: JobResult) -> dict[str, Any]:
    """Return tokens, forwards, seconds and draft sources of a text as JSON."""
    names = ("tokens", "forwards", "seconds", "prefill_seconds", "sources", "stopped_by")
    return {name: getattr(result, name) for name in names}


def write_json(target: str, document: Any) -> None:
    """Write ``document`` to stdout (``-``) or to a file."""
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if target == "-":
        # Of control characters, those of ASCII alone have to be escaped in JSON.
        sys.stdout.write(text if text == printable(text) else json.dumps(document, indent=2) + "\n")
    else:
        Path(target).write_text(text, encoding="utf-8")
