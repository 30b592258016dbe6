"""The paper's figure 5: how ordinary tokens fare under the basic and the improved loss."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.training.errors import TrainingError

_NAMES = {"basic": "basic (equation 8)", "improved": "improved (equation 9)"}


def plot_ordinary_loss(curves: dict[str, list[tuple[int, float]]], file: Path) -> None:
    """Held-out loss of ordinary tokens by step, a line for each loss, as PNG.

    Raises TrainingError without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TrainingError("figures need matplotlib; install redraft[bench]") from error
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        steps, losses = zip(*curve, strict=True)
        axes.plot(steps, losses, marker=".", label=_NAMES.get(name, name))
    axes.set_xlabel("step")
    axes.set_ylabel("held-out loss of ordinary tokens (nats)")
    axes.legend()
    figure.savefig(file, dpi=120)
