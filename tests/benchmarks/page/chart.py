"""The chart of the project's page: tokens a second, ours and llama.cpp's, as the log has them.

python -m tests.benchmarks chart [--check]
"""

from __future__ import annotations

import argparse
import json
from html import escape
from pathlib import Path
from typing import Any

from lsp_server.shared.errors import BenchError

FIGURES = Path(__file__).with_name("speeds.json")
LOG = Path(__file__).parents[1] / "LOG.md"
CHART = Path(__file__).with_name("speeds.svg")

WIDTH, NAMES, ROW, HEAD = 760, 190, 22, 30
_BAR = 16
_COLOURS = {"Redraft": "#2f7d4f", "Redraft without drafts": "#8fbf9f"}
_OTHERS = "#9aa4b2"
_FONT = 'font-family="Helvetica, Arial, sans-serif"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="only say whether the chart is behind")


def run(args: argparse.Namespace) -> int:
    """Draw it. Raises BenchError where a figure is not the log's, or, with ``--check``, where the
    picture is another."""
    wanted = drawn(figures())
    if not args.check:
        CHART.write_text(wanted, encoding="utf-8")
    elif CHART.read_text("utf-8") != wanted:
        raise BenchError(f"{CHART.name} is behind; run it without --check")
    return 0


def figures() -> list[dict[str, Any]]:
    """What is drawn, group by group. Raises BenchError for a figure that the log does not have."""
    groups: list[dict[str, Any]] = json.loads(FIGURES.read_text("utf-8"))
    log = " ".join(LOG.read_text("utf-8").split())
    for group in groups:
        logged = group["logged"]
        if logged not in log:
            raise BenchError(f"{LOG.name} does not say {logged!r}; correct {FIGURES.name}")
        numbers = {word.strip(":,") for word in logged.split()}
        if missing := [value for value in group["bars"].values() if str(value) not in numbers]:
            raise BenchError(f"{missing} is not in {logged!r}; correct {FIGURES.name}")
    return groups


def drawn(groups: list[dict[str, Any]]) -> str:
    """The chart as SVG, readable on light and dark pages."""
    most = max(value for group in groups for value in group["bars"].values())
    scale = (WIDTH - NAMES - 60) / most
    parts, y = list[str](), 0
    for group in groups:
        y += HEAD
        title = f"{group['title']}, {group['machine']}"
        parts.append(_text(12, y - 10, title, 'font-weight="bold"'))
        for name, value in group["bars"].items():
            width = value * scale
            colour = _COLOURS.get(name, _OTHERS)
            parts.append(_text(NAMES - 8, y + 12, name, 'text-anchor="end"'))
            parts.append(
                f'<rect x="{NAMES}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>'
            )
            parts.append(_text(NAMES + width + 6, y + 12, str(value)))
            y += ROW
    parts.append(_text(NAMES, y + 16, "tokens a second; each text is plain decoding's"))
    height = y + 28
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" {_FONT} font-size="13" fill="#1c2530">',
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        )
    )


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}" {more}>{escape(text)}</text>'.replace(" >", ">")
