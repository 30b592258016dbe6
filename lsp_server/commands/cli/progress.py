"""Progress in a terminal, of indexing and of fetching models, and what is asked before that."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from lsp_server.models.manifest import OfferedModel
from lsp_server.models.progress import COMPILING, Report
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.printable import printable, say

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

        def report(progress: IndexProgress) -> None:
            bar.update(
                task, completed=progress.files, total=progress.total or None, tokens=progress.tokens
            )

        yield report


Ask = Callable[[str], str]
_BETWEEN_LINES_S = 0.2


def offer_line(model: OfferedModel, source: Path | None = None) -> str:
    """Return the line that describes a model before it is fetched; ``source``: a local file to take
    instead of a download."""
    result = f", which becomes {model.nbytes / 1e6:.0f} MB" if model.base else ""
    size = f", {model.fetched_bytes / 1e6:,.0f} MB{result}" if model.nbytes else ""
    files = f" in {len(model.parts)} files" if len(model.parts) > 1 else ""
    purpose = f"; {model.purpose}" if model.purpose else ""
    return (
        f"{model.name}: licence {model.licence}{size}{files}, from "
        f"{source or model.source}{purpose}"
    )


def agree_to_licence(model: OfferedModel, ask: Ask) -> None:
    """Have the user agree to a licence that limits use. Raises RedraftError if he does not."""
    terms = model.terms or f"its licence ({model.licence}) may limit use: read it on its page"
    answer = ask(f"{terms}. Do you agree? [y/N] ")
    if answer.lower() not in ("y", "yes"):
        raise RedraftError(f"{model.name} was not fetched; choose one with an open licence")


def typed_answer(question: str, instead: str = "Give --accept-licence to agree") -> str:
    """Return an answer typed at the terminal. Raises RedraftError with the advice ``instead`` if
    there is no terminal."""
    if not sys.stdin.isatty() and "REDRAFT_ASSUME_TERMINAL" not in os.environ:
        raise RedraftError(f"{question.split(' [', maxsplit=1)[0]} {instead}")
    try:
        return input(printable(question)).strip()
    except EOFError:
        return ""


@contextmanager
def progress_lines() -> Iterator[Report]:
    """A JSON document a line on standard output, for another program."""

    last, said_at = "", 0.0

    def report(step: str, done: int, total: int) -> None:
        nonlocal last, said_at
        now = time.monotonic()
        if step == last and done != total and now - said_at < _BETWEEN_LINES_S:
            return
        last, said_at = step, now
        say(json.dumps({"step": step, "done": done, "total": total}), flush=True)

    yield report


class _Done(DownloadColumn):
    """Bytes of how many, or parts that are compiled."""

    def render(self, task: Task) -> Text:
        if task.description != COMPILING:
            return super().render(task)
        return Text(f"{task.completed:.0f}/{task.total or 0:.0f} parts, this once")


class _Speed(TransferSpeedColumn):
    """Bytes a second."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.description != COMPILING else Text("")


@contextmanager
def shown_progress(console: Console) -> Iterator[Report]:
    """A bar for each step of a fetch."""
    columns = TextColumn("{task.description}"), BarColumn(), _Done(), _Speed()
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def report(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=None)
            progress.update(tasks[step], completed=done, total=total or None)

        yield report
