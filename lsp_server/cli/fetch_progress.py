"""Shows in a terminal how far the fetch of a model is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)

from lsp_server.models.manifest import OfferedModel
from lsp_server.models.progress import Report


def offer_line(model: OfferedModel, source: Path | None = None) -> str:
    """What is said of a model before it is fetched; ``source``: the file that is taken instead."""
    megabytes = model.fetched[0] / 1e6
    made = f", which becomes {model.nbytes / 1e6:.0f} MB" if model.base else ""
    return (
        f"{model.name}: licence {model.licence}, {megabytes:.0f} MB{made}, from "
        f"{source or model.source.shown}"
    )


@contextmanager
def shown_progress(console: Console) -> Iterator[Report]:
    """A bar for each step of a fetch."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def report(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=None)
            progress.update(tasks[step], completed=done, total=total or None)

        yield report
