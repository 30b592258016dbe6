"""The progress bar of a training run."""

from __future__ import annotations

from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class Bar:
    """A bar that is there while it is entered."""

    def __init__(self, what: str) -> None:
        self._bar = Progress(
            TextColumn(what),
            BarColumn(),
            TextColumn("{task.percentage:.1f}%"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
        )
        self._task = self._bar.add_task("", total=1.0, figures="")

    def move(self, progress: float, figures: str = "") -> None:
        """So much of the run, from 0 to 1, is done."""
        self._bar.update(self._task, completed=min(progress, 1.0), figures=figures)

    def __enter__(self) -> Any:
        self._bar.start()
        return self.move

    def __exit__(self, *_error: object) -> None:
        self._bar.stop()
