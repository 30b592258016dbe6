"""A progress bar for indexing on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from repo_index.indexer import IndexProgress


@contextmanager
def index_progress(console: Console, title: str) -> Iterator[Callable[[IndexProgress], None]]:
    """Shows files and tokens as they are told to what this gives."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files, {task.fields[tokens]} tokens"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, tokens=0)

        def report(at: IndexProgress) -> None:
            bar.update(task, completed=at.files, total=at.total or None, tokens=at.tokens)

        yield report
