"""PNG of reuse against what drafting gains, edit by edit (EfficientEdit's figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsp_server.shared.errors import BenchError
from tests.benchmarks.measurement import Measurement
from tests.benchmarks.methods import PLAIN


def draw(measurements: Sequence[Measurement], folder: Path) -> Path:
    """Write ``reuse.png`` into ``folder``: a point for every case and method.

    The gain is the speed over ``plain`` where plain was decoded, else tokens per forward.
    BenchError without matplotlib.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise BenchError("plots need matplotlib; install redraft[bench]") from error
    mpl.use("Agg")
    from matplotlib import pyplot

    plain = {each.case: each for each in measurements if each.method == PLAIN}
    timed = any(each.statistics.verify_s for each in measurements)
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for method in dict.fromkeys(each.method for each in measurements):
        if method == PLAIN:
            continue
        points = [
            (each.reuse, _gain(each, plain.get(each.case), timed))
            for each in measurements
            if each.method == method and each.reuse is not None
        ]
        _scatter(axes, points, method)
    axes.set(
        xlabel="share of the answer's tokens that stand in the original",
        ylabel="speed-up over plain decoding" if timed else "tokens per forward",
        yscale="log",
    )
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.legend()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "reuse.png"
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    pyplot.close(figure)
    return file


def _gain(measurement: Measurement, plain: Measurement | None, timed: bool) -> float:
    if not timed or plain is None or not plain.statistics.tokens_per_s:
        return measurement.statistics.tokens_per_forward
    return measurement.statistics.tokens_per_s / plain.statistics.tokens_per_s


def _scatter(axes: Any, points: list[tuple[float, float]], label: str) -> None:
    rates = [rate for rate, _ in points]
    axes.scatter(rates, [gain for _, gain in points], s=12, alpha=0.7, label=label)
