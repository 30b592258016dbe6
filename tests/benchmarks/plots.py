"""PNG plots of a completion bench: acceptance by position, whitespace, and speed-ups.

The heat maps answer the paper's figures 3 and 6(a): which share of the tokens at a place of a line
came from a draft, and which share of them is white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lsp_server.shared.errors import BenchError
from tests.benchmarks.measurement import Measurement

if TYPE_CHECKING:
    from accel.text.tokenizer import Tokenizer

LINES = 12
POSITIONS = 12
"""Lines of a text and tokens of a line that are shown; 12 as in the paper."""

Grid = NDArray[np.float64]


def draw(
    document: dict[str, Any],
    measurements: Sequence[Measurement],
    tokenizer: Tokenizer,
    folder: Path,
) -> list[Path]:
    """Write the plots into ``folder``; returns their paths. BenchError without matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise BenchError("plots need matplotlib; install redraft[bench]") from error
    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for method in dict.fromkeys(each.method for each in measurements):
        grids = [each for each in measurements if each.method == method]
        accepted = by_position(grids, tokenizer, drafted_tokens)
        if np.nansum(accepted) > 0:
            file = folder / f"acceptance_{re.sub(r'[^a-z0-9]+', '_', method)}.png"
            made.append(_heat_map(accepted, f"drafted tokens, {method}", file))
    first = [each for each in measurements if each.method == measurements[0].method]
    spaces = by_position(first, tokenizer, lambda each: _blank(each, tokenizer))
    made.append(_heat_map(spaces, "white space", folder / "whitespace.png"))
    made.append(_bars(document, folder / "methods.png"))
    return made


def by_position(measurements: Sequence[Measurement], tokenizer: Tokenizer, told: Any) -> Grid:
    """Mean of what ``told`` says of every token, by line and place in the line.

    float64 [LINES, POSITIONS], NaN where no token stands.
    """
    total = np.zeros((LINES, POSITIONS))
    count = np.zeros((LINES, POSITIONS))
    for measurement in measurements:
        values = told(measurement)
        if values is None:
            continue
        places = positions(measurement.tokens, tokenizer)
        for (line, place), value in zip(places, values, strict=True):
            if line < LINES and place < POSITIONS:
                total[line, place] += value
                count[line, place] += 1
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def positions(tokens: Sequence[int], tokenizer: Tokenizer) -> Iterator[tuple[int, int]]:
    """Line and place in the line of every token, from 0. A token with a newline ends its line."""
    line = place = 0
    for token in tokens:
        yield line, place
        newlines = tokenizer.bytes_of(token).count(b"\n")
        line, place = (line + newlines, 0) if newlines else (line, place + 1)


def drafted_tokens(measurement: Measurement) -> list[bool] | None:
    """Whether each token was drafted; None where the method does not say."""
    flags: list[bool] = []
    for accepted in measurement.statistics.accepted:
        flags += [True] * accepted + [False]
    return flags[: len(measurement.tokens)] if len(flags) >= len(measurement.tokens) else None


def _blank(measurement: Measurement, tokenizer: Tokenizer) -> list[bool]:
    return [not tokenizer.bytes_of(token).strip() for token in measurement.tokens]


def _heat_map(grid: Grid, title: str, file: Path) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 5))
    image = axes.imshow(grid, vmin=0, vmax=1, cmap="Greens", origin="upper")
    axes.set(
        title=f"share of {title}",
        xlabel="token of the line",
        ylabel="line",
        xticks=range(POSITIONS),
        xticklabels=range(1, POSITIONS + 1),
        yticks=range(LINES),
        yticklabels=range(1, LINES + 1),
    )
    figure.colorbar(image)
    return _saved(figure, file)


def _bars(document: dict[str, Any], file: Path) -> Path:
    """Speed-ups where there are any, else tokens per forward, by method and group."""
    from matplotlib import pyplot

    groups = {"all": document["methods"], **document["groups"]}
    names = [name for name, fields in document["methods"].items() if "unavailable" not in fields]
    key = "speedup" if "speedup" in document["methods"][names[0]] else "tokens_per_forward"
    figure, axes = pyplot.subplots(figsize=(2 + 2 * len(groups), 5))
    width = 0.8 / len(names)
    for order, name in enumerate(names):
        places = np.arange(len(groups)) + order * width
        axes.bar(places, [fields[name][key] for fields in groups.values()], width, label=name)
    axes.set(
        ylabel="speed-up" if key == "speedup" else "tokens per forward",
        xticks=np.arange(len(groups)) + 0.4 - width / 2,
        xticklabels=groups,
    )
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.legend()
    return _saved(figure, file)


def _saved(figure: Any, file: Path) -> Path:
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(file, dpi=150)
    pyplot.close(figure)
    return file
