"""``redraft demo``: start the real server as an editor would, complete and edit real code."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lsp_server.cli.fetch_progress import shown_progress
from lsp_server.demo import show
from lsp_server.demo.client import DemoClient, ServerFailed, private_environment, serve_command
from lsp_server.demo.places import EditPlace, TypingPlace, edit_places, typing_places
from lsp_server.errors import RedraftError
from lsp_server.models.fetching import fetch_default
from lsp_server.models.manifest import DEFAULT

INDEX_WAIT_S = 240.0
MODEL_WAIT_S = 900.0
"""The first time the model is compiled and measured, which takes a minute or two on two cores."""
EDIT_TRIES = 6

Row = tuple[str, dict[str, Any], dict[str, Any]]
"""A request, what it cost drafted, and what it cost plain."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``redraft demo``."""
    root = Path(__file__).resolve().parents[2]
    parser.add_argument(
        "repositories",
        nargs="*",
        type=Path,
        default=_default_repositories(root),
        help="folders, or .jsonl files with rows of path and content",
    )
    parser.add_argument("--places", type=int, default=3, help="where to type, in each repository")
    parser.add_argument("--edits", type=int, default=3, help="edits, in each repository")
    parser.add_argument(
        "--model",
        default=DEFAULT,
        help="a folder, GGUF file or id; or default, which is fetched once",
    )
    parser.add_argument("--json", type=Path, help="write what was measured to this file too")


def run(args: argparse.Namespace) -> int:
    """Show every repository in turn. Exit code 0 when every request was answered."""
    console = Console()
    model = shown_model(console, args.model)
    console.print(show.legend())
    measured: dict[str, Any] = {}
    for repository in args.repositories:
        if not repository.exists():
            raise RedraftError(f"{repository} does not exist; name a folder of Python code")
        with tempfile.TemporaryDirectory(prefix="redraft-demo-") as folder:
            root = _workspace_copy(repository, Path(folder) / "workspace")
            measured[repository.name] = _show_repository(
                console, repository.stem, root, Path(folder), model, args
            )
    if args.json:
        args.json.write_text(json.dumps(measured, indent=2), encoding="utf-8")
    return 0


def shown_model(console: Console, wanted: str) -> str:
    """The path of the model to show. Raises RedraftError."""
    if wanted != DEFAULT:
        return wanted
    with shown_progress(console) as report:
        return str(fetch_default(report))


def _default_repositories(root: Path) -> list[Path]:
    """This repository, and one of the case repositories where they are present."""
    cases = root.parent / "shared" / "cases" / "repos"
    return [root, *sorted(cases.glob("*imagen*.jsonl"))[:1]]


def _workspace_copy(repository: Path, target: Path) -> Path:
    """The repository's files in a folder of the demo's own: nothing of the user's is touched."""
    if repository.is_dir():
        ignored = shutil.ignore_patterns(".*", "node_modules", "build", "*.safetensors")
        shutil.copytree(repository, target, ignore=ignored)
        return target
    for line in repository.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        path = target / row["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row["content"], encoding="utf-8")
    return target


def _show_repository(
    console: Console,
    name: str,
    root: Path,
    folder: Path,
    model: str,
    args: argparse.Namespace,
) -> dict[str, Any]:
    console.rule(f"[bold]{name}")
    starting = _Starting()
    client = DemoClient(
        serve_command(),
        private_environment(folder),
        starting.on_notification,
        folder / "server.log",
    )
    try:
        _initialize(client, root, model)
        starting.wait(console)
        rows: list[Row] = []
        for place in typing_places(root, args.places):
            rows.append(_complete(console, client, place))
        starting.wait_for_edits(console)
        rows += _edits(console, client, root, args.edits)
    finally:
        client.close()
    console.print(show.costs(rows))
    drafted = sum(row[1]["seconds"] for row in rows)
    plain = sum(row[2]["seconds"] for row in rows)
    if drafted:
        console.print(f"[bold]{name}: {plain / drafted:.1f} times faster than plain decoding[/]")
    return {row[0]: {"drafted": row[1], "plain": row[2]} for row in rows}


class _Starting:
    """Follows what the server tells while it indexes and loads the model."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_indexed = self._is_loaded = False
        self._index = self._model = "starting"
        self._compiling = ""
        self._percentage = 0.0

    def on_notification(self, method: str, params: Any) -> None:
        """Called by the client for every notification."""
        with self._changed:
            if method == "redraft/status":
                self._note_status(params)
            elif method == "$/progress":
                self._note_progress(params["value"])
            self._changed.notify_all()

    def _note_status(self, status: dict[str, Any]) -> None:
        self._model = f"{status.get('message')} {status.get('remedy') or ''}".strip()
        self._is_loaded = status["state"] not in ("loading", "error")
        self._compiling = status["compiling"]

    def _note_progress(self, value: dict[str, Any]) -> None:
        self._index = value.get("message") or value.get("title") or self._index
        self._percentage = value.get("percentage") or self._percentage
        self._is_indexed |= value["kind"] == "end"

    def wait(self, console: Console) -> None:
        """Show progress until the index is built and the model loaded. Raises RedraftError when
        either is not."""
        columns = (TextColumn("{task.fields[what]}"), BarColumn(), TextColumn("{task.description}"))
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            task = progress.add_task(self._index, what="indexing", total=100)
            self._wait_for(
                lambda: self._is_indexed,
                lambda: progress.update(task, completed=self._percentage, description=self._index),
                INDEX_WAIT_S,
                "the index was not built",
            )
            progress.update(task, completed=100)
            task = progress.add_task(self._model, what="the model", total=None)
            self._wait_for(
                lambda: self._is_loaded,
                lambda: progress.update(task, description=self._model),
                MODEL_WAIT_S,
                "the model was not loaded",
            )
            progress.update(task, completed=100, total=100, description="loaded")

    def wait_for_edits(self, console: Console) -> None:
        """Until edits are drafted: at the first start what drafts them is compiled behind the
        first completions. Raises RedraftError where that takes too long."""
        if not self._compiling:
            return
        columns = (TextColumn("{task.description}"), BarColumn())
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            task = progress.add_task(f"compiling {self._compiling}, this once", total=None)
            self._wait_for(
                lambda: not self._compiling, lambda: None, MODEL_WAIT_S, "edits were not drafted"
            )
            progress.update(task, completed=100, total=100)

    def _wait_for(
        self, is_there: Callable[[], bool], show: Callable[[], None], limit_s: float, missing: str
    ) -> None:
        """Until something is there, showing how far it is whenever the server tells."""
        ends = time.monotonic() + limit_s
        with self._changed:
            while not is_there():
                left_s = ends - time.monotonic()
                if left_s <= 0:
                    raise RedraftError(f"{missing} in {limit_s:.0f} s: {self._model}")
                self._changed.wait(left_s)
                show()
            show()


def _initialize(client: DemoClient, root: Path, model: str) -> None:
    client.request(
        "initialize",
        {
            "processId": None,
            "clientInfo": {"name": "redraft demo"},
            "initializationOptions": {"settings": {"model": {"path": model}}},
            "rootUri": root.as_uri(),
            "workspaceFolders": [{"uri": root.as_uri(), "name": root.name}],
            "capabilities": {
                "window": {"workDoneProgress": True},
                "workspace": {"workspaceFolders": True},
                "textDocument": {"inlineCompletion": {}, "synchronization": {}},
            },
        },
    )
    client.notify("initialized", {})


def _open(client: DemoClient, path: Path, text: str) -> dict[str, str]:
    document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": document})
    return {"uri": path.as_uri()}


def _complete(console: Console, client: DemoClient, place: TypingPlace) -> Row:
    """Type a line key by key as a person does, ask as an editor does, then ask where it is from."""
    document = _open(client, place.path, place.before + "\n" + place.after)
    position = {"line": place.before.count("\n"), "character": 0}
    for version, character in enumerate(place.typed, start=2):
        change = {"range": {"start": position, "end": position}, "text": character}
        client.notify(
            "textDocument/didChange",
            {"textDocument": {**document, "version": version}, "contentChanges": [change]},
        )
        position = _after(position, character)
    question = {"textDocument": document, "position": position}
    shown = client.request(
        "textDocument/inlineCompletion", {**question, "context": {"triggerKind": 2}}
    )
    drafted = client.request("redraft/explain", question)
    plain = client.request("redraft/explain", {**question, "plain": True})
    items = (shown or {}).get("items", [])
    where = f"{place.path.name}:{position['line'] + 1}"
    title = f"{where}, {len(items)} item(s) of ghost text"
    show.completion(console, title, place.typed, drafted)
    client.notify("textDocument/didClose", {"textDocument": document})
    return f"complete {where}", drafted, plain


def _after(position: dict[str, int], character: str) -> dict[str, int]:
    """The position behind a character typed at ``position``."""
    if character == "\n":
        return {"line": position["line"] + 1, "character": 0}
    return {"line": position["line"], "character": position["character"] + 1}


def _edits(console: Console, client: DemoClient, root: Path, count: int) -> list[Row]:
    """Edit until ``count`` edits were offered, or enough were refused to give up."""
    rows: list[Row] = []
    for place in edit_places(root, EDIT_TRIES * count):
        if len(rows) == count:
            break
        row = _edit(console, client, place)
        rows += [row] if row else []
    return rows


def _edit(console: Console, client: DemoClient, place: EditPlace) -> Row | None:
    """Edit a selected function by an instruction, and show the diff.

    None when the server refuses: a small model's answer may not parse, and is then never offered.
    """
    document = _open(client, place.path, place.text)
    question = {
        "textDocument": {**document, "version": 1},
        "range": {
            "start": {"line": place.first_line, "character": 0},
            "end": {"line": place.end_line, "character": 0},
        },
        "instruction": place.instruction,
    }
    title = f"{place.path.name}:{place.first_line + 1}, {place.instruction}"
    try:
        answer = client.request("redraft/edit", question)
    except ServerFailed as refusal:
        console.print(f"{title}: [yellow]{refusal}[/]")
        return None
    plain = client.request("redraft/edit", {**question, "plain": True})
    show.edit(console, title, answer["diff"], answer["statistics"])
    client.notify("textDocument/didClose", {"textDocument": document})
    return f"edit: {place.instruction}", answer["statistics"], plain["statistics"]
